"""Nodes that the engine's search visits with any set of its refinements; and positions of random games to search."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules
from search.engine.deepening import ASPIRATION_WINDOW
from search.engine.probcut import PROBCUT_FIELDS
from search.engine.table import TranspositionTable
from search.engine.threads import make_thread_states
from search.evaluators.base import Evaluator
from search.evaluators.registry import get_evaluator
from search.kernels.evaluate import INFINITY
from search.kernels.midgame import negamax
from search.kernels.thread_state import ALPHA_BETA as PRUNES
from search.kernels.thread_state import ETC, NULL_WINDOWS, REPLY_ORDER, THREAD_STATE, VALUE_ORDER
from train.arena.batch import RandomPlayer, play_games
from train.arena.openings import Openings

#: Table of a search, in MiB.
TABLE_SIZE = 4.0
#: The engine's record, with the refinements that are on and counts of inner nodes and of moves searched at them: see
#: `search.kernels.thread_state`. They come first: numba takes a record that begins as another does for one of the other's kind.
COUNTED = np.dtype(
    [
        ("switches", np.int64),
        ("counts", np.int64, (2,)),
        *((name, THREAD_STATE[name]) for name in THREAD_STATE.names or ()),
    ],
    align=True,
)


@dataclass(frozen=True)
class Refinement:
    """A way to search: bits of `search.kernels.thread_state`, a table or none, deepening or not, windows around the last value."""

    name: str
    switches: int
    table: bool = False
    deepens: bool = False
    aspires: bool = False
    cuts: bool = False  #: ProbCut, whose values are no longer those of minimax


_ORDERED = PRUNES | REPLY_ORDER | VALUE_ORDER
_ALL = _ORDERED | NULL_WINDOWS | ETC
#: The engine's refinements in the order in which they are added. All but the last leave the value as it is.
REFINEMENTS = (
    Refinement("minimax", 0),
    Refinement("+ alpha-beta", PRUNES),
    Refinement("+ moves with few replies first", PRUNES | REPLY_ORDER),
    Refinement("+ and a good value first", _ORDERED),
    Refinement("+ null windows", _ORDERED | NULL_WINDOWS),
    Refinement("+ transposition table", _ORDERED | NULL_WINDOWS, table=True),
    Refinement("+ successors looked up first", _ALL, table=True),
    Refinement("+ iterative deepening", _ALL, table=True, deepens=True),
    Refinement("+ aspiration windows", _ALL, table=True, deepens=True, aspires=True),
    Refinement("+ ProbCut", _ALL, table=True, deepens=True, aspires=True, cuts=True),
)
MINIMAX, ALPHA_BETA, SORTED = REFINEMENTS[0], REFINEMENTS[1], REFINEMENTS[3]


#: Boards of the side to move and of the other side, and the game of each position.
Positions = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]


class Counts(NamedTuple):
    """For every position: nodes, inner nodes (whose moves were searched), moves searched there, and the value in UNITs."""

    nodes: NDArray[np.int64]
    inner: NDArray[np.int64]
    moves: NDArray[np.int64]
    values: NDArray[np.int64]


def count_nodes(
    own: NDArray[np.uint64],
    opp: NDArray[np.uint64],
    evaluator: Evaluator | str,
    rules: Rules,
    depth: int,
    refinement: Refinement,
    *,
    probcut: np.ndarray | None = None,
    margin: float = 1.5,
) -> Counts:
    """Search every position to *depth* plies, each with an empty table."""
    owner = get_evaluator(evaluator)  # stays alive, because its record may point to its weights
    nets = owner.record(rules)
    counts = Counts(*(np.zeros(own.size, np.int64) for _ in range(4)))

    def run(rows: NDArray[np.int64]) -> None:
        thread_states = make_thread_states(rules, dtype=COUNTED)
        thread_states["switches"] = refinement.switches
        table = TranspositionTable(TABLE_SIZE) if refinement.table else None
        if table is not None:
            table.attach(thread_states, "estimates")
        if refinement.cuts and probcut is not None:
            thread_states["probcut_margin"] = margin
            for name in PROBCUT_FIELDS:
                thread_states[name] = probcut[name]
        for row in rows:
            if table is not None:
                table.words()[:] = 0
            thread_states["nodes"], thread_states["counts"] = 0, 0
            counts.values[row] = _search(thread_states[0], nets[0], own[row], opp[row], depth, refinement)
            counts.nodes[row] = thread_states["nodes"][0]
            counts.inner[row], counts.moves[row] = thread_states["counts"][0]

    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(run, rows) for rows in np.array_split(np.arange(own.size), 4 * count) if rows.size]:
            future.result()
    return counts


def _search(thread: np.void, net: np.void, own: np.uint64, opp: np.uint64, depth: int, refinement: Refinement) -> int:
    """Value of one position to *depth* plies in UNITs, at once or deepening from 1, then around the last value or not."""
    value = 0
    for step in range(1 if refinement.deepens else depth, depth + 1):
        low, high = -INFINITY, INFINITY
        if refinement.aspires and step > 1:
            low, high = value - ASPIRATION_WINDOW, value + ASPIRATION_WINDOW
        value = negamax(thread, net, own, opp, low, high, step)
        if value <= low or value >= high:  # outside the window: only a bound
            value = negamax(thread, net, own, opp, -INFINITY, INFINITY, step)
    return value


def positions_by_round(rules: Rules, games: int, rounds: Sequence[int], seed: int = 0) -> dict[int, Positions]:
    """Return the positions of *games* random games with so many discs and a move to make, by their number of discs."""
    found: dict[int, list[Positions]] = {number: [] for number in rounds}

    def record(
        numbers: NDArray[np.int64], own: NDArray[np.uint64], opp: NDArray[np.uint64], a_moves: NDArray[np.bool_]
    ) -> None:
        discs = np.bitwise_count(own | opp)
        for number in found.keys() & set(discs.tolist()):
            of_round = discs == number
            found[number].append((own[of_round], opp[of_round], numbers[of_round]))

    black, white = (np.full(games, board, np.uint64) for board in rules.start_boards)
    player = RandomPlayer(rules)
    play_games(player, player, Openings(black, white, np.ones(games, np.bool_)), rules, seed=seed, observer=record)
    return {number: _joined(parts) for number, parts in found.items()}


def positions_of_games(rules: Rules, games: int, rounds: Sequence[int], seed: int = 0) -> Positions:
    """Return the same positions of all rounds together."""
    return _joined([*positions_by_round(rules, games, rounds, seed).values()])


def _joined(parts: Sequence[Positions]) -> Positions:
    none = np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64)
    own, opp, games = (np.concatenate(column) for column in zip(none, *parts, strict=True))
    return own, opp, games
