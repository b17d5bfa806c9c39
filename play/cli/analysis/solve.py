"""`reversi solve`: exact scores of problems, or of the whole game from its start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.options import Json, VariantName
from play.cli.output import picked, print_json

if TYPE_CHECKING:
    from reversi_env import Position
    from reversi_env.notation import Problem
    from reversi_env.rules import Variant
    from search.solver import Solver


def solve(
    file: Annotated[str | None, typer.Argument(help="OBF problems, one a line; - for standard input.")] = None,
    all_moves: Annotated[bool, typer.Option("--all-moves", help="The exact score of every legal move.")] = False,
    start: Annotated[bool, typer.Option("--start", help="Solve the game from its start instead of a file.")] = False,
    size: Annotated[
        int | None, typer.Option("--size", "-n", help="With --start: board size, 4 or 6 (8 is out of reach).")
    ] = None,
    variant: VariantName = "normal",
    threads: Annotated[int, typer.Option("--threads", "-t", help="Threads that share one table.", min=1)] = 1,
    table: Annotated[float, typer.Option("--table", help="Table size in MiB.", min=0.001)] = 256,
    order: Annotated[
        str | None, typer.Option("--order", help="Evaluator that helps to order the moves, such as network.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", help="With --start: file to save to and to resume from (.npz).")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="With --start: between checkpoints.", min=0.01)] = 5,
    as_json: Json = False,
) -> None:
    """Solve endgames exactly: score in discs for the side to move, empties to the winner.

    Examples: reversi solve problems.obf --all-moves

              reversi solve --start --size 4

    Lines that cannot be read are reported with their number, and the rest is
    solved; the exit status is 1 then. Up to 20 empty squares are a matter of
    a second or less; three more take about ten times as long. With --order
    network, where there are weights for the game, it takes about a third of
    the nodes.

    With --start the whole game is solved: milliseconds on 4x4, minutes on 6x6
    (with --order network --threads 2 --table 4096), out of reach on 8x8.
    Bounds, nodes and rate are shown; with --checkpoint the job can be
    interrupted, and goes on when it is started again.
    """
    from reversi_env.errors import ReversiError

    if start == (file is not None):
        raise ReversiError("expected either a FILE of problems or --start")
    if start:
        if all_moves:
            raise ReversiError("--all-moves is for a FILE of problems: expected --start without it")
        if size is None:
            raise ReversiError("--start without a board size: expected --size 4 or --size 6; 8x8 is out of reach")
        from play.cli.analysis.solve_start import solve_from_start

        solve_from_start(size, variant, threads, table, order, checkpoint, minutes, as_json)
        return
    if checkpoint is not None or size is not None:
        option = "--size" if checkpoint is None else "--checkpoint"
        raise ReversiError(f"{option} is for --start: expected a FILE without it")
    _solve_file(str(file), variant, threads, table, order, all_moves, as_json)


def _solve_file(
    file: str, variant: Variant, threads: int, table: float, order: str | None, all_moves: bool, as_json: bool
) -> None:
    """Solve line by line."""
    from play.cli.positions import problems
    from search.solver import Solver
    from search.table import TranspositionTable

    solver: Solver | None = None
    shared = TranspositionTable(table)
    for line, problem in problems(file, variant, as_json):
        position = problem.position
        if solver is None or solver.rules != position.rules:
            shared.clear()
            solver = Solver(position.rules, threads=threads, table=shared, evaluator=order)
            solver.load_kernels()  # here, where Ctrl-C can end a compilation
        result = _solve_line(solver, line, position, all_moves)
        if as_json:
            print_json(result)
        else:
            _print_line(result, _said(problem, result) if variant == "normal" else None)


def _said(problem: Problem, result: dict[str, Any]) -> int | None:
    """The score that the file gives a position, of whose moves it may list a few only; None if it does not say."""
    best, listed = problem.best_score, {move for move, _ in problem.scores}
    known = best is not None and (result["move"] in listed or listed.issuperset(problem.position.legal_moves()))
    return best if known or (best is not None and best >= result["score"]) else None


def _solve_line(solver: Solver, line: int, position: Position, all_moves: bool) -> dict[str, Any]:
    """One problem's result under the command line's stable keys; Ctrl-C ends the command."""
    from play.cli.interrupt import INTERRUPTED, interruptible

    def look() -> str:
        lower, upper, nodes = solver.bounds()
        known = "" if all_moves else f", value in [{lower:+d}, {upper:+d}]"
        return f"line {line}, {position.empties} empties{known}, {nodes / 1e6:,.0f} million nodes"

    def work() -> tuple[Any, dict[str, int]]:
        solution = solver.solve(position)
        return solution, solver.solve_all_moves(position) if all_moves and solution.proven else {}

    (solution, scores), interrupted = interruptible(work, solver.stop, look)
    if interrupted:
        known = f", value between {solution.lower:+d} and {solution.upper:+d}"
        print(f"reversi: interrupted in line {line}{known}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    result = {"line": line, **picked(solution, "score", "move", "nodes", "seconds", "pv"), "empties": position.empties}
    if all_moves:
        result["moves"] = [{"move": move, "score": score} for move, score in scores.items()]
    return result


def _print_line(result: dict[str, Any], known: int | None) -> None:
    from reversi_env.errors import count_noun

    work = f"{count_noun(result['empties'], 'empty', 'empties')}  {count_noun(result['nodes'], 'node')}"
    verdict = "" if known is None else "  = file" if known == result["score"] else f"  (the file says {known:+d}!)"
    print(
        f"line {result['line']}: {result['score']:+d}{verdict}  {work}  "
        f"{result['seconds']:.3f} s  {' '.join(result['pv'])}".rstrip(),
        flush=True,
    )
    for entry in result.get("moves", ()):
        print(f"    {entry['move']} {entry['score']:+d}")
