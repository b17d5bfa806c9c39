"""Games of the network in training: its policy and its value as players, and the positions that they come to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.extras import extra_libraries
from train.games.batch import perfect_squares, play_games
from train.games.openings import Openings, passed
from train.judging.exact import Boards
from train.rl.expert_labels import BATCH, network_move_values
from train.rl.expert_options import ExpertOptions
from train.rl.network import PolicyValueNet

with extra_libraries():
    import torch

#: Games that are played at once: enough that a game's positions are a small part of a round's.
MOST_GAMES, FEWEST_GAMES, POSITIONS_A_GAME = 512, 16, 8
#: Times that so many games are played without a new position before a round takes what it has.
DRY_ROUNDS = 3


class PolicyPlayer:
    """Plays the network's policy: each game at a temperature of its own, 0 for the best move, and at random with some probability.

    ``temperatures[game]`` and *noise*; the lots are drawn from the games' generators, so that a game depends on itself alone.
    """

    def __init__(
        self, net: PolicyValueNet, rules: Rules, temperatures: NDArray[np.float64] | None = None, noise: float = 0.0
    ) -> None:
        self.net, self.rules, self.noise = net, rules, noise
        self.temperatures = temperatures
        self._squares = np.array(list(rules.squares()), np.int64)

    def choose(
        self, own: Boards, opp: Boards, games: NDArray[np.int64], states: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """A legal square for every position."""
        numbers = policy_numbers(self.net, own, opp, self.rules)
        if self.temperatures is not None:
            temperature = self.temperatures[games]
            drawn = numbers / np.where(temperature > 0, temperature, 1)[:, None] + _gumbel(states, numbers.shape[1])
            numbers = np.where(temperature[:, None] > 0, drawn, numbers)
        if self.noise > 0:
            lots = _fractions(states, 1)[:, 0] < self.noise
            anything = np.where(np.isneginf(numbers), -np.inf, _gumbel(states, numbers.shape[1]))
            numbers = np.where(lots[:, None], anything, numbers)
        return self._squares[numbers.argmax(axis=1)]


class ValuePlayer:
    """Plays the move that a search of *depth* plies over the network's value finds best; perfectly from *exact* empties on."""

    def __init__(self, net: PolicyValueNet, rules: Rules, depth: int = 2, exact: int = 10) -> None:
        self.net, self.rules, self.depth, self.exact = net, rules, depth, exact
        self._squares = np.array(list(rules.squares()), np.int64)

    def choose(
        self, own: Boards, opp: Boards, games: NDArray[np.int64], states: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """A best square for every position."""
        squares = np.empty(len(own), np.int64)
        solved = self.rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= self.exact
        if solved.any():
            squares[solved] = perfect_squares(own[solved], opp[solved], self.rules, states[solved])
        rest = ~solved
        values = network_move_values(self.net, own[rest], opp[rest], self.rules, self.depth)
        squares[rest] = self._squares[values.argmax(axis=1)] if rest.any() else 0
        return squares


def policy_numbers(net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules) -> NDArray[np.float64]:
    """Logits of all actions but the pass, (N, squares); minus infinity where illegal."""
    parts = []
    for start in range(0, len(own), BATCH):
        rows = slice(start, start + BATCH)
        numbers = net.of_boards(own[rows], opp[rows])[0].to("cpu", torch.float64)[:, :-1].numpy()
        legal = batch.legal_moves(own[rows], opp[rows], rules)[:, None]
        squares = np.array(list(rules.squares()), np.uint64)
        parts.append(np.where((legal >> squares) & np.uint64(1) != 0, numbers, -np.inf))
    return np.concatenate(parts)


def _gumbel(states: NDArray[np.uint64], count: int) -> NDArray[np.float64]:
    """Noise under which the largest of some numbers is a draw from their softmax."""
    return -np.log(-np.log(_fractions(states, count)))


def _fractions(states: NDArray[np.uint64], count: int) -> NDArray[np.float64]:
    """*count* numbers above 0 and below 1 for every generator, which is moved on: splitmix64, as in the kernels."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = states[:, None] + steps
    states += steps[-1]
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


# --- positions ------------------------------------------------------------------------------------


def image_hashes(own: Boards, opp: Boards) -> list[int]:
    """Hashes that all symmetric images of a position share."""
    hashes: list[int] = batch.position_hash(*batch.canonical(own, opp)[:2]).tolist()
    return hashes


class Collector:
    """An observer of games that keeps the positions that are not *known* yet, by hash; images of a position count as it."""

    def __init__(self, known: set[int]) -> None:
        self.known = known
        self.found: dict[int, tuple[int, int]] = {}

    def __call__(self, games: NDArray[np.int64], own: Boards, opp: Boards, a_moves: NDArray[np.bool_]) -> None:
        """Look at the positions of all games, in each of which a move is to be made."""
        for key, *boards in zip(image_hashes(own, opp), own.tolist(), opp.tolist(), strict=True):
            if key not in self.known:
                self.found.setdefault(key, (boards[0], boards[1]))

    def drawn(self, count: int, generator: np.random.Generator) -> tuple[Boards, Boards]:
        """*count* of those found, or all: of all stages of the games alike. They are known from now on."""
        keys = list(self.found)
        chosen = [keys[i] for i in np.sort(generator.permutation(len(keys))[:count])]
        self.known.update(chosen)
        boards = np.array([self.found[key] for key in chosen], np.uint64).reshape(-1, 2)
        return boards[:, 0].copy(), boards[:, 1].copy()


def new_positions(
    net: PolicyValueNet,
    options: ExpertOptions,
    iteration: int,
    known: set[int],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Boards, Boards]:
    """Positions of games that the network plays against itself, with noise; *known* are hashes, to which theirs are added.

    They depend on the network, the options, the *iteration* and what is known alone. A small board may have fewer than are wanted.
    """
    found, dry, rules = Collector(known), 0, options.rules
    generator = np.random.default_rng((options.seed, iteration))
    games = min(MOST_GAMES, max(FEWEST_GAMES, options.positions // POSITIONS_A_GAME))
    while len(found.found) < options.positions and dry < DRY_ROUNDS:
        before = len(found.found)
        first, second = (
            PolicyPlayer(net, rules, generator.choice(np.array(options.temperatures), games), options.noise)
            for _ in range(2)
        )
        openings, seed = _openings(games, options, generator), int(generator.integers(1 << 32))
        play_games(first, second, openings, rules, seed=seed, observer=found)
        dry = dry + 1 if len(found.found) == before else 0
        progress(min(len(found.found), options.positions), options.positions)
    return found.drawn(options.positions, generator)


def _openings(games: int, options: ExpertOptions, generator: np.random.Generator) -> Openings:
    """Positions after random plies, every number up to the options' as likely; a pass is made at once."""
    plies = generator.integers(0, options.opening_plies + 1, games)
    boards = batch.random_positions(games, plies, options.rules, seed=int(generator.integers(1 << 32)))
    own, opp, _ = passed(*boards, options.rules)
    return Openings(own, opp, generator.random(games) < 0.5)
