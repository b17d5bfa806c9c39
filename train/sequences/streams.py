"""`GameStream`: endless batches of games as tokens, born on the device that trains, from random play, agents or files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.gpt.tokens import PADDING
from reversi_env import Rules, batch
from reversi_env.errors import TrainError, extra_libraries, quoted
from reversi_env.options import derive_seed
from reversi_env.rules import PASS_NAME
from search.agents.spec import AgentSpec
from train.arena.batch import AgentPlayer, BatchPlayer, Boards, Indices, RngStates, compiled_player, play_games
from train.arena.openings import Openings, games_of_file
from train.kernels import sequences
from train.kernels.sequences import END, MAX_MOVES, is_for_validation
from train.sequences.options import Split, StreamOptions

with extra_libraries():
    import torch
    from torch.utils.data import IterableDataset

#: Squares of games, ``(games, MAX_MOVES)``, without passes, `END` after the end.
Squares = NDArray[np.uint8]
Numbers = NDArray[np.uint64]  #: of games in a stream


class GameStream(IterableDataset[torch.Tensor]):
    """Batches of games as tokens: uint8 tensors ``(batch_size, vocabulary.length)`` with 0 after the end, endlessly.

    Batch *k* depends on the arguments and *k* alone. A GPU plays the same random games as a CPU. ``state`` is the number of the
    next batch; set it to resume a stream. The hash of a game's first ``options.prefix`` moves decides whether it is for training
    or, 1 in 16, for validation. Seed and variant do not count, so games of the two splits never have the same first moves.
    """

    def __init__(
        self, options: StreamOptions, batch_size: int, *, split: Split = "train", device: str | torch.device = "cpu"
    ) -> None:
        self.options, self.batch_size, self.device = options, batch_size, torch.device(device)
        self.vocabulary, self.state = options.vocabulary, 0
        self._is_validation = split == "validation"
        self._games = self._source(options.source)
        prefixes = [[*self.vocabulary.prefix(rules.variant), PADDING] for rules in options.rules]
        self._tables = self.vocabulary.token_of_square, np.array(prefixes, np.uint8)

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            self.state += 1
            yield self.batch(self.state - 1)

    def batch(self, number: int) -> torch.Tensor:
        """Return batch *number*, counted from 0."""
        shape, first = (self.batch_size, self.vocabulary.length), number * self.batch_size
        variants = self.options.rules
        if self.device.type == "cuda" and self.options.source == "random":
            from train.sequences.gpu import random_tokens

            selection = np.uint64(self.options.seed), np.uint64(first), self.options.prefix, self._is_validation
            return random_tokens(shape, self._tables, _boards_of(variants[0]), selection, self.device)
        numbers = np.arange(first, first + self.batch_size, dtype=np.uint64)
        squares, tokens = np.empty((self.batch_size, MAX_MOVES), np.uint8), np.empty(shape, np.uint8)
        for turn, rules in enumerate(variants):
            rows = slice((turn - first) % len(variants), None, len(variants))
            squares[rows] = self._games(rules, numbers[rows])
        boards = _boards_of(variants[0])
        sequences.tokens_of_games(len(tokens), squares, *self._tables, *boards, np.uint64(first), tokens)
        return torch.from_numpy(tokens).to(self.device)

    def _source(self, text: str) -> Callable[[Rules, Numbers], Squares]:
        """Return the function that makes games: random ones, those of a file, or of agents with a temperature in discs."""
        if text == "random":
            return self._random_games
        if Path(text).exists():
            recorded = self._games_of_file(Path(text))
            return lambda rules, numbers: recorded[numbers % np.uint64(len(recorded))]
        names, _, temperature = text.partition("@")
        try:
            agents = [AgentSpec.parse(name) for name in names.split("+")]
            played = partial(self._played_games, agents, float(temperature or 0))
            played(self.options.rules[0], np.zeros(1, np.uint64))
        except ValueError as error:
            raise TrainError(
                f"source={quoted(text)}: {error}; expected random, a file of games, or agents as network:depth=2@1"
            ) from None
        return played

    def _random_games(self, rules: Rules, numbers: Numbers, limit: int = MAX_MOVES) -> Squares:
        """Return the first *limit* moves of uniformly random games."""
        squares = np.empty((len(numbers), MAX_MOVES), np.uint8)
        split, boards = (self.options.prefix, self._is_validation), _boards_of(rules)
        sequences.random_games(len(numbers), squares, *boards, np.uint64(self.options.seed), numbers, limit, *split)
        return squares

    def _games_of_file(self, path: Path) -> Squares:
        """Return the split's games of a file (WTHOR, GGF, or transcripts) in random order; an illegal game raises."""
        rows, [rules, *_] = [], self.options.rules
        for where, game in games_of_file(path, rules):
            if (game.start.black, game.start.white) != rules.start_boards or game.start.rules.size != rules.size:
                raise TrainError(f"{where} of {str(path)!r} has another start: expected that of {rules}")
            game.final()  # raises if a move is illegal
            squares = [rules.square_of(rules.action_from_name(move)) for move in game.moves if move != PASS_NAME]
            rows.append(np.array(squares + [END] * (MAX_MOVES - len(squares)), np.uint8))
        rows = [row for row in rows if is_for_validation(row, self.options.prefix) == self._is_validation]
        if not rows:
            raise TrainError(f"{str(path)!r} has no games of this split: expected a file with more games")
        return np.random.default_rng(self.options.seed).permutation(np.array(rows))

    def _played_games(self, agents: list[AgentSpec], temperature: float, rules: Rules, numbers: Numbers) -> Squares:
        """Return games of agents after random moves. They depend on the first number, and each on its place."""
        seeds = [derive_seed(self.options.seed, int(numbers[0]), i) for i in range(len(agents) + 2)]
        players = [_player(agent, rules, temperature, seed) for agent, seed in zip(agents, seeds[2:], strict=True)]
        squares = self._random_games(rules, numbers, self.options.prefix)
        drawn = np.random.default_rng(seeds[0]).integers(len(players), size=(2, len(numbers)))
        black, white = (_Side(players, one, squares, self.options.prefix) for one in drawn)
        openings = Openings(*batch.start(len(numbers), rules), np.ones(len(numbers), np.bool_))
        play_games(black, white, openings, rules, seed=seeds[1])
        return squares


@dataclass
class _Side:
    """One side of many games: plays the first *prefix* of the *squares*, then as the *drawn* players, and notes their moves."""

    players: list[BatchPlayer]
    drawn: Indices
    squares: Squares
    prefix: int

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        move = int(np.bitwise_count(own[0] | opp[0])) - 4  # the same in all games, since passes are not chosen
        for index, player in enumerate(self.players) if move >= self.prefix else ():
            rows = np.flatnonzero(self.drawn[games] == index)
            if rows.size:
                states = rng_states[rows]
                self.squares[games[rows], move] = player.choose(own[rows], opp[rows], games[rows], states)
                rng_states[rows] = states
        return self.squares[games, move].astype(np.int64)


def _player(agent: AgentSpec, rules: Rules, temperature: float, seed: int) -> BatchPlayer:
    if player := compiled_player(agent, rules, temperature=temperature, threads=None):
        return player
    if temperature:
        raise TrainError(f"agent {quoted(str(agent))} with a temperature: expected an evaluator, as network:depth=2")
    return AgentPlayer(agent.make(seed=seed), rules)


def _boards_of(rules: Rules) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return black's and white's discs at the start, and the squares of the board."""
    black, white = rules.start_boards
    return np.uint64(black), np.uint64(white), np.uint64(rules.playable)
