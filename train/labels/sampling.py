"""Sampling: which positions a data set holds, decided by its options alone.

**Rows.** Row *k* of the data set has ``low + k % strata`` empties, so that the whole and every shard are flat.

**No duplicates, and no state between shards.** Symmetric images of a position share a key, a hash of the canonical
form. The key space is cut into as many equal parts as there are blocks; a block (some shards, as many as fit in memory)
keeps only positions of its own part and remembers the keys that it has. So no position can be in two blocks, and none
can be twice in a block, and a block needs to know nothing of the others: shards can be made in any order, on any
machine, after any interruption. All blocks watch the same games from number 0 on, and take the first positions, in the
order of the games, that fill their rows. The price is that a data set of *k* blocks plays its games *k* times.
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

from reversi_env.errors import TrainError, quoted
from reversi_env.kernels.parallel import core_count
from search import evaluators
from search.engine.threads import checked_threads, make_thread_states
from search.evaluators.base import Evaluator
from train.jobs.run import load_state, save_state
from train.kernels.noisy_games import GAMES, keep_new, play_games
from train.labels.options import LabelOptions

Boards = NDArray[np.uint64]
#: Plays games: number of the first, how many (a multiple of CHUNK), which numbers of empties are wanted. Gives own boards, other
#: boards and keys, a row a game and a column a number of empties, as `play_games` does; what is not wanted may be there too.
Play = Callable[[int, int, NDArray[np.bool_]], tuple[Boards, Boards, Boards]]
#: Games that a thread plays at a time.
CHUNK = 128
#: Games between two looks at what is still missing.
MOST_GAMES, FEWEST_GAMES = 1 << 15, 1 << 8
#: Time between two checkpoints of a block, and at least so many times what the last one took.
SAVE_SECONDS, SAVE_COSTS = 60.0, 20.0
#: Rows of the largest block that has checkpoints: one is put together in memory, at 40 to 56 bytes a row.
MOST_SAVED = 1 << 25
#: What a checkpoint has.
SAVED = ("own", "opp", "game", "kept", "found", "seen", "dry_games", "quota", "games")
#: A round is dry for some number of empties if fewer than one position in so many offered is new …
DRY = 1000
#: … and after so many games of dry rounds on end there are no more to be found.
PATIENCE = 3 << 10


def sample_positions(
    options: LabelOptions, shard: int, *, threads: int | None = None, player: Evaluator | None = None
) -> tuple[Boards, Boards]:
    """The boards (own, opp) of one shard, seen by the side to move. The block that it belongs to is kept for the next call.

    *player* plays the games instead of the options' own: a network that has no name yet.
    """
    if isinstance(shard, bool) or not isinstance(shard, int) or not 0 <= shard < options.shards:
        raise TrainError(f"shard {quoted(shard)}: expected a whole number from 0 to {options.shards - 1}")
    by_identity: Any = player  # evaluators and networks are hashed so
    own, opp = _block(options, shard // options.shards_per_block, threads, by_identity)
    rows = rows_in_block(options, shard)
    return own[rows.start : rows.stop].copy(), opp[rows.start : rows.stop].copy()


def rows_in_block(options: LabelOptions, shard: int) -> range:
    """The row numbers, within its block, of a shard."""
    begin, rows = block_rows(options, shard // options.shards_per_block).start, options.rows(shard)
    return range(rows.start - begin, rows.stop - begin)


def block_rows(options: LabelOptions, block: int) -> range:
    """The row numbers, within the whole data set, of a block."""
    shards = block_shards(options, block)
    return range(options.rows(shards[0]).start, options.rows(shards[-1]).stop)


def block_shards(options: LabelOptions, block: int) -> range:
    """The numbers of the shards of a block."""
    return range(block * options.shards_per_block, min((block + 1) * options.shards_per_block, options.shards))


@lru_cache(maxsize=1)
def _block(options: LabelOptions, block: int, threads: int | None, player: Evaluator | None) -> tuple[Boards, Boards]:
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
    """All positions (own, opp) of a block, in the order of its rows; *progress* hears how many there are so far.

    *checkpoint* is a file from which a later call with the same options goes on: it is written every `SAVE_SECONDS`, at Ctrl-C and
    at the end, unless the block has more than `MOST_SAVED` rows. One of other options is left alone until then.

    If there are not so many with some number of empties, that is an error; with *fewer* it is not, and those that there
    are come back. *most* limits how many are taken, for each number of empties from the options' lowest on.
    *play* plays the games elsewhere than on *threads* of this process.
    """
    sampling = _Sampling(options, block, fewer, most)
    return _sampled(sampling, threads, player, play, checkpoint, progress)[:2]


def sample_games(
    options: LabelOptions, *, threads: int | None = None, fewer: bool = False
) -> tuple[Boards, Boards, NDArray[np.int64]]:
    """Return the positions of the first block as `sample_block` does, and the number of the game that each is of."""
    return _sampled(_Sampling(options, 0, fewer), threads)


def _sampled(
    sampling: _Sampling,
    threads: int | None,
    player: Evaluator | None = None,
    play: Play | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int], None] = lambda kept: None,
) -> tuple[Boards, Boards, NDArray[np.int64]]:
    count = checked_threads(core_count() if threads is None else threads)
    if len(sampling.own) > MOST_SAVED:
        checkpoint = None
    if checkpoint is not None:
        sampling.restore(checkpoint)
    with ThreadPoolExecutor(count) as pool:
        try:
            games = play or Players(sampling.options, player).on_threads(pool)
            _play_on(sampling, games, checkpoint, progress)
        finally:
            pool.shutdown(cancel_futures=True)
    found = (sampling.own | sampling.opp) != 0
    return sampling.own[found], sampling.opp[found], sampling.game[found]


def _play_on(sampling: _Sampling, games: Play, checkpoint: Path | None, progress: Callable[[int], None]) -> None:
    """Play until nothing is missing, and keep at the checkpoint how far that is."""
    saved, due = sampling.games, perf_counter() + SAVE_SECONDS

    def save() -> None:
        nonlocal saved, due
        if checkpoint is not None and sampling.games > saved:
            began = perf_counter()
            sampling.save(checkpoint)
            saved, now = sampling.games, perf_counter()
            due = now + max(SAVE_SECONDS, SAVE_COSTS * (now - began))

    try:
        while not sampling.is_full():
            sampling.play_round(games)
            progress(int(sampling.kept.sum()))
            if perf_counter() > due:
                save()
    except KeyboardInterrupt:
        if not sampling.within_round:  # else it would be known what was kept, but not of which games
            save()
        raise
    save()


def how_to_play(options: LabelOptions) -> np.ndarray:
    """The options as the kernels' GAMES record."""
    record = np.zeros(1, GAMES)
    record["low"], record["depth"] = options.empties[0], options.play_depth
    record["random_share"] = options.random_share
    for name, values in (("noise", options.noise), ("temperature", options.temperature), ("prefix", options.prefixes)):
        record[f"{name}_count"] = len(values)
        record["prefixes" if name == "prefix" else f"{name}s"][0, : len(values)] = values
    return record


class Players:
    """Those who play the games of a data set."""

    def __init__(self, options: LabelOptions, player: Evaluator | None = None) -> None:
        self._options, rules = options, options.rules
        self._player = player or evaluators.get_evaluator(
            options.player
        )  # whose record may hold the address of its weights
        self._nets = self._player.record(rules)
        self._start = tuple(np.uint64(board) for board in rules.start_boards)
        self._how = how_to_play(options)

    def play(self, first: int, wanted: NDArray[np.bool_], own: Boards, opp: Boards, key: Boards) -> None:
        """Play the games from number *first* on, one for each row; see `train.kernels.noisy_games.play_games`."""
        play_games(
            *(make_thread_states(self._options.rules), self._nets, *self._start, self._how),
            *(np.uint64(self._options.seed), np.uint64(first), wanted, own, opp, key),
        )

    def heard(self, stop: Callable[[], None] = lambda: None) -> AbstractContextManager[object]:
        """Around games: a player in Python that fails calls *stop*, and what it raised is raised at the end."""
        return self._player.during_search(stop)

    def on_threads(self, pool: ThreadPoolExecutor) -> Play:
        """The same on the threads of a pool."""

        def play(first: int, games: int, wanted: NDArray[np.bool_]) -> tuple[Boards, Boards, Boards]:
            own, opp, key = (np.empty((games, self._options.strata), np.uint64) for _ in range(3))

            failed = Event()

            def run(start: int) -> None:
                rows = slice(start, start + CHUNK)
                if not failed.is_set():
                    self.play(first + start, wanted, own[rows], opp[rows], key[rows])

            with self.heard(failed.set):
                for _ in pool.map(run, range(0, games, CHUNK)):
                    pass
            return own, opp, key

        return play


class _Sampling:
    """The games of one block, a round at a time. How the rounds are cut decides nothing but when to look at what is missing."""

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
    def _header(self) -> dict[str, Any]:
        """What a checkpoint has to be of."""
        player = evaluators.get_evaluator(self.options.player).sha256(self.options.rules)
        header = {"options": self.options.as_dict(), "player_sha256": player, "block": self.block}
        found: dict[str, Any] = json.loads(json.dumps({**header, "wanted": self._wanted, "fewer": self.fewer}))
        return found

    def save(self, path: Path) -> None:
        """Write all that is needed to go on."""
        arrays = {name: np.asarray(getattr(self, name)) for name in SAVED}
        save_state(path, arrays, self._header)

    def restore(self, path: Path) -> None:
        """Go on from there, if there is something of these options."""
        header, arrays = load_state(path) or ({}, {})
        if header == self._header and arrays.keys() >= set(SAVED):
            self.__dict__.update({name: arrays[name].copy() for name in SAVED})
            self.games = int(self.games)

    def is_full(self) -> bool:
        """Whether nothing is missing."""
        return bool((self.kept == self.quota).all())

    def play_round(self, play: Play) -> None:
        """Have some games played, then go through their positions in order."""
        missing = int((self.quota - self.kept).max()) * self.options.blocks
        games = -(-min(MOST_GAMES, max(FEWEST_GAMES, missing)) // CHUNK) * CHUNK
        own, opp, key = play(self.games, games, self.kept < self.quota)
        kept_before, found_before, self.within_round = self.kept.copy(), self.found.copy(), True
        keep_new(
            *(own, opp, key, self.games, self.block, self.options.blocks, self.seen),
            *(self.quota, self.first_row, self.kept, self.found, self.own, self.opp, self.game),
        )
        self.games += games
        self._give_up_if_dry(games, self.kept - kept_before, self.found - found_before)
        self.within_round = False

    def _give_up_if_dry(self, games: int, new: np.ndarray, found: np.ndarray) -> None:
        """Small boards and openings have few positions: say so rather than search for ever."""
        dry = (new * DRY < np.maximum(found, 1)) & (self.kept < self.quota)
        self.dry_games = np.where(dry, self.dry_games + games, 0)
        if self.dry_games.max() < PATIENCE:
            return
        if self.fewer:
            self.quota = np.where(self.dry_games >= PATIENCE, self.kept, self.quota)
            return
        worst = int(np.argmax(self.dry_games))
        options = self.options
        raise TrainError(
            f"only {int(self.kept[worst])} of {int(self.quota[worst])} different positions with "
            f"{options.empties[0] + worst} empties found in {self.games} games on the {options.size}x{options.size} "
            f"board: expected a smaller count, or other empties than {options.empties[0]}-{options.empties[1]}"
        )
