"""Effective branching factor, without and with alpha-beta and with each further refinement: report 004, and beyond it."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from reversi_env import Position, ReversiError
from search.engine import probcut_fit
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import coefficients
from studies.figures import DOTS, Panel, Series, figure
from studies.game_tree.counting import MINIMAX, REFINEMENTS, count_nodes, positions_of_games
from studies.options import BranchingOptions
from studies.sections import Block, Cell, Results, Row, count, game_name, report, table
from train.charts import Figure
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

#: Minimax is searched less deep than the rest.
MINIMAX_DEPTH = 6
#: ProbCut is fitted on so many positions, and prunes at so many standard deviations.
FIT_POSITIONS, MARGIN = 60, 1.5
ENGINE_ROW = "the engine (root apart)"
#: Searches in the figure.
SHOWN = (
    "minimax",
    "+ alpha-beta",
    "+ moves with few replies first",
    "+ and a good value first",
    "+ transposition table",
    "+ ProbCut",
)


def measure(options: BranchingOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return mean nodes by depth for every refinement, moves searched at an inner node, and growth per ply."""
    rules = options.rules
    own, opp, games = positions_of_games(rules, options.games, options.rounds, options.seed)
    by_game = Sample(np.zeros(len(own)), games)
    ways, steps = [], len(REFINEMENTS) + 1
    for number, refinement in enumerate(REFINEMENTS):
        progress(refinement.name, number, steps)
        cuts = _coefficients(options) if refinement.cuts else None
        if refinement.cuts and cuts is None:
            continue
        depths = range(1, min(options.depth, MINIMAX_DEPTH if refinement is MINIMAX else options.depth) + 1)
        by_depth = []
        for depth in depths:
            counts = count_nodes(own, opp, options.evaluator, rules, depth, refinement, probcut=cuts, margin=MARGIN)
            by_depth.append(
                {
                    "depth": depth,
                    "nodes": float(counts.nodes.mean()),
                    **plain({"standard_error": by_game.standard_error(counts.nodes)}),
                    "moves_per_inner": float(counts.moves.sum() / max(counts.inner.sum(), 1)),
                }
            )
        ways.append({"name": refinement.name, "by_depth": by_depth, **_factors(by_depth)})
    progress(ENGINE_ROW, len(REFINEMENTS), steps)
    ways.append(_engine(options, own, opp, by_game))
    asked = {"evaluator": options.evaluator, "rounds": options.rounds, "depth": options.depth}
    return options.measured(**asked, positions=int(own.size), ways=ways)


def _factors(by_depth: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the growth of the nodes per ply, over the last two plies, and the d-th root of the nodes."""
    last = by_depth[-1]
    before = by_depth[-3]["nodes"] if len(by_depth) > 2 else 1.0
    plies = 2 if len(by_depth) > 2 else last["depth"]
    return {
        "growth": float((last["nodes"] / before) ** (1 / plies)),
        "root": float(last["nodes"] ** (1 / last["depth"])),
    }


def _coefficients(options: BranchingOptions) -> np.ndarray | None:
    """Return ProbCut's coefficients for this evaluator; None if the board is too small to fit them."""
    try:
        fitted = probcut_fit.fit(
            options.evaluator, options.rules, deepest=options.depth, positions=FIT_POSITIONS, seed=options.seed
        )
    except ReversiError:
        return None
    return coefficients(fitted)


def _engine(options: BranchingOptions, own: np.ndarray, opp: np.ndarray, by_game: Sample) -> dict[str, Any]:
    """Return the nodes of the engine, all iterations together, with a cleared table for every position."""
    engine = Engine(options.evaluator, options.rules, megabytes=4)
    by_depth = []
    for depth in range(1, options.depth + 1):
        nodes = []
        for boards in zip(own.tolist(), opp.tolist(), strict=True):
            engine.clear()
            nodes.append(engine.search(Position(options.rules, *boards), Limits(depth=depth, empties_exact=0)).nodes)
        error = plain({"standard_error": by_game.standard_error(nodes)})
        by_depth.append({"depth": depth, "nodes": float(np.mean(nodes)), **error, "moves_per_inner": None})
    return {"name": ENGINE_ROW, "by_depth": by_depth, **_factors(by_depth)}


@report("branching")
def section(results: Results) -> Iterator[Block]:
    """Effective branching factor."""
    for one in results:
        columns: dict[str, Cell] = {
            "search": "{name}",
            **{f"nodes, d = {d}": partial(_nodes_at, d) for d in (2, 4, 6, 8, 10, 12) if d <= one["depth"]},
            "growth a ply": "{growth:.2f}",
            "d-th root": "{root:.2f}",
            "moves searched": lambda way: f"{moves:.2f}" if (moves := way["by_depth"][-1]["moves_per_inner"]) else "–",
        }
        rounds = ", ".join(map(str, one["rounds"]))
        title = f"{game_name(one)}, {one['evaluator']}, {one['positions']} positions of rounds {rounds}"
        yield table(title, one["ways"], columns)
    yield _figure(results[0])


def _nodes_at(depth: int, way: Row) -> str:
    return next((count(entry["nodes"]) for entry in way["by_depth"] if entry["depth"] == depth), "–")


def _figure(one: Row) -> Figure:
    by_depth = [
        Series(way["name"], [at["depth"] for at in way["by_depth"]], [at["nodes"] for at in way["by_depth"]])
        for way in one["ways"]
        if way["name"] in SHOWN
    ]
    ways = [way for way in one["ways"] if way["name"] != ENGINE_ROW][::-1]
    growth = Series("", [way["growth"] for way in ways], range(len(ways)), style=DOTS)
    axis = {"xlabel": "depth, plies", "ylabel": "nodes", "yscale": "log", "xticks": range(1, one["depth"] + 1)}
    rows = [way["name"].removeprefix("+ ") for way in ways]
    panels = (
        Panel("nodes by depth", by_depth, axis),
        Panel("growth a ply", [growth], {"xlabel": "factor a ply", "xlim": (0, None)}, rows=rows),
    )
    game = f"{game_name(one)}, {one['evaluator']}, {one['positions']} positions"
    return figure("branching", f"What each refinement saves: {game}.", panels, height=3.1)
