"""Report 001 again: its four levels of intelligence, which are plies of search, against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from studies.options import LevelOptions
from studies.players.duels import discs, duel, player, points, points_and_bars
from studies.sections import Block, Results, Table, game_name, panel_by_game, report
from train import charts
from train.arena.batch import EvaluatorPlayer
from train.jobs.logs import Progress, no_progress

NAME = "six-factor"
LEVELS = (1, 2, 3, 4)


def measure(options: LevelOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """The score of every level against every lower one and against random play."""
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
    yield (
        "The client of report 001 asks for an intelligence level from 1 to 4, the depth of its tree. The report has "
        f"no figures for them; here are some. Evaluator `{NAME}`, every opening of six random plies from both sides; "
        "points of the row against the column."
    )
    for one in results:
        by_pair = {(entry["a"], entry["b"]): entry for entry in one["duels"]}
        rows = []
        for level, against_random in zip(LEVELS, one["random"], strict=True):
            cells = [points(by_pair[level, other]) if other < level else "" for other in LEVELS[:-1]]
            rows.append([f"level {level}", points(against_random), *cells, discs(against_random)])
        columns = ["", "random", *(f"level {level}" for level in LEVELS[:-1]), "discs against random"]
        yield Table(f"{game_name(one)}: {one['games']} games a pair; 95 % intervals", columns, rows)
    caption = f"Points of each level of {NAME} against the levels below it; bars are 95 % intervals."
    yield panel_by_game("001-levels", caption, results, _draw, y_label="points, per cent", height=2.5)


def _draw(axis: Any, one: Mapping[str, Any]) -> None:
    ends = []
    for low, colour in zip((0, *LEVELS[:-1]), charts.COLOURS, strict=False):
        duels = [entry for entry in one["duels"] if entry["b"] == low] if low else one["random"]
        xs = [entry["a"] for entry in duels]
        ys, bars = points_and_bars(duels)
        charts.points(axis, xs, ys, bars, colour)
        ends.append((xs[-1], ys[-1], f"against {low}" if low else "against random", colour))
    axis.axhline(50, color=charts.GREY, linewidth=0.6, linestyle=":")
    axis.set(xlabel="level (plies)", xticks=LEVELS, xlim=(0.8, 5.6))
    charts.labels(axis, ends)
