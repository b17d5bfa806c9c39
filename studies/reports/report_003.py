"""Report 003 again: the final score against a positional heuristic as a function of the plies searched, in both colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reversi_env import batch
from reversi_env.options import derive_seed
from search import evaluators
from studies.options import PlyOptions
from studies.players.duels import OPENING_PLIES, discs, points
from studies.sections import Block, Results, Table, game_name, panel_by_game, report
from train import charts
from train.arena.batch import EvaluatorPlayer, play_games
from train.arena.openings import Openings, passed
from train.arena.results import Z_95
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import rescaled

NAME = "four-attribute"
#: The report's teammate's PositionalHeuristic is not printed; this one is mostly a table of squares.
POSITIONAL = "cell-utility"


def measure(options: PlyOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Score in discs and points of `four-attribute` by ply, as Black and as White; both sides search equally deep."""
    rules = options.rules
    # black is to move after an even number of plies
    boards = batch.random_positions(options.games, OPENING_PLIES, rules, seed=options.seed)
    own, opp, white_moves = passed(*boards, rules)
    by_ply = []
    for ply in range(1, options.deepest + 1):
        progress(f"{ply} plies", ply - 1, options.deepest)
        mine = EvaluatorPlayer(rescaled([evaluators.get_formula(NAME).with_weights(ply=float(ply))], rules), rules, ply)
        other = EvaluatorPlayer(POSITIONAL, rules, ply)
        entry: dict[str, Any] = {"ply": ply}
        for colour, a_moves in (("black", ~white_moves), ("white", white_moves)):
            results = play_games(mine, other, Openings(own, opp, a_moves), rules, seed=derive_seed(options.seed, ply))
            entry[colour] = results.as_dict()
        by_ply.append(entry)
    return options.measured(games=options.games, heuristic=NAME, positional=POSITIONAL, by_ply=by_ply)


@report("003")
def section(results: Results) -> Iterator[Block]:
    """Report 003: score by ply."""
    yield (
        "The report shows final scores by ply in two charts, whose numbers are not in its text: its heuristic and the "
        f"teammate's positional one “performed somewhat similarly”. That one is not printed; here `{POSITIONAL}`, "
        "mostly a table of squares, takes its place. The weight `ply` follows the depth, as in the report. Its search "
        "ran out of memory at 6 or 7 plies, for it kept the whole tree; ours keeps one line of it."
    )
    for one in results:
        rows = [
            [str(entry["ply"]), *(cell(entry[colour]) for colour in ("black", "white") for cell in (discs, points))]
            for entry in one["by_ply"]
        ]
        columns = ["plies", "discs as Black", "points as Black", "discs as White", "points as White"]
        title = f"{NAME} against {POSITIONAL}, {game_name(one)}: {one['games']} games each; 95 % intervals"
        yield Table(title, columns, rows)
    yield (
        "The score swings from ply to ply, as curves of one program against itself at other depths would not: corners and "
        "stability are those of the side to move alone, so that what a leaf is worth depends on whose turn it is there."
    )
    caption = f"Mean final score of {NAME} against {POSITIONAL}; bars are 95 % intervals."
    yield panel_by_game("003-plies", caption, results, _draw, y_label="final score, discs", height=2.5)


def _draw(axis: Any, one: Mapping[str, Any]) -> None:
    ends = []
    xs = [entry["ply"] for entry in one["by_ply"]]
    for colour, ink, shift in (("black", charts.BLUE, -0.05), ("white", charts.VERMILION, 0.05)):
        ys = [entry[colour]["discs"] for entry in one["by_ply"]]
        errors = [Z_95 * entry[colour]["discs_standard_error"] for entry in one["by_ply"]]
        charts.points(axis, [x + shift for x in xs], ys, errors, ink)
        ends.append((xs[-1], ys[-1], f"as {colour.title()}", ink))
    axis.axhline(0, color=charts.GREY, linewidth=0.6)
    axis.set(xlabel="plies searched by both", xticks=xs, xlim=(0.7, xs[-1] + 1.6))
    charts.labels(axis, ends, shift=7)
