"""Report 002 again: one-ply greedy play with a perfect endgame, against random play, with published and with tuned weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from search import evaluators
from search.evaluators.formula import Formula
from studies.duels import duel, player, points
from studies.figures import Panel, Series, figure
from studies.options import GreedyOptions
from studies.sections import Block, Cell, Results, Row, Table, game_name, report, table
from train import charts
from train.charts import Figure
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import WinRate, rescaled
from train.tuning.optimisers import OPTIMISERS
from train.tuning.options import TuneOptions
from train.tuning.run import Generation, tune

FORMULAS = ("ten-weight", "sixteen-weight")
OTHERS = ("position-stability", "six-factor", "four-attribute", "cell-utility", "discs", "mobility")
#: Squares that the report's program played perfectly at the end (its text says 12).
EXACT = 9
#: Win rates that the report found for its best weights, and the seconds that its genetic algorithm took.
PUBLISHED = {"ten-weight": (0.85345, 10022.8), "sixteen-weight": (0.93, 24438.2)}
COLOURS = {"genetic": charts.BLUE, "cma": charts.VERMILION}
#: Settings of a measurement: the final squares that the evaluation, and the random player, plays perfectly.
SETTINGS = {
    "greedy v. random": (0, 0),
    f"last {EXACT} perfect v. random": (EXACT, 0),
    f"last {EXACT} perfect, both": (EXACT, EXACT),
}


def measure(options: GreedyOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Tune both models by both optimisers; then measure every evaluation in every setting, and against the others."""
    rules = options.rules
    tunings = [_tuning(options, formula, method, progress) for formula in FORMULAS for method in OPTIMISERS]
    players: dict[str, Formula] = {name: evaluators.get_formula(name) for name in (*FORMULAS, *OTHERS)}
    for one in tunings:
        weights = evaluators.get_formula(one["formula"]).with_weights(**one["weights"])
        players[f"{one['formula']}, {one['optimiser']}"] = rescaled([weights], rules)[0]
    rates = []
    for number, (name, evaluator) in enumerate(players.items()):
        progress(f"{name} against random", number, len(players))
        row: dict[str, Any] = {"name": name}
        for setting, (exact, random_exact) in SETTINGS.items():
            random_player = player("random", rules, exact=random_exact)
            row[setting] = duel(
                player(evaluator, rules, exact=exact), random_player, rules, options.games, options.seed
            )
        rates.append(row)
    best = {
        formula: max((one for one in tunings if one["formula"] == formula), key=lambda one: one["win_rate"])
        for formula in FORMULAS
    }
    cast = ["discs", "position-stability", *FORMULAS, *(f"{f}, {one['optimiser']}" for f, one in best.items())]
    duels = []
    for number, name in enumerate(cast):
        progress(f"{name}, face to face", number, len(cast))
        mine = player(players[name], rules, exact=EXACT)
        for other in cast[:number]:
            theirs = player(players[other], rules, exact=EXACT)
            duels.append({"a": name, "b": other, **duel(mine, theirs, rules, options.games // 4 * 2, options.seed)})
    return options.measured(games=options.games, tunings=tunings, rates=rates, cast=cast, duels=duels)


def _tuning(options: GreedyOptions, formula: str, method: str, progress: Progress) -> dict[str, Any]:
    objective = WinRate(options.size, options.variant, games=options.tuning_games, seed=options.seed)
    chosen = TuneOptions(formula, None, method, options.generations, options.population, options.seed)

    def show(generation: Generation) -> None:
        progress(f"tuning {formula}, {method}", generation.number, options.generations)

    tuned = tune(chosen, objective, progress=show)
    best = np.minimum.accumulate([generation.losses.min() for generation in tuned.generations])
    return {
        "formula": formula,
        "optimiser": method,
        "weights": dict(tuned.evaluator.weights),
        "loss": tuned.loss,
        "win_rate": 1 - tuned.check,
        "published_win_rate": 1 - tuned.published_check,
        "evaluations": tuned.evaluations,
        "games": tuned.evaluations * options.tuning_games,
        "seconds": tuned.seconds,
        "best": [1 - float(loss) for loss in best],
        "median": [1 - float(np.median(generation.losses)) for generation in tuned.generations],
    }


@report("002")
def section(results: Results) -> Iterator[Block]:
    """Report 002: greedy play and tuned weights."""
    one = results[0]
    game = game_name(one)
    columns: dict[str, Cell] = {
        "model, optimiser": "{formula}, {optimiser}",
        "tuned": "{win_rate:.3f}",
        "published weights": "{published_win_rate:.3f}",
        "report": lambda entry: f"{PUBLISHED[entry['formula']][0]:.3f}",
        "candidates": "{evaluations:,}",
        "games": "{games:,}",
        "seconds": "{seconds:.0f}",
        "report's seconds": lambda entry: f"{PUBLISHED[entry['formula']][1]:,.0f}",
    }
    title = f"Tuned from random weights, {game}: points of greedy play against random play, on 10,000 other games"
    yield table(title, one["tunings"], columns)
    yield _figure(one)
    columns = {
        "evaluation": "{name}",
        **{setting: lambda row, setting=setting: points(row[setting]) for setting in SETTINGS},  # type: ignore[misc]
        "report": lambda row: f"{PUBLISHED[row['name']][0]:.3f}" if row["name"] in PUBLISHED else "",
    }
    title = f"Points against random play, {game}: {one['games']:,} games each; in brackets 95 % intervals"
    yield table(title, one["rates"], columns)
    by_pair = {(entry["a"], entry["b"]): points(entry) for entry in one["duels"]}
    names = one["cast"]
    rows = [[name, *(by_pair.get((name, other), "") for other in names[:-1])] for name in names[1:]]
    games = one["duels"][0]["games"]
    title = f"Greedy invincible (last {EXACT} squares), face to face: points of the row, {games} games per pair"
    yield Table(title, ["", *names[:-1]], rows)


def _figure(one: Row) -> Figure:
    panels = []
    for formula in FORMULAS:
        series = []
        for entry in (entry for entry in one["tunings"] if entry["formula"] == formula):
            colour, numbers = COLOURS[entry["optimiser"]], range(1, len(entry["best"]) + 1)
            look = {"color": colour, "marker": ""}
            series.append(Series(f"{entry['optimiser']}, best", numbers, entry["best"], style=look))
            series.append(
                Series(f"{entry['optimiser']}, median", numbers, entry["median"], style=look | {"linestyle": ":"})
            )
        axis = {"xlabel": "generation", "ylabel": "points per game against random", "ylim": (0.3, 1.0)}
        panels.append(Panel(formula, series, axis, {"report": PUBLISHED[formula][0]}))
    caption = (
        "Tuning from random weights: best candidate so far (line) and median of the generation (dotted), on the games of "
        "the tuning."
    )
    return figure("002-tuning", caption, panels, share_y=True)
