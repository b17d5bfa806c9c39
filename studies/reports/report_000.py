"""Report 000 again: how much the table counts beside stability (γ), and which of its two tables is better."""

from collections.abc import Iterator
from typing import Any

from search import evaluators
from search.evaluators.published import POSITION_STABILITY_ORIGINAL
from studies.duels import duel, points, points_series, pooled, wins
from studies.figures import DOTS, Panel, figure
from studies.options import GammaOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table
from train.arena.batch import EvaluatorPlayer
from train.arena.results import wilson_interval
from train.charts import Figure
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import rescaled

NAME = "position-stability"
GAMMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Its opponents: the heuristics of the other reports.
PANEL = ("six-factor", "ten-weight", "sixteen-weight", "four-attribute", "cell-utility")
#: The report's wins and losses: by γ against opponents ranked 41-50, by table against those ranked 41-60.
PUBLISHED = {0.5: "7–13", 0.7: "9–11", 0.9: "7–13"}
PUBLISHED_TABLES = {"original": "9–11", "adjusted": "11–9"}
REPORT_GAMES = 20


def measure(options: GammaOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return scores against the panel by γ and by table, and of the tables against each other."""
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
    games = f"{one['games']} games against each of {len(one['panel'])} heuristics, depth {one['depth']}"
    columns: dict[str, Cell] = {
        "γ": "{gamma:.1f}",
        "won–drawn–lost": lambda entry: wins(entry["all"]),
        "points": lambda entry: points(entry["all"]),
        "report: won–lost": lambda entry: PUBLISHED.get(entry["gamma"], ""),
    }
    yield table(f"γ, {game_name(one)}: {games}; in brackets 95 % intervals", one["gammas"], columns)
    yield _figure(one)
    columns = {"table": "{table}"} | columns | {"report: won–lost": lambda entry: PUBLISHED_TABLES[entry["table"]]}
    columns.pop("γ")
    yield table(f"The two tables, γ = 0.7: {games}", one["tables"], columns)
    title = "The tables against each other: points of the adjusted one"
    yield table(title, [one["adjusted_against_original"]], {"games": "{games}", "points": points})


def _figure(one: Row) -> Figure:
    gammas = [entry["gamma"] for entry in one["gammas"]]
    shares = [int(text.partition("–")[0]) / REPORT_GAMES for text in PUBLISHED.values()]
    published = [{"points": share, "interval": wilson_interval(share, REPORT_GAMES)} for share in shares]
    everybody = [
        points_series("ours", gammas, [entry["all"] for entry in one["gammas"]]),
        points_series(f"report, {REPORT_GAMES} games each", list(PUBLISHED), published, style=DOTS),
    ]
    by_opponent = [
        points_series(name, gammas, [entry["opponents"][name] for entry in one["gammas"]]) for name in one["panel"]
    ]
    axis = {"xlabel": "γ", "xticks": gammas[::2]}
    panels = (
        Panel("all opponents, and the report", everybody, axis | {"ylabel": "points, per cent"}),
        Panel("by opponent", by_opponent, axis),
    )
    return figure("000-gamma", "Points of position-stability by γ; bars are 95 % intervals.", panels, share_y=True)
