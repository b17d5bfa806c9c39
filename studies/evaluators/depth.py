"""Performance model 4: the value of an evaluator in search.

A better evaluator orders moves better and prunes more, so it searches deeper in the same time. It also plays better at the same
depth: the measure of BILL's authors is how many plies deeper a weaker program must search to play as well.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position
from search.engine.engine import Engine
from search.engine.limits import Limits
from studies.duels import duel, points, points_series
from studies.figures import Panel, figure
from studies.game_tree.counting import positions_of_games
from studies.options import DepthOptions
from studies.sections import Block, Cell, Results, Row, count_cell, game_name, report, table, with_interval
from train.arena.batch import EvaluatorPlayer
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

#: Maximum handicap in plies, in each direction.
MAX_HANDICAP = 4


def measure(options: DepthOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return depth and nodes at equal time, nodes to a depth, and plies gained over the baseline."""
    rules = options.rules
    middle = [share * rules.square_count // 16 for share in (6, 8)]
    own, opp, games = positions_of_games(rules, -(-options.positions // 2), middle, options.seed)
    positions = [Position(rules, *boards) for boards in zip(own.tolist(), opp.tolist(), strict=True)]
    positions, games = positions[: options.positions], games[: options.positions]
    depths = []
    for number, name in enumerate(options.names):
        progress(f"{name}: searching", 2 * number, 2 * len(options.names))
        searched = _searched(name, positions, games, options)
        progress(f"{name}: playing", 2 * number + 1, 2 * len(options.names))
        depths.append({"evaluator": name, **searched, **plies_gained(name, options)})
    asked = {name: getattr(options, name) for name in ("seconds", "depth", "baseline", "play_depth", "games")}
    return options.measured(**asked, positions=len(positions), evaluators=depths)


def _searched(
    name: str, positions: Sequence[Position], games: NDArray[np.int64], options: DepthOptions
) -> dict[str, Any]:
    engine = Engine(name, options.rules, megabytes=16)
    timed, deep = [], []
    for position in positions:
        engine.clear()
        timed.append(engine.search(position, Limits(time=options.seconds, empties_exact=0)))
        engine.clear()
        deep.append(engine.search(position, Limits(depth=options.depth, empties_exact=0)).nodes)
    depths, nodes = np.array([one.depth for one in timed]), np.array([one.nodes for one in timed])
    depth = Sample(np.zeros(len(depths)), games).mean(depths)
    return {
        "depth_at_equal_time": depth.mean,
        **plain({"depth_standard_error": depth.standard_error, "depth_interval": depth.interval}),
        "nodes_at_equal_time": float(nodes.mean()),
        "nodes_to_depth": float(np.exp(np.log(deep).mean())),
    }


def plies_gained(name: str, options: DepthOptions) -> dict[str, Any]:
    """Return how many plies deeper (less deep, if negative) the baseline must search to be as good; None if beyond all handicaps.

    Handicaps grow from 0 in the direction of the weaker side; between the last two the crossing of one half is interpolated.
    """
    tried: list[dict[str, Any]] = []

    def points_at(handicap: int) -> float:
        mine = options.play_depth + max(-handicap, 0)
        theirs = options.play_depth + max(handicap, 0)
        first, second = (
            EvaluatorPlayer(one, options.rules, depth) for one, depth in ((name, mine), (options.baseline, theirs))
        )
        result = duel(first, second, options.rules, options.games, options.seed)
        tried.append({"handicap": handicap, **result})
        return result["points"]

    last = points_at(0)
    step = 1 if last >= 0.5 else -1
    gained: float | None = None
    for handicap in range(step, step * (MAX_HANDICAP + 1), step):
        score = points_at(handicap)
        if (score - 0.5) * step <= 0:
            share = (last - 0.5) / (last - score) if last != score else 0.0
            gained = handicap - step + step * abs(share)
            break
        last = score
    if step > 0 and tried[0]["points"] == 0.5:
        gained = 0.0
    return {"plies_gained": gained, "at_least": step * MAX_HANDICAP if gained is None else None, "handicaps": tried}


@report("depth")
def section(results: Results) -> Iterator[Block]:
    """Performance model 4: search depth."""
    for one in results:
        columns: dict[str, Cell] = {
            "evaluator": "{evaluator}",
            f"depth in {one['seconds']:g} s": lambda entry: with_interval(
                entry["depth_at_equal_time"], entry["depth_interval"], 1
            ),
            "nodes": count_cell("nodes_at_equal_time"),
            f"nodes to depth {one['depth']}": count_cell("nodes_to_depth"),
            f"points at {one['play_depth']} plies": lambda entry: points(entry["handicaps"][0]),
            "plies gained": _gained,
        }
        games = f"{one['positions']} positions, {one['games']} games per handicap against {one['baseline']}"
        yield table(f"{game_name(one)}: {games}; 95 % intervals", one["evaluators"], columns)
    caption = "Points by handicap, with 95 % intervals; where a line crosses one half are the plies gained."
    yield figure("depth", caption, [_panel(one) for one in results], 2.9, share_y=True)


def _gained(entry: Row) -> str:
    gained = entry["plies_gained"]
    return f"beyond {entry['at_least']:+d}" if gained is None else f"{gained:+.1f}"


def _panel(one: Row) -> Panel:
    series = []
    for entry in one["evaluators"]:
        tried = sorted(entry["handicaps"], key=lambda each: each["handicap"])
        series.append(points_series(entry["evaluator"], [each["handicap"] for each in tried], tried))
    axis = {
        "xlabel": f"plies that {one['baseline']} searches deeper",
        "ylabel": "points, per cent",
        "xticks": range(-MAX_HANDICAP, MAX_HANDICAP + 1),
    }
    return Panel(game_name(one), series, axis, {"": 50})
