"""`reversi solve`: exact scores of problems, or of the whole game from its start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Size, VariantName, VariantOption, print_json
from reversi_env.errors import ReversiError

if TYPE_CHECKING:
    from search.solver import Solver


def solve(
    file: Annotated[str | None, typer.Argument(help="OBF problems, one a line; - for standard input.")] = None,
    all_moves: Annotated[bool, typer.Option("--all-moves", help="The exact score of every legal move.")] = False,
    start: Annotated[bool, typer.Option("--start", help="Solve the game from its start instead of a file.")] = False,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    threads: Annotated[int, typer.Option("--threads", "-t", help="Threads that share one table.", min=1)] = 1,
    table: Annotated[float, typer.Option("--table", help="Table size in MiB.", min=0.001)] = 256,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="With --start: file to save to and to resume from (.npz).")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="With --start: between checkpoints.", min=0.01)] = 5,
    as_json: Json = False,
) -> None:
    """Solve endgames exactly: score in discs for the side to move, empties to the winner.

    Lines that cannot be read are reported with their number, and the rest is solved. With --start the whole game is
    solved, which is a matter of milliseconds on 4x4 and of hours on 6x6: bounds, nodes and rate are shown, and
    --checkpoint makes it resumable.
    """
    if start == (file is not None):
        raise ReversiError("expected either a FILE of problems or --start")
    if start:
        from play.commands.solve_start import solve_from_start

        solve_from_start(size, variant.value, threads, table, checkpoint, minutes, as_json)
        return
    failures = _solve_file(str(file), variant.value, threads, table, all_moves, as_json)
    if failures:
        raise typer.Exit(1)


def _solve_file(file: str, variant: str, threads: int, table: float, all_moves: bool, as_json: bool) -> int:
    """Solve line by line; the number of lines that could not be read."""
    from play.commands.inputs import problems
    from search.solver import Solver
    from search.table import Table

    solvers: dict[Any, Solver] = {}
    shared, failures = Table(table), 0
    for line, problem in problems(file, variant):
        if isinstance(problem, ReversiError):
            failures += 1
            if as_json:
                print_json({"line": line, "error": str(problem)})
            else:
                print(f"line {line}: {problem}", file=sys.stderr)
            continue
        rules = problem.position.rules
        if rules not in solvers:
            shared.clear()
            solvers = {rules: Solver(rules, threads=threads, table=shared)}
        result = _solve_line(solvers[rules], line, problem.position, all_moves)
        if as_json:
            print_json(result)
        else:
            _print_line(result, problem.best_score if variant == "normal" else None)
    return failures


def _solve_line(solver: Solver, line: int, position: Any, all_moves: bool) -> dict[str, Any]:
    solution = solver.solve(position)
    result = {
        "line": line,
        "score": solution.score,
        "move": solution.move,
        "nodes": solution.nodes,
        "seconds": solution.seconds,
        "pv": list(solution.pv),
        "empties": position.empties,
    }
    if all_moves:
        result["moves"] = [{"move": move, "score": score} for move, score in solver.solve_all_moves(position).items()]
    return result


def _print_line(result: dict[str, Any], known: int | None) -> None:
    verdict = "" if known is None else "  = file" if known == result["score"] else f"  (the file says {known:+d}!)"
    print(
        f"line {result['line']}: {result['score']:+d}{verdict}  {result['empties']} empties  {result['nodes']:,} nodes  "
        f"{result['seconds']:.3f} s  {' '.join(result['pv'])}"
    )
    for entry in result.get("moves", ()):
        print(f"    {entry['move']} {entry['score']:+d}")
