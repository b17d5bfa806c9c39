"""Report 003 again: the final score against a positional heuristic as a function of the plies searched, in both colours."""

from collections.abc import Iterator
from typing import Any

from reversi_env import batch
from reversi_env.options import derive_seed
from search import evaluators
from studies.duels import OPENING_PLIES, discs, points
from studies.figures import Panel, Series, figure
from studies.options import PlyOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table
from train.arena.batch import EvaluatorPlayer, play_games
from train.arena.openings import Openings, passed
from train.arena.results import Z_95
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import rescaled

NAME = "four-attribute"
#: The report's teammate's PositionalHeuristic is not printed; this one is mostly a table of squares.
POSITIONAL = "cell-utility"
COLOURS = ("black", "white")


def measure(options: PlyOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return discs and points of `four-attribute` by ply, as Black and as White; both sides search to the same depth."""
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
    columns: dict[str, Cell] = {"plies": "{ply}"}
    for colour in COLOURS:
        columns[f"discs as {colour.title()}"] = lambda entry, colour=colour: discs(entry[colour])  # type: ignore[misc]
        columns[f"points as {colour.title()}"] = lambda entry, colour=colour: points(entry[colour])  # type: ignore[misc]
    for one in results:
        title = f"{NAME} against {POSITIONAL}, {game_name(one)}: {one['games']} games each; 95 % intervals"
        yield table(title, one["by_ply"], columns)
    caption = f"Mean final score of {NAME} against {POSITIONAL}; bars are 95 % intervals."
    plies = [entry["ply"] for entry in results[0]["by_ply"]]
    axis = {"xlabel": "plies searched by both", "ylabel": "final score, discs", "xticks": plies}
    panels = [Panel(game_name(one), [_scores(one, colour) for colour in COLOURS], axis, {"": 0}) for one in results]
    yield figure("003-plies", caption, panels, 2.8, share_y=True)


def _scores(one: Row, colour: str) -> Series:
    entries = [entry[colour] for entry in one["by_ply"]]
    errors = [Z_95 * entry["discs_standard_error"] for entry in entries]
    plies, scores = [entry["ply"] for entry in one["by_ply"]], [entry["discs"] for entry in entries]
    return Series(f"as {colour.title()}", plies, scores, errors)
