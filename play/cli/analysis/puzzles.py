"""`reversi puzzles`: positions near the end with one best move, made from solved endgames."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from play.cli.job_options import given, options_from
from play.cli.options import Json, Threads
from play.cli.output import ends_at_ctrl_c, print_json, print_table, progress_bar


@options_from("train.judging.puzzles:PuzzleOptions")
def puzzles(
    context: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the puzzles; made if it is not there.")],
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make puzzles: find the one best move near the end of a game.

    Example: reversi puzzles puzzles/8x8 --count 1000 --empties 8-14

    Positions of noisy games are solved; those with one best move, by --margin
    discs or more, are shown to the ten levels of the agent human, and how many
    miss it says how hard it is. OUT/puzzles.obf has one a line: board, side to
    move, the move with its score, margin and how many levels miss it.

    Run the same command again to go on after Ctrl-C, or after a crash: the file
    comes out the same.
    """
    from reversi_env.errors import count_noun
    from train.judging.puzzles import FILE, PuzzleOptions, make_puzzles

    options = PuzzleOptions(**given(context))
    words = "reversi: interrupted; the same command goes on"
    with ends_at_ctrl_c(words), progress_bar() as show:
        found = make_puzzles(options, out, threads=threads, progress=show)
    missed = Counter(puzzle.missed for puzzle in found)
    by_level = [{"missed": number, "puzzles": missed[number]} for number in sorted(missed)]
    if as_json:
        print_json({"file": str(out / FILE), "puzzles": len(found), "by_levels_that_miss": by_level})
        return
    print(f"{options.size}x{options.size} {options.variant}, {count_noun(len(found), 'puzzle')} in {out / FILE}")
    print_table(("levels that miss it", "puzzles"), [tuple(row.values()) for row in by_level], words=0)
