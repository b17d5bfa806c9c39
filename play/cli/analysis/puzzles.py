"""`reversi puzzles`: positions near the end with one best move, made from solved endgames."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, Threads, options_of
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from train.evaluation.options import PuzzleOptions

PuzzleChoice: Any = options_of(PuzzleOptions)


def puzzles(
    out: Annotated[Path, Parameter(help="Output folder; created if missing.")],
    /,
    *,
    chosen: PuzzleChoice = NOTHING,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Generate endgame puzzles with a single best move.

    Example: reversi puzzles puzzles/8x8 --count 1000 --empties 8-14

    The command plays games with random errors and solves their endgames. A
    puzzle has one move that is better than all others by --margin discs or
    more. The difficulty of a puzzle is how many of the ten human-like levels
    miss this move. OUT/puzzles.obf has one puzzle per line: board, side to move,
    best move with its score, margin and difficulty.

    After Ctrl-C or a crash, run the same command again: it resumes, and the
    result is the same file.
    """
    from reversi_env.errors import count_noun
    from train.evaluation.puzzles import FILE, make_puzzles

    options = PuzzleOptions(**chosen)
    stopped = "reversi: interrupted; run the same command again to resume"
    with exit_on_interrupt(stopped), progress_bar() as show:
        puzzles_made = make_puzzles(options, out, threads=threads, progress=show)
    missed = Counter(puzzle.missed for puzzle in puzzles_made)
    by_level = [{"missed": number, "puzzles": missed[number]} for number in sorted(missed)]
    if as_json:
        print_json({"file": str(out / FILE), "puzzles": len(puzzles_made), "by_levels_that_miss": by_level})
        return
    print(f"{options.size}x{options.size} {options.variant}, {count_noun(len(puzzles_made), 'puzzle')} in {out / FILE}")
    print_table(("levels that miss it", "puzzles"), [tuple(row.values()) for row in by_level], words=0)
