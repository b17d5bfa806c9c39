"""`GameStream`: endless batches of games as tokens, from random play, agents or files; `write_tokens` writes Parquet files."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.errors import TrainError, extra_libraries, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.options import derive_seed
from reversi_env.storage.atomic import write_atomically
from search.agents.spec import AgentSpec
from train.arena.batch import AgentPlayer, BatchPlayer, compiled_player
from train.arena.openings import games_of_file
from train.jobs.logs import Progress, no_progress
from train.jobs.run import MANIFEST, Run, check_resumable, read_json
from train.kernels.sequences import END, is_for_validation, random_games
from train.labels.dataset import Shard, checked_bytes, require_pyarrow
from train.sequences.options import Split, StreamOptions, TokenOptions

with extra_libraries():
    import torch
    from torch.utils.data import IterableDataset

FORMAT = "reversi-tokens-1"
Squares = NDArray[np.uint8]  #: of games, one row per game, `END` after the end; with passes if they are tokens
Numbers = NDArray[np.uint64]  #: of games in a stream


class GameStream(IterableDataset[torch.Tensor]):
    """Batches of games as tokens: uint8 tensors ``(batch_size, vocabulary.length)`` with 0 after the end, endlessly.

    Batch *k* depends on the arguments and *k* alone. A GPU plays the same random games as a CPU. ``state`` is the number of the
    next batch; set it to resume a stream. The hash of a game's first ``options.prefix`` moves decides whether it is for training
    or, 1 in 16, for validation. Seed and variant do not count, so games of the two splits never have the same first moves. If a
    prefix is so short that it comes several times, a model learns which ones are missing.
    """

    def __init__(
        self, options: StreamOptions, batch_size: int, *, split: Split = "train", device: str | torch.device = "cpu"
    ) -> None:
        self.options, self.batch_size, self.device = options, batch_size, torch.device(device)
        self.vocabulary, self.state = options.vocabulary, 0
        self._is_validation = split == "validation"
        words = (*options.rules[0].start_boards, options.rules[0].playable, options.seed)
        self._random = (*map(np.uint64, words), options.prefix, self._is_validation)
        self._games = self._source(options.source)

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            self.state += 1
            yield self.batch(self.state - 1)

    def batches(self, numbers: range) -> Iterator[torch.Tensor]:
        """Yield the batches with these numbers. A thread makes the next one if its games are not random, which takes time."""
        if self.options.source == "random":
            yield from map(self.batch, numbers)
            return
        with ThreadPoolExecutor(1) as thread:
            ahead = [thread.submit(self.batch, number) for number in numbers[:1]]
            for number in numbers[1:]:
                ahead.append(thread.submit(self.batch, number))
                yield ahead.pop(0).result()
            yield from (future.result() for future in ahead)

    def batch(self, number: int) -> torch.Tensor:
        """Return batch *number*, counted from 0."""
        first, variants = number * self.batch_size, self.options.rules
        numbers = np.arange(first, first + self.batch_size, dtype=np.uint64)
        turns = numbers % np.uint64(len(variants))
        special = np.array([self.vocabulary.special_tokens(rules.variant) for rules in variants], np.uint8)[turns]
        rows = np.empty((self.batch_size, self.vocabulary.length - special.shape[1]), np.uint8)
        if self.device.type == "cuda" and self.options.source == "random":
            from train.sequences.gpu import random_squares

            squares = random_squares(rows.shape, first, (*self._random, self.options.passes), self.device)
        else:
            for turn, rules in enumerate(variants):
                rows[turns == turn] = self._games(rules, numbers[turns == turn])[:, : rows.shape[1]]
            squares = torch.from_numpy(rows).to(self.device)
        token_of_square = torch.from_numpy(self.vocabulary.token_of_square).to(squares.device)
        tokens = token_of_square.index_select(0, squares.flatten().int()).view(squares.shape)
        return torch.cat([torch.from_numpy(special).to(squares.device), tokens], 1)

    def _source(self, text: str) -> Callable[[Rules, Numbers], Squares]:
        """Return the function that makes games: random ones, those of a file, or of agents with a temperature in discs."""
        if text == "random":
            return lambda rules, numbers: self._random_games(numbers, self.options.passes)
        if Path(text).exists():
            recorded = self._games_of_file(Path(text))
            return lambda rules, numbers: recorded[numbers % np.uint64(len(recorded))]
        if self.options.prefix >= (moves := self.options.size**2 - 4):
            raise TrainError(
                f"prefix={self.options.prefix}: agents play after these moves; expected fewer than {moves}"
            )
        names, _, temperature = text.partition("@")
        try:
            agents = [AgentSpec.parse(name) for name in names.split("+")]
            played = partial(self._played_games, agents, float(temperature or 0))
            played(self.options.rules[0], np.zeros(1, np.uint64))
        except ValueError as error:
            raise TrainError(f"source={quoted(text)}: {error}; expected random, a file, or network:depth=2@1") from None
        return played

    def _random_games(self, numbers: Numbers, passes: bool) -> Squares:
        moves = self.options.size**2 - 4
        squares = np.empty((len(numbers), 2 * moves - 1 if passes else moves), np.uint8)
        random_games(len(numbers), squares, numbers, *self._random, passes)
        return squares

    def _games_of_file(self, path: Path) -> Squares:
        """Return the split's games of a file (WTHOR, GGF, or transcripts) in random order; an illegal game raises."""
        rows, rules = [], self.options.rules[0]
        squares = [*rules.squares(), PASS_SQUARE]
        for where, game in games_of_file(path, rules):
            if (game.start.black, game.start.white) != rules.start_boards or game.start.rules.size != rules.size:
                raise TrainError(f"{where} of {str(path)!r} has another start: expected that of {rules}")
            game.final()  # raises if a move is illegal
            moves = [squares[rules.action_from_name(move)] for move in game.moves]
            rows.append(np.array(moves + [END] * (2 * rules.square_count - len(moves)), np.uint8))
        rows = [row for row in rows if is_for_validation(row, self.options.prefix) == self._is_validation]
        if not rows:
            raise TrainError(f"{str(path)!r} has no games of this split: expected a file with more games")
        return np.random.default_rng(self.options.seed).permutation(self._without_passes(np.array(rows)))

    def _played_games(self, agents: list[AgentSpec], temperature: float, rules: Rules, numbers: Numbers) -> Squares:
        """Return games of agents after random moves. They depend on the first number, and each on its place."""
        seeds = [derive_seed(self.options.seed, int(numbers[0]), i) for i in range(len(agents) + 2)]
        players = list[BatchPlayer]()
        for agent, seed in zip(agents, seeds[2:], strict=True):
            player = compiled_player(agent, rules, temperature=temperature, threads=None)
            if temperature and player is None:
                raise TrainError(f"agent {quoted(str(agent))} with a temperature: expected an evaluator")
            players.append(player or AgentPlayer(agent.make(seed=seed), rules))
        drawn = np.random.default_rng(seeds[0]).integers(len(players), size=(2, len(numbers)))
        rng_states = np.random.default_rng(seeds[1]).integers(0, 1 << 63, len(numbers), np.uint64)
        rows, (own, opp) = self._random_games(numbers, passes=True), batch.start(len(numbers), rules)
        for ply in range(rows.shape[1]):
            legal, is_running = batch.legal_moves(own, opp, rules), ~batch.is_over(own, opp, rules)
            is_after_prefix = np.bitwise_count(own | opp) >= 4 + self.options.prefix
            rows[is_after_prefix, ply] = np.where(is_running, PASS_SQUARE, END)[is_after_prefix]
            for index, player in enumerate(players):
                games = np.flatnonzero(is_after_prefix & (legal != 0) & (drawn[ply % 2] == index))
                if games.size:
                    states = rng_states[games]
                    rows[games, ply] = player.choose(own[games], opp[games], games, states)
                    rng_states[games] = states
            moves = rows[is_running, ply], own[is_running], opp[is_running]
            own[is_running], opp[is_running] = batch.play(*moves, rules)
        return self._without_passes(rows)

    def _without_passes(self, rows: Squares) -> Squares:
        """Return the rows without passes unless these are tokens."""
        if self.options.passes:
            return rows
        order = np.argsort(rows == PASS_SQUARE, axis=1, kind="stable")
        return np.take_along_axis(np.where(rows == PASS_SQUARE, np.uint8(END), rows), order, axis=1)


def write_tokens(options: TokenOptions, folder: Path, device: str = "cpu", progress: Progress = no_progress) -> None:
    """Write a part of a stream to *folder*, Parquet files and a manifest with their hashes, or what is missing there."""
    pyarrow, parquet = require_pyarrow()
    stream, path = GameStream(options, options.shard_games, split=options.split, device=device), folder / MANIFEST
    manifest: dict[str, Any] = {"format": FORMAT, "options": options.as_dict(), "shards": []}
    with Run(folder, file=MANIFEST):
        manifest = read_json(path, FORMAT) if path.exists() else manifest
        check_resumable(folder, manifest["options"], options.as_dict())
        for number, first in enumerate(range(0, options.games, options.shard_games)):
            name, rows = f"shard-{number:05d}.parquet", min(options.shard_games, options.games - first)
            shards = manifest["shards"][number : number + 1]
            if shards and (folder / name).exists():
                checked_bytes(folder, Shard(**shards[0]))
            else:
                tokens, content = stream.batch(number)[:rows].cpu().numpy(), io.BytesIO()
                column = pyarrow.FixedSizeListArray.from_arrays(tokens.reshape(-1), tokens.shape[1])
                parquet.write_table(pyarrow.table({"tokens": column}), content, compression="zstd")
                write_atomically(folder / name, content.getvalue())
                shard = Shard(name, rows, hashlib.sha256(content.getvalue()).hexdigest())
                manifest["shards"][number : number + 1] = [vars(shard)]
                write_atomically(path, (json.dumps(manifest, indent=1) + "\n").encode())
            progress("games", first + rows, options.games)


def read_tokens(folder: Path) -> NDArray[np.uint8]:
    """Return the tokens of a dataset, ``(games, length)``; a missing or damaged file raises a `TrainError`."""
    pyarrow, parquet = require_pyarrow()
    parts = []
    for shard in (Shard(**entry) for entry in read_json(folder / MANIFEST, FORMAT)["shards"]):
        table = parquet.read_table(pyarrow.BufferReader(checked_bytes(folder, shard)))
        parts.append(table["tokens"].combine_chunks().flatten().to_numpy().reshape(shard.rows, -1))
    return np.concatenate(parts)
