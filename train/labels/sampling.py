"""Sampling of the positions of a dataset, which its options alone decide.

**Rows.** Row *k* has ``low + k % strata`` empties, so every shard has equally many positions per number of empties.

**No duplicates, and no state between shards.** Symmetric images of a position share a key, a hash of the canonical form. The
key space is divided into as many equal parts as there are blocks. A block (the shards that fit in memory together) takes only
positions of its own part and records their keys. Therefore no position is in two blocks or twice in one, and blocks are
independent: shards can be made in any order, on any machine, after any interruption. All blocks use the same games from number
0 on, and take the first positions, in the order of the games, that fill their rows. A dataset of *k* blocks therefore plays its
games *k* times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import TrainError, check_integer
from reversi_env.kernels.parallel import core_count
from search import evaluators
from search.engine.threads import checked_threads, make_thread_states
from search.evaluators.base import Evaluator
from train.jobs.logs import load_state, save_state
from train.kernels.noisy_games import GAME_SETTINGS, keep_new, play_games
from train.labels.options import LabelOptions

Boards = NDArray[np.uint64]
#: Plays games: index of the first, their number (a multiple of CHUNK), which numbers of empties are needed. Returns own boards,
#: other boards and keys, a row per game and a column per number of empties, as `play_games` does, possibly more than needed.
Play = Callable[[int, int, NDArray[np.bool_]], tuple[Boards, Boards, Boards]]
#: Games per call of the kernel.
CHUNK = 128
#: Limits of the games per round.
MAX_GAMES, MIN_GAMES = 1 << 15, 1 << 8
#: Time between two checkpoints of a block, at least this multiple of the time of the last one.
SAVE_SECONDS, SAVE_INTERVAL_FACTOR = 60.0, 20.0
#: Rows of the largest block that has checkpoints: one is assembled in memory, at 40 to 56 bytes per row.
MAX_CHECKPOINT_ROWS = 1 << 25
#: Arrays of a checkpoint: attributes of `_Sampling`.
CHECKPOINT_FIELDS = ("own", "opp", "game", "kept", "found", "seen", "dry_games", "quota", "games")
#: A round is dry for a number of empties if fewer than one in this many positions is new.
EXHAUSTED_RATIO = 1000
#: After this many games of consecutive dry rounds, a number of empties counts as exhausted.
MAX_DRY_GAMES = 3 << 10


def sample_positions(
    options: LabelOptions, shard: int, *, threads: int | None = None, player: Evaluator | None = None
) -> tuple[Boards, Boards]:
    """Return the boards (own, opp) of a shard for the side to move. The block of the shard is cached for the next call.

    *player* plays the games instead of the player of the options.
    """
    check_integer("shard", shard, 0, options.shards - 1)
    own, opp = _cached_block(options, shard // options.shards_per_block, threads, player)
    rows = rows_in_block(options, shard)
    return own[rows.start : rows.stop].copy(), opp[rows.start : rows.stop].copy()


def rows_in_block(options: LabelOptions, shard: int) -> range:
    begin, rows = block_rows(options, shard // options.shards_per_block).start, options.rows(shard)
    return range(rows.start - begin, rows.stop - begin)


def block_rows(options: LabelOptions, block: int) -> range:
    shards = block_shards(options, block)
    return range(options.rows(shards[0]).start, options.rows(shards[-1]).stop)


def block_shards(options: LabelOptions, block: int) -> range:
    return range(block * options.shards_per_block, min((block + 1) * options.shards_per_block, options.shards))


@lru_cache(maxsize=1)
def _cached_block(options: LabelOptions, block: int, threads: int | None, player: Any) -> tuple[Boards, Boards]:
    return sample_block(options, block, threads=threads, player=player)


def sample_block(
    options: LabelOptions,
    block: int,
    *,
    threads: int | None = None,
    player: Evaluator | None = None,
    fewer: bool = False,
    most: np.ndarray | None = None,
    play: Play | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int], None] = lambda kept: None,
) -> tuple[Boards, Boards]:
    """Return all positions (own, opp) of a block, in the order of its rows; *progress* is called with their number so far.

    *checkpoint* is a file from which a later call with the same options resumes: it is written every `SAVE_SECONDS`, at Ctrl-C
    and at the end, unless the block has more than `MAX_CHECKPOINT_ROWS` rows. A checkpoint of other options is ignored.
    Too few positions with some number of empties are an error, unless *fewer* allows them. *most* limits the positions for each
    number of empties from the lowest on. *play* plays the games elsewhere than on *threads* of this process.
    """
    sampling = _Sampling(options, block, fewer, most)
    return _sample(sampling, threads, player, play, checkpoint, progress)[:2]


def sample_games(
    options: LabelOptions, *, threads: int | None = None, fewer: bool = False
) -> tuple[Boards, Boards, NDArray[np.int64]]:
    """Return the positions of the first block as `sample_block` does, and the index of the game of each."""
    return _sample(_Sampling(options, 0, fewer), threads)


def _sample(
    sampling: _Sampling,
    threads: int | None,
    player: Evaluator | None = None,
    play: Play | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int], None] = lambda kept: None,
) -> tuple[Boards, Boards, NDArray[np.int64]]:
    count = checked_threads(core_count() if threads is None else threads)
    if len(sampling.own) > MAX_CHECKPOINT_ROWS:
        checkpoint = None
    if checkpoint is not None:
        sampling.restore(checkpoint)
    with ThreadPoolExecutor(count) as pool:
        try:
            games = play or SamplingPlayers(sampling.options, player).on_threads(pool)
            _play_until_full(sampling, games, checkpoint, progress)
        finally:
            pool.shutdown(cancel_futures=True)
    is_filled = (sampling.own | sampling.opp) != 0
    return sampling.own[is_filled], sampling.opp[is_filled], sampling.game[is_filled]


def _play_until_full(sampling: _Sampling, play: Play, checkpoint: Path | None, progress: Callable[[int], None]) -> None:
    saved, due = sampling.games, perf_counter() + SAVE_SECONDS

    def save() -> None:
        nonlocal saved, due
        if checkpoint is not None and sampling.games > saved:
            began = perf_counter()
            sampling.save(checkpoint)
            saved, now = sampling.games, perf_counter()
            due = now + max(SAVE_SECONDS, SAVE_INTERVAL_FACTOR * (now - began))

    try:
        while not sampling.is_full():
            sampling.play_round(play)
            progress(int(sampling.kept.sum()))
            if perf_counter() > due:
                save()
    except KeyboardInterrupt:
        if not sampling.within_round:  # else the positions of a round would be saved without its games
            save()
        raise
    save()


def game_settings(options: LabelOptions) -> np.ndarray:
    """Return the options as the record `GAME_SETTINGS` of the kernels."""
    record = np.zeros(1, GAME_SETTINGS)
    record["low"], record["depth"] = options.empties[0], options.play_depth
    record["random_share"] = options.random_share
    for name, values in (("noise", options.noise), ("temperature", options.temperature), ("prefix", options.prefixes)):
        record[f"{name}_count"] = len(values)
        record["prefixes" if name == "prefix" else f"{name}s"][0, : len(values)] = values
    return record


class SamplingPlayers:
    """Plays the games of a dataset."""

    def __init__(self, options: LabelOptions, player: Evaluator | None = None) -> None:
        self._options, rules = options, options.rules
        self._player = player or evaluators.get_evaluator(
            options.player
        )  # kept: its record may have the address of its weights
        self._nets = self._player.record(rules)
        self._start = tuple(np.uint64(board) for board in rules.start_boards)
        self._settings = game_settings(options)

    def play(self, first: int, wanted: NDArray[np.bool_], own: Boards, opp: Boards, key: Boards) -> None:
        """Play the games from index *first* on, one per row; see `train.kernels.noisy_games.play_games`."""
        play_games(
            *(make_thread_states(self._options.rules), self._nets, *self._start, self._settings),
            *(np.uint64(self._options.seed), np.uint64(first), wanted, own, opp, key),
        )

    def raising_failures(self, stop: Callable[[], None] = lambda: None) -> AbstractContextManager[object]:
        """Call *stop* when a player in Python fails, and raise its error at the end."""
        return self._player.during_search(stop)

    def on_threads(self, pool: ThreadPoolExecutor) -> Play:
        """Return the function that plays games on the threads of a pool."""

        def play(first: int, games: int, wanted: NDArray[np.bool_]) -> tuple[Boards, Boards, Boards]:
            own, opp, key = (np.empty((games, self._options.strata), np.uint64) for _ in range(3))
            failed = Event()

            def run(start: int) -> None:
                rows = slice(start, start + CHUNK)
                if not failed.is_set():
                    self.play(first + start, wanted, own[rows], opp[rows], key[rows])

            with self.raising_failures(failed.set):
                for _ in pool.map(run, range(0, games, CHUNK)):
                    pass
            return own, opp, key

        return play


class _Sampling:
    """The state of the sampling of one block. The size of the rounds has no effect on the result."""

    def __init__(self, options: LabelOptions, block: int, fewer: bool = False, most: np.ndarray | None = None) -> None:
        self.options, self.block, self.fewer = options, block, fewer
        rows = block_rows(options, block)
        strata = np.arange(options.strata)
        self.first_row = (strata - rows.start) % options.strata
        self.quota = np.maximum(0, -((self.first_row - len(rows)) // options.strata))
        if most is not None:
            self.quota = np.minimum(self.quota, most)
        self._wanted = self.quota.tolist()
        self.own, self.opp = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
        self.game = np.zeros(len(rows), np.int64)
        self.kept, self.found = np.zeros_like(self.quota), np.zeros_like(self.quota)
        self.seen = np.zeros(1 << int(2 * len(rows)).bit_length(), np.uint64)
        self.dry_games = np.zeros_like(self.quota)
        self.games, self.within_round = 0, False

    @cached_property
    def _header(self) -> Any:
        player = evaluators.get_evaluator(self.options.player).sha256(self.options.rules)
        header = {"options": self.options.as_dict(), "player_sha256": player, "block": self.block}
        return json.loads(json.dumps({**header, "wanted": self._wanted, "fewer": self.fewer}))

    def save(self, path: Path) -> None:
        arrays = {name: np.asarray(getattr(self, name)) for name in CHECKPOINT_FIELDS}
        save_state(path, arrays, self._header)

    def restore(self, path: Path) -> None:
        """Load a checkpoint, if it exists and is of the same options."""
        header, arrays = load_state(path) or ({}, {})
        if header == self._header and arrays.keys() >= set(CHECKPOINT_FIELDS):
            self.__dict__.update({name: arrays[name].copy() for name in CHECKPOINT_FIELDS})
            self.games = int(self.games)

    def is_full(self) -> bool:
        return bool((self.kept == self.quota).all())

    def play_round(self, play: Play) -> None:
        """Play a number of games and take their new positions in order."""
        missing = int((self.quota - self.kept).max()) * self.options.blocks
        games = -(-min(MAX_GAMES, max(MIN_GAMES, missing)) // CHUNK) * CHUNK
        own, opp, key = play(self.games, games, self.kept < self.quota)
        kept_before, found_before, self.within_round = self.kept.copy(), self.found.copy(), True
        keep_new(
            *(own, opp, key, self.games, self.block, self.options.blocks, self.seen),
            *(self.quota, self.first_row, self.kept, self.found, self.own, self.opp, self.game),
        )
        self.games += games
        self._raise_if_exhausted(games, self.kept - kept_before, self.found - found_before)
        self.within_round = False

    def _raise_if_exhausted(self, games: int, new: np.ndarray, found: np.ndarray) -> None:
        """Raise, or lower the quota if *fewer* allows it, where there are no more positions, as on small boards."""
        dry = (new * EXHAUSTED_RATIO < np.maximum(found, 1)) & (self.kept < self.quota)
        self.dry_games = np.where(dry, self.dry_games + games, 0)
        if self.dry_games.max() < MAX_DRY_GAMES:
            return
        if self.fewer:
            self.quota = np.where(self.dry_games >= MAX_DRY_GAMES, self.kept, self.quota)
            return
        worst = int(np.argmax(self.dry_games))
        options = self.options
        raise TrainError(
            f"only {int(self.kept[worst])} of {int(self.quota[worst])} different positions with "
            f"{options.empties[0] + worst} empties found in {self.games} games on the {options.size}x{options.size} "
            f"board: expected a smaller count, or other empties than {options.empties[0]}-{options.empties[1]}"
        )
