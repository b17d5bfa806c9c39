"""Report 000 again: how much the table counts beside stability (γ), and which of its two tables is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from search import evaluators
from search.evaluators.published import POSITION_STABILITY_ORIGINAL
from studies.options import GammaOptions
from studies.players.duels import duel, points, points_and_bars, pooled, wins
from studies.sections import Block, Results, Table, game_name, report
from train import charts
from train.arena.batch import EvaluatorPlayer
from train.arena.results import wilson_interval
from train.charts import Figure
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import rescaled

NAME = "position-stability"
GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Who plays against it: the heuristics of the other reports.
PANEL = ("six-factor", "ten-weight", "sixteen-weight", "four-attribute", "cell-utility")
#: The report's wins and losses: by γ against opponents ranked 41-50, by table against those ranked 41-60.
PUBLISHED = {0.5: (7, 13), 0.7: (9, 11), 0.9: (7, 13)}
PUBLISHED_TABLES = {"original": (9, 11), "adjusted": (11, 9)}


def measure(options: GammaOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Scores against the panel by γ, and of the two tables; and the tables against each other."""
    rules, formula = options.rules, evaluators.get_formula(NAME)
    opponents = {name: EvaluatorPlayer(name, rules, options.depth) for name in PANEL}
    steps = len(GAMMAS) + 3

    def against_panel(evaluator: Any) -> dict[str, Any]:
        mine = EvaluatorPlayer(rescaled([evaluator], rules), rules, options.depth)
        results = [duel(mine, other, rules, options.games, options.seed) for other in opponents.values()]
        return {"opponents": dict(zip(opponents, results, strict=True)), "all": pooled(results)}

    sweep = []
    for number, gamma in enumerate(GAMMAS):
        progress(f"gamma {gamma:.1f}", number, steps)
        sweep.append({"gamma": gamma, **against_panel(formula.with_weights(gamma=gamma))})
    progress("tables", len(GAMMAS), steps)
    tables = {"adjusted": formula, "original": formula.with_weights(table=POSITION_STABILITY_ORIGINAL)}
    by_table = [{"table": name, **against_panel(evaluator)} for name, evaluator in tables.items()]
    progress("tables", len(GAMMAS) + 2, steps)
    both = [EvaluatorPlayer(rescaled([tables[name]], rules), rules, options.depth) for name in ("adjusted", "original")]
    face_to_face = duel(both[0], both[1], rules, 4 * options.games, options.seed)
    progress("tables", steps, steps)
    by_gamma = {"panel": list(PANEL), "gammas": sweep, "tables": by_table, "adjusted_against_original": face_to_face}
    return options.measured(depth=options.depth, games=options.games, **by_gamma)


@report("000")
def section(results: Results) -> Iterator[Block]:
    """Report 000: γ and two tables."""
    one = results[0]
    columns = ["γ", "won–drawn–lost", "points", "report: won–lost"]
    games = f"{one['games']} games against each of {len(one['panel'])} heuristics, depth {one['depth']}"
    sweep = [_row(f"{entry['gamma']:.1f}", entry["all"], PUBLISHED.get(entry["gamma"])) for entry in one["gammas"]]
    tables = [_row(entry["table"], entry["all"], PUBLISHED_TABLES[entry["table"]]) for entry in one["tables"]]
    best = max(one["gammas"], key=lambda entry: entry["all"]["points"])
    chosen = next(entry for entry in one["gammas"] if entry["gamma"] == 0.7)
    direct = one["adjusted_against_original"]
    low, high = wilson_interval(9 / 20, 20)
    yield (
        "`γ·position + (1 − γ)·stability` in the reversed game. The report played 20 games for each γ against ranked "
        "classmates, whose programs we do not have; here the opponents are the heuristics of the other reports "
        f"({', '.join(one['panel'])}), every opening from both sides."
    )
    yield Table(f"γ, {game_name(one)}: {games}; in brackets 95 % intervals", columns, sweep)
    yield _figure(one)
    yield (
        f"Best here is γ = {best['gamma']:.1f} with {points(best['all'])}; the report's 0.7 has "
        f"{points(chosen['all'])}. The report's 9 wins in 20 games have a 95 % interval of {low:.0%} to {high:.0%}: its 7, 9 and "
        "7 wins do not differ."
    )
    yield Table(f"The two tables, γ = 0.7: {games}", ["table", *columns[1:]], tables)
    yield (
        f"Face to face the adjusted table wins {points(direct)} of the points against the original ({direct['games']} "
        "games). The report's 11–9 against 9–11 says nothing either way; with more games there is an answer."
    )


def _row(name: str, result: Mapping[str, Any], published: tuple[int, int] | None) -> list[str]:
    return [name, wins(result), points(result), f"{published[0]}–{published[1]}" if published else ""]


def _figure(one: Mapping[str, Any]) -> Figure:
    def draw(figure: Any) -> None:
        left, right = charts.panels(figure, 2, ("all opponents, and the report", "by opponent"), share_y=True)
        gammas = [entry["gamma"] for entry in one["gammas"]]
        charts.points(left, gammas, *points_and_bars([entry["all"] for entry in one["gammas"]]), charts.BLUE)
        ours = 100 * one["gammas"][3]["all"]["points"]
        charts.label(left, 0.3, ours, "ours", charts.BLUE, at="center", shift=(0, 9))
        shares = [won / (won + lost) for won, lost in PUBLISHED.values()]
        published = [{"points": share, "interval": wilson_interval(share, 20)} for share in shares]
        charts.points(left, list(PUBLISHED), *points_and_bars(published), charts.GREY, line="none")
        charts.label(left, 0.9, 100 * shares[-1], "report,\n20 games each", charts.GREY, at="right", shift=(-6, -14))
        ends = []
        for name, colour in zip(one["panel"], charts.COLOURS, strict=False):
            ys, errors = points_and_bars([entry["opponents"][name] for entry in one["gammas"]])
            right.errorbar(
                gammas, ys, yerr=errors, color=colour, marker="o", elinewidth=0.6, markersize=2.5, markeredgewidth=0
            )
            ends.append((gammas[-1], ys[-1], name, colour))
        charts.labels(right, ends)
        left.set(xlabel="γ", ylabel="points, per cent", xticks=gammas[::2])
        right.set(xlabel="γ", xlim=(-0.04, 1.55), xticks=gammas[::2])

    return Figure("000-gamma", "Points of position-stability by γ; bars are 95 % intervals.", draw)
