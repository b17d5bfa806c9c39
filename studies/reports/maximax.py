"""Report 002's search against alpha-beta: nodes and values at equal depth, depth and games at equal time.

The report has the heading for it (section 4.3) and no content.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position
from search import agents
from search.agents.double_alpha import DoubleAlpha
from search.agents.searching import SearchAgent
from search.engine.limits import Limits
from search.kernels.evaluate import UNIT
from studies.duels import duel, points
from studies.game_tree.counting import ALPHA_BETA, REFINEMENTS, SORTED, count_nodes, positions_of_games
from studies.options import MaximaxOptions
from studies.sections import Block, Cell, Results, count_cell, game_name, interval_cell, report, table
from train.arena.batch import AgentPlayer
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

DEPTHS = (2, 4, 6, 8)
#: Rounds of 64 whose positions are searched: the middle of the game, and near its end for the depth at equal time.
MIDDLE, LATE = (24, 32, 40), (48,)
#: Alpha-beta with the engine's table and deepening, but without its selective cuts.
DEEPENING = REFINEMENTS[7]


def measure(options: MaximaxOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Nodes and values at equal depth; depth, time used and points at equal time."""
    rules, steps = options.rules, len(DEPTHS) + 2
    rounds = [number * rules.square_count // 64 for number in (*MIDDLE, *LATE)]
    middle, late = (
        positions_of_games(rules, options.positions, part, options.seed)
        for part in (rounds[: len(MIDDLE)], rounds[len(MIDDLE) :])
    )
    maximax = DoubleAlpha(options.evaluator, rules)
    by_depth = []
    for step, depth in enumerate(DEPTHS):
        progress(f"depth {depth}", step, steps)
        by_depth.append(_at_depth(maximax, *middle[:2], depth, options))
    progress("equal time", len(DEPTHS), steps)
    names = f"rounds {', '.join(map(str, rounds[: len(MIDDLE)]))}", f"round {rounds[-1]}"
    in_time = [_in_time(name, *sample, options) for name, sample in zip(names, (middle, late), strict=True)]
    progress("games", len(DEPTHS) + 1, steps)
    limited = f"time={options.move_seconds}"
    ours, theirs = (
        AgentPlayer(agents.make_agent(spec), rules)
        for spec in (f"double-alpha:evaluator={options.evaluator},{limited}", f"{options.evaluator}:{limited}")
    )
    result = duel(ours, theirs, rules, options.games, options.seed)
    return options.measured(evaluator=options.evaluator, by_depth=by_depth, in_time=in_time, games=result)


def _at_depth(
    maximax: DoubleAlpha, own: NDArray[np.uint64], opp: NDArray[np.uint64], depth: int, options: MaximaxOptions
) -> dict[str, Any]:
    rules = options.rules
    searches = [maximax.search(Position(rules, *boards), Limits(depth=depth)) for boards in _pairs(own, opp)]
    counted = {
        refinement: count_nodes(own, opp, options.evaluator, rules, depth, refinement)
        for refinement in (ALPHA_BETA, SORTED, DEEPENING)
    }
    values = np.array([result.value for result in searches])
    difference = np.abs(values - counted[SORTED].values / UNIT)
    return {
        "depth": depth,
        "positions": int(own.size),
        "nodes": float(np.mean([result.nodes for result in searches])),
        "alpha_beta_nodes": float(counted[ALPHA_BETA].nodes.mean()),
        "sorted_nodes": float(counted[SORTED].nodes.mean()),
        "deepening_nodes": float(counted[DEEPENING].nodes.mean()),
        # alpha-beta rounds values to a unit. A proven win counts its score there, and all squares here.
        "same_value": int((difference <= 1 / UNIT).sum()),
        "proven": int((np.abs(values) == rules.square_count).sum()),
    }


def _in_time(
    stage: str, own: NDArray[np.uint64], opp: NDArray[np.uint64], games: NDArray[np.int64], options: MaximaxOptions
) -> dict[str, Any]:
    """Mean depth, nodes and share of the time of both searches, in positions of these *games*."""
    figures: dict[str, Any] = {"stage": stage, "positions": int(own.size)}
    for name, spec in (
        ("double_alpha", f"double-alpha:evaluator={options.evaluator},time={options.seconds}"),
        ("alpha_beta", f"{options.evaluator}:time={options.seconds},exact=0"),
    ):
        agent = agents.make_agent(spec)
        assert isinstance(agent, SearchAgent)
        agent.prepare(options.rules)
        results = []
        for boards in _pairs(own, opp):
            if name == "alpha_beta":
                agent.engine(options.rules).clear()
            results.append(agent.search(Position(options.rules, *boards)))
        depth = Sample(np.zeros(own.size), games).mean([result.depth for result in results])
        figures[name] = {
            "depth": depth.mean,
            **plain({"depth_standard_error": depth.standard_error, "depth_interval": depth.interval}),
            "nodes": float(np.mean([result.nodes for result in results])),
            "time_used": float(np.mean([result.seconds for result in results]) / options.seconds),
        }
    return figures


def _pairs(own: NDArray[np.uint64], opp: NDArray[np.uint64]) -> list[tuple[int, int]]:
    return list(zip(own.tolist(), opp.tolist(), strict=True))


@report("maximax")
def section(results: Results) -> Iterator[Block]:
    """Report 002: Double-Alpha Maximax."""
    by_depth: dict[str, Cell] = {
        "depth": "{depth}",
        "alpha-beta, board order": count_cell("alpha_beta_nodes"),
        "alpha-beta, sorted": count_cell("sorted_nodes"),
        "deepening": count_cell("deepening_nodes"),
        "Double-Alpha": count_cell("nodes"),
        "same value as alpha-beta": "{same_value} of {positions}",
        "won or lost for certain": "{proven}",
    }
    in_time: dict[str, Cell] = {
        "positions": "{stage}",
        "search": "{search}",
        "depth": interval_cell("depth", 2),
        "nodes": count_cell("nodes"),
        "time used": lambda entry: f"{100 * entry['time_used']:.0f} %",
    }
    for one in results:
        yield table(f"Mean nodes at equal depth, {game_name(one)}, {one['evaluator']}", one["by_depth"], by_depth)
        timed = [
            {"stage": entry["stage"], "search": name, **entry[key]}
            for entry in one["in_time"]
            for name, key in (("Double-Alpha", "double_alpha"), ("alpha-beta", "alpha_beta"))
        ]
        title = f"Mean depth after {one['options']['seconds']} s a position, {game_name(one)}; 95 % intervals"
        yield table(title, timed, in_time)
    columns: dict[str, Cell] = {
        "game": game_name,
        "seconds a move": "{options[move_seconds]}",
        "games": "{games[games]}",
        "points": lambda one: points(one["games"]),
    }
    yield table("Games at equal time, Double-Alpha against alpha-beta; 95 % intervals", results, columns)
