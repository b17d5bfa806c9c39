"""Nodes of an alpha-beta search by round, against b^d and b^(d/2): report 002, section 4.1.2."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from reversi_env import batch
from studies.figures import DOTS, Panel, Series, figure
from studies.game_tree.counting import ALPHA_BETA, SORTED, Refinement, count_nodes, positions_by_round
from studies.options import NodesOptions
from studies.sections import Block, Cell, Results, Row, count, count_cell, game_name, report, table
from train.arena.results import Z_95, standard_error
from train.charts import Figure
from train.evaluation.means import plain
from train.jobs.logs import Progress, no_progress

DEPTHS = (2, 4, 6, 8)
#: Round that report 002 takes its regression at, of 64.
FIT_ROUND = 25
#: Report 002: nodes of an 8-ply search by round from 4 to 63, and their mean.
PUBLISHED = (
    *(4718, 3417.2, 5966.2, 8077.35, 11556.8, 10895.9, 14716.9, 20135.15, 21844.8, 27982.95, 31761.05, 33572.1),
    *(34618.75, 47106.85, 38053.15, 52759.2, 44033.35, 46200.55, 41071.8, 48206.35, 42535.7, 55950.05, 44863.9),
    *(55113.5, 52172.45, 51687.25, 46795.9, 55287.3, 45400.75, 50862.8, 44323.7, 55210.75, 41196.35, 45773.85, 33494),
    *(42181.5, 33707.75, 36366.95, 28291.9, 28087.55, 22076.6, 22581.05, 18327.85, 15726.5, 10201.95, 10457.55),
    *(7504.7, 5452.15, 4559.3, 3548.45, 2617, 1934.75, 1075.85, 436.3, 182.714286, 71.9047619, 26.7727273, 10.8),
    *(5.08695652, 2.16666667),
)
PUBLISHED_MEAN = 26046.6291


def measure(options: NodesOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Mean nodes by round and depth with moves sorted, and at one round with and without sorting; and the regressions."""
    rules = options.rules
    rounds = list(range(4, rules.square_count))
    fit_round = max(FIT_ROUND * rules.square_count // 64, 5)
    positions = positions_by_round(rules, options.games, rounds, options.seed)
    by_round = []
    for number in rounds:
        progress("nodes by round", number - 4, len(rounds) + 1)
        if positions[number][0].size:
            by_round.append({"round": number, **_at(positions[number][:2], options, SORTED)})
    progress(f"nodes at round {fit_round}", len(rounds), len(rounds) + 1)
    fits = []
    for name, refinement in (("board order", ALPHA_BETA), ("sorted", SORTED)):
        fits.append(
            {"order": name, "round": fit_round, **_regression(_at(positions[fit_round][:2], options, refinement))}
        )
    mean = float(np.mean([entry["depths"][-1]["nodes"] for entry in by_round]))
    inner = float(np.mean([entry["depths"][-1]["inner"] for entry in by_round]))
    asked = {"evaluator": options.evaluator, "games": options.games}
    return options.measured(**asked, mean_nodes=mean, mean_inner=inner, by_round=by_round, fits=fits)


def _at(boards: tuple[np.ndarray, np.ndarray], options: NodesOptions, refinement: Refinement) -> dict[str, Any]:
    rules = options.rules
    breadth = float(np.bitwise_count(batch.legal_moves(*boards, rules)).mean())
    depths = []
    for depth in DEPTHS:
        counts = count_nodes(*boards, options.evaluator, rules, depth, refinement)
        means = {"nodes": float(counts.nodes.mean()), "inner": float(counts.inner.mean())}
        errors = {"standard_error": standard_error(counts.nodes), "inner_standard_error": standard_error(counts.inner)}
        depths.append({"depth": depth, **means, **plain(errors)})
    return {"breadth": breadth, "depths": depths}


def _regression(at: dict[str, Any]) -> dict[str, Any]:
    """Nodes as h·b^(d/2) + c by least squares, and as a power: k·β^d by least squares of the logarithms."""
    depths = np.array([entry["depth"] for entry in at["depths"]], float)
    nodes = np.array([entry["nodes"] for entry in at["depths"]])
    ideal = at["breadth"] ** (depths / 2)
    slope, shift = np.polyfit(ideal, nodes, 1)
    explained = float(np.corrcoef(ideal, nodes)[0, 1] ** 2)
    growth = float(np.exp(np.polyfit(depths, np.log(nodes), 1)[0]))
    exponent = float(np.log(growth) / np.log(at["breadth"]))
    return {**at, "h": float(slope), "c": float(shift), "r2": explained, "growth": growth, "exponent": exponent}


@report("nodes")
def section(results: Results) -> Iterator[Block]:
    """Nodes of alpha-beta by round."""
    largest = next((one for one in results if one["size"] == 8), None)
    columns: dict[str, Cell] = {
        "game, evaluator": lambda one: f"{game_name(one)}, {one['evaluator']}",
        "mean nodes, 8 plies": count_cell("mean_nodes"),
        "inner nodes": count_cell("mean_inner"),
        "largest (round)": lambda one: f"{count(_peak(one)[1])} ({_peak(one)[0]})",
        "of b^d there": lambda one: f"1/{_peak(one)[2] ** 8 / _peak(one)[1]:,.0f}",
        "of b^(d/2) there": lambda one: f"{_peak(one)[1] / _peak(one)[2] ** 4:.1f}",
    }
    published = ["report 002 (8×8 reversed)", "", count(PUBLISHED_MEAN), "55,950 (25)", "1/329", "13.0"]
    title = "Nodes to 8 plies, moves sorted; means over all rounds from 4 on"
    yield table(title, results, columns, published if largest else ())
    columns = {
        "game, order of the moves": lambda fit: f"{game_name(fit)}, {fit['order']}",
        "round": "{round}",
        "b": "{breadth:.2f}",
        **{f"d = {d}": lambda fit, i=i: count(fit["depths"][i]["nodes"]) for i, d in enumerate(DEPTHS)},  # type: ignore[misc]
        "h": "{h:.2f}",
        "c": lambda fit: count(fit["c"]) if fit["c"] > 0 else f"−{count(-fit['c'])}",
        "R²": "{r2:.4f}",
        "β": "{growth:.2f}",
        "log β / log b": "{exponent:.2f}",
    }
    title = "Nodes at one round by depth, with nodes = h·b^(d/2) + c and nodes = k·β^d"
    yield table(title, [{**one, **fit} for one in results for fit in one["fits"]], columns)
    if largest is not None:
        yield _figure(largest)


def _peak(one: Row) -> tuple[int, float, float]:
    """Return the round with the most nodes, their number, and the breadth there."""
    peak = max(one["by_round"], key=lambda entry: entry["depths"][-1]["nodes"])
    return peak["round"], peak["depths"][-1]["nodes"], peak["breadth"]


def _figure(one: Row) -> Figure:
    rounds, deepest = [at["round"] for at in one["by_round"]], [at["depths"][-1] for at in one["by_round"]]
    inner = [entry["inner"] for entry in deepest]
    errors = [Z_95 * (entry["inner_standard_error"] or 0) for entry in deepest]
    breadth = float(np.mean([at["breadth"] for at in one["by_round"]]))
    nodes = [np.mean([at["depths"][i]["nodes"] for at in one["by_round"]]) for i in range(len(DEPTHS))]
    by_round = [
        Series("ours", rounds, inner, errors, band=True),
        Series("report 002", range(4, 64), PUBLISHED, style=DOTS | {"markersize": 2}),
    ]
    by_depth = [Series("alpha-beta, sorted", DEPTHS, nodes)]
    for power, label in ((1, "$b^d$"), (0.5, "$b^{d/2}$")):
        by_depth.append(Series(label, DEPTHS, [breadth ** (power * d) for d in DEPTHS], style={"linestyle": ":"}))
    panels = (
        Panel("inner nodes of 8 plies by round", by_round, {"xlabel": "round (discs on the board)", "ylim": (0, None)}),
        Panel(
            "nodes by depth, mean of all rounds",
            by_depth,
            {"xlabel": "depth, plies", "yscale": "log", "xticks": DEPTHS},
        ),
    )
    game = f"8×8 {one['variant']}, {one['evaluator']}, {one['games']} random games"
    return figure("nodes", f"Nodes of an alpha-beta search, {game}; band: 95 %.", panels)
