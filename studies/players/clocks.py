"""What sharing out a game clock gains: ``python -m studies.players.clocks --seconds 10 --pairs 200 --workers 8``, a JSON object.

The same engine plays itself, with one clock a side and game: by the shares of `play.time_control` on one side, on the other by
those of an earlier version (equal ones until 22 squares are empty, and all of them used). Every opening is played from both sides.
Moves are timed by the wall clock: leave each worker a core of its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable
from functools import partial
from itertools import islice
from time import perf_counter

import numpy as np

from play.time_control import MIN_SECONDS, OVERHEAD_PART, OVERHEAD_SECONDS, TimeControl
from reversi_env import Position, Rules
from reversi_env.rules import BLACK, WHITE, Colour
from search.engine.engine import Engine
from search.engine.limits import Limits
from train.arena.openings import opening_sequence
from train.evaluation.means import Sample

OPENING_PLIES, BALANCE = 8, 4.0


def equal_shares(clock: TimeControl, position: Position) -> Limits:
    """The limits of the earlier version: equal shares, with six kept for the solution, and no search that ends early."""
    usable = max(0.0, clock.left * (1 - OVERHEAD_PART) - OVERHEAD_SECONDS)
    solving = 0.35 if position.empties > 2 else 0.5
    part = solving if position.empties <= 22 else 1 / ((position.empties - 21) // 2 + 6)
    return Limits(time=max(usable * part, MIN_SECONDS))


def weighted_shares(clock: TimeControl, position: Position) -> Limits:
    """The shares of today, all of them used."""
    return Limits(time=clock.usual_seconds(position))


def as_played(clock: TimeControl, position: Position) -> Limits:
    return Limits(time=clock.max_seconds(position), soft=clock.usual_seconds(position))


WAYS: dict[str, Callable[[TimeControl, Position], Limits]] = {
    "equal": equal_shares,
    "weighted": weighted_shares,
    "played": as_played,
}


def play_pair(way: str, other: str, seconds: float, start: Position) -> tuple[list[int], list[float]]:
    """The discs by which *way* won each of two games from *start*, and the seconds that it had left."""
    engines, discs, left = [Engine("network", start.rules) for _ in range(2)], [], []
    for colour in (BLACK, WHITE):
        for engine in engines:
            engine.clear()
        ways = {colour: (WAYS[way], engines[0]), colour.other: (WAYS[other], engines[1])}
        score, clocks = play_game(ways, seconds, start)
        discs.append(score if colour == BLACK else -score)
        left.append(clocks[colour].left)
    return discs, left


def play_game(
    ways: dict[Colour, tuple[Callable[[TimeControl, Position], Limits], Engine]], seconds: float, position: Position
) -> tuple[int, dict[Colour, TimeControl]]:
    """Black's score, and both clocks at the end."""
    clocks = dict.fromkeys((BLACK, WHITE), TimeControl(seconds))
    while not position.is_over():
        limits, engine = ways[position.turn]
        began = perf_counter()
        move = engine.search(position, limits(clocks[position.turn], position)).move
        clocks[position.turn] = clocks[position.turn].after(perf_counter() - began)
        position = position.play(move or "pass")
    return position.score(BLACK), clocks


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m studies.players.clocks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of a side for a game (default 10)")
    parser.add_argument("--pairs", type=int, default=100, help="openings, each played from both sides (default 100)")
    parser.add_argument("--way", choices=WAYS, default="played", help="of sharing out the clock (default: played)")
    parser.add_argument("--against", choices=WAYS, default="equal", help="the other way (default: equal)")
    parser.add_argument("--workers", type=int, default=1, help="processes, each of which needs a core")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    openings = opening_sequence("balanced", Rules(), OPENING_PLIES, chosen.seed, BALANCE)
    starts = [opening.position for opening in islice(openings, chosen.pairs)]
    play = partial(play_pair, chosen.way, chosen.against, chosen.seconds)
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        games = pool.map(play, starts, chunksize=1)
    discs = np.array([pair for pair, _ in games], float)
    points = ((np.sign(discs) + 1) / 2).mean(1)
    by_pair = Sample(np.zeros(len(points)))
    print(
        json.dumps(
            vars(chosen)
            | {"score": points.mean(), "score_interval": by_pair.mean(points).interval}
            | {"discs": discs.mean(), "discs_interval": by_pair.mean(discs.mean(1)).interval}
            | {"seconds_left": float(np.mean([left for _, left in games]))}
        )
    )


if __name__ == "__main__":
    main()
