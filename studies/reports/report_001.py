"""Report 001 again: its four levels of intelligence, which are plies of search, against each other."""

from collections.abc import Iterator
from typing import Any

from studies.duels import discs, duel, player, points, points_series
from studies.figures import Panel, Series, figure
from studies.options import LevelOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table
from train.arena.batch import EvaluatorPlayer
from train.jobs.logs import Progress, no_progress

NAME = "six-factor"
LEVELS = (1, 2, 3, 4)


def measure(options: LevelOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return the score of every level against every lower one and against random play."""
    rules = options.rules
    players = {level: EvaluatorPlayer(NAME, rules, level) for level in LEVELS}
    pairs = [(high, low) for high in LEVELS for low in LEVELS if low < high]
    duels = []
    for number, (high, low) in enumerate(pairs):
        progress(f"level {high} against {low}", number, len(pairs) + 1)
        duels.append({"a": high, "b": low, **duel(players[high], players[low], rules, options.games, options.seed)})
    progress("levels against random", len(pairs), len(pairs) + 1)
    random_player = player("random", rules)
    against_random = [
        {"a": level, **duel(players[level], random_player, rules, options.games, options.seed)} for level in LEVELS
    ]
    return options.measured(games=options.games, duels=duels, random=against_random)


@report("001")
def section(results: Results) -> Iterator[Block]:
    """Report 001: four levels."""
    for one in results:
        by_pair = {(entry["a"], entry["b"]): points(entry) for entry in one["duels"]}
        columns: dict[str, Cell] = {
            "": "level {a}",
            "random": points,
            **{f"level {b}": lambda entry, b=b, by=by_pair: by.get((entry["a"], b), "") for b in LEVELS[:-1]},  # type: ignore[misc]
            "discs against random": discs,
        }
        yield table(f"{game_name(one)}: {one['games']} games per pair; 95 % intervals", one["random"], columns)
    axis = {"xlabel": "level (plies)", "xticks": LEVELS, "ylabel": "points, per cent"}
    panels = [Panel(game_name(one), _series(one), axis, {"": 50}) for one in results]
    caption = f"Points of each level of {NAME} against the levels below it; bars are 95 % intervals."
    yield figure("001-levels", caption, panels, 2.9, share_y=True)


def _series(one: Row) -> list[Series]:
    series = [points_series("against random", LEVELS, one["random"])]
    for low in LEVELS[:-1]:
        duels = [entry for entry in one["duels"] if entry["b"] == low]
        series.append(points_series(f"against {low}", [entry["a"] for entry in duels], duels))
    return series
