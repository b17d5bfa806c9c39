"""Nodes of minimax and of alpha-beta in board order; and positions of random games to search."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules
from search.evaluators.registry import get_evaluator
from studies.game_tree.kernels import count_trees
from train.arena.batch import RandomPlayer, play_games
from train.arena.openings import Openings

#: Boards of the side to move and of the other side, and the game of each position.
Positions = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]


class Counts(NamedTuple):
    """For every position: nodes, inner nodes (whose moves were searched), moves searched there, and the value in UNITs."""

    nodes: NDArray[np.int64]
    inner: NDArray[np.int64]
    moves: NDArray[np.int64]
    values: NDArray[np.int64]


def count_nodes(
    own: NDArray[np.uint64], opp: NDArray[np.uint64], evaluator: str, rules: Rules, depth: int, *, prunes: bool
) -> Counts:
    """Search every position to *depth* plies, by alpha-beta if *prunes*, otherwise by minimax; return the counts."""
    counts, nets = np.zeros((own.size, 4), np.int64), get_evaluator(evaluator).record(rules)
    count_trees(own.size, nets, own, opp, np.uint64(rules.playable), rules.sign, depth, prunes, counts)
    return Counts(*counts.T)


def positions_of_games(rules: Rules, games: int, rounds: Sequence[int], seed: int = 0) -> Positions:
    """Return the positions of *games* random games whose number of discs is in *rounds* and whose side to move has a move."""
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
    parts = [part for of_round in found.values() for part in of_round]
    own, opp, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
    return own, opp, numbers
