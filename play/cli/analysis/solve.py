"""`reversi solve`: exact scores of positions, or of the whole game from its start."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from play.cli.options import Json, flag, integer, number, text
from play.cli.output import attributes, print_json
from play.cli.positions import DEFAULT, PositionChoice, PositionText, read_problems
from play.interrupt import INTERRUPTED, interruptible

if TYPE_CHECKING:
    from reversi_env import Position
    from reversi_env.notation import Problem
    from search.engine.solver import Solver

#: Board sizes whose whole game can be solved.
SOLVABLE_SIZES = (4, 6)
#: Maximum empties of a position of 8x8 that is solved without a warning; 30 take minutes.
MAX_QUICK_EMPTIES = 30


def solve(
    position: PositionText,
    /,
    *,
    all_moves: Annotated[bool, flag("Print the exact score of every legal move.")] = False,
    where: PositionChoice = DEFAULT,
    threads: Annotated[
        int, integer("Number of search threads; they share one transposition table.", "--threads", low=1, high=1024)
    ] = 1,
    table: Annotated[float, number("Transposition table size in MiB.", low=0.001)] = 256.0,
    order: Annotated[str | None, text("Evaluator for move ordering, such as network.", metavar="EVALUATOR")] = None,
    book: Annotated[
        bool, flag("Use the packaged book of solved positions (6x6; default).", "--book", negative="--no-book")
    ] = True,
    as_json: Json = False,
) -> None:
    """Solve endgames exactly and print the final score in discs for the side to move.

    Examples: reversi solve problems.obf --all-moves

              reversi solve start --size 4

    The winner gets the empty squares. Lines that cannot be read are reported
    with their line number, the others are solved, and the exit status is 1. Up
    to 20 empties take a second or less; three more empties take about ten times
    as long. --order network reduces the nodes to a fifth, where a network for
    the board size and variant exists.

    POSITION start solves the whole game. It takes milliseconds on 4x4. On 6x6
    the score and the first moves are those of the packaged book, where the game
    has one, and only the rest of the game is solved. With --no-book, the whole
    game takes minutes (with --order network --threads 2 --table 4096). 8x8 is
    not feasible.
    """
    from reversi_env.errors import ReversiError

    where.rules  # noqa: B018 - raises an error for a size that does not exist
    if position == "start" and where.size not in SOLVABLE_SIZES:
        raise ReversiError("start without --size 4 or --size 6: expected one of them; 8x8 is not feasible")
    from search.engine.solver import Solver
    from search.engine.table import TranspositionTable

    solver: Solver | None = None
    shared = TranspositionTable(table)
    for line, problem in read_problems(position, where, as_json=as_json):
        rules = problem.position.rules
        if solver is None or solver.rules != rules:
            shared.clear()
            solver = Solver(rules, threads=threads, table=shared, evaluator=order)
            solver.load_kernels()  # here, where Ctrl-C can end a compilation
        if problem.position.empties > MAX_QUICK_EMPTIES and problem.position.rules.size == 8:
            print(f"reversi: {problem.position.empties} empties may take days; see reversi analyse", file=sys.stderr)
        result = _solve_line(solver, line or 1, problem.position, all_moves, book)
        if as_json:
            print_json(result)
        else:
            _print_line(result, _expected_score(problem, result) if where.variant != "reversed" else None)


def _expected_score(problem: Problem, result: dict[str, Any]) -> int | None:
    """Return the score that the file lists for a position, if it is comparable: a file may list only some of the moves."""
    best, listed = problem.best_score, {move for move, _ in problem.scores}
    known = best is not None and (result["move"] in listed or listed.issuperset(problem.position.legal_moves()))
    return best if known or (best is not None and best >= result["score"]) else None


def _solve_line(solver: Solver, line: int, position: Position, all_moves: bool, book: bool) -> dict[str, Any]:
    """Return the result of one problem under the stable keys of the JSON; Ctrl-C ends the command."""
    from search.agents.book import solved_result

    def status() -> str:
        lower, upper, nodes = solver.bounds()
        bounds = "" if all_moves else f", value in [{lower:+d}, {upper:+d}]"
        return f"line {line}, {position.empties} empties{bounds}, {nodes / 1e6:,.0f} million nodes"

    def work() -> tuple[Any, dict[str, int]]:
        if book and (stored := solved_result(position, position.rules.square_count)):
            end = solver.solve(position.play_all(stored.pv))  # from the position where the book ends
            score, scores = round(stored.value), {entry.move: round(entry.value) for entry in stored.moves}
            pv = stored.pv + end.pv
            return replace(end, score=score, move=stored.move, pv=pv, lower=score, upper=score), scores
        solution = solver.solve(position)
        return solution, solver.solve_all_moves(position) if all_moves and solution.proven else {}

    (solution, scores), interrupted = interruptible(work, solver.stop, status)
    if interrupted:
        bounds = f"value between {solution.lower:+d} and {solution.upper:+d}"
        print(f"reversi: interrupted in line {line}, {bounds}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    result = {
        "line": line,
        **attributes(solution, "score", "move", "nodes", "seconds", "pv"),
        "empties": position.empties,
    }
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
