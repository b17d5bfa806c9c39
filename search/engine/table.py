"""`TranspositionTable`: the memory of a transposition table, owned by Python and shared by the threads of a search."""

from __future__ import annotations

import numpy as np

from reversi_env import ReversiError
from reversi_env.errors import quoted
from search.kernels.table import BYTES_PER_BUCKET, WAYS, WORDS_PER_BUCKET, rehash

DEFAULT_MEGABYTES = 64
_LARGEST_MEGABYTES = 1 << 20
#: Words of a line of the cache. Where the table begins with one, no bucket lies in more than two.
_LINE = 8
#: What a table that grows begins with: 768 KiB, which the second-level cache has room for.
_FIRST_BUCKETS = 1 << 13


class TranspositionTable:
    """A transposition table of at most *megabytes* MiB (a power of two of 96-byte buckets, four entries each).

    Memory is taken from the system as it is first touched. `new_search` makes older entries the first to be replaced;
    `clear` forgets everything. A table that *grows* uses a small part of its memory until it is told to `reserve`.
    """

    def __init__(self, megabytes: float = DEFAULT_MEGABYTES, *, grows: bool = False) -> None:
        if (
            isinstance(megabytes, bool)
            or not isinstance(megabytes, (int, float))
            or not 0.001 <= megabytes <= _LARGEST_MEGABYTES
        ):
            raise ReversiError(
                f"table of {quoted(megabytes)} MiB: expected a number from 0.001 to {_LARGEST_MEGABYTES}"
            )
        buckets = 1
        while 2 * buckets * BYTES_PER_BUCKET <= megabytes * 2**20:
            buckets *= 2
        try:
            memory = np.zeros(buckets * WORDS_PER_BUCKET + _LINE, np.uint64)
        except MemoryError:
            raise ReversiError(f"table of {megabytes:g} MiB: expected a size that the memory has room for") from None
        first = -memory.ctypes.data // 8 % _LINE
        self._words = memory[first : first + buckets * WORDS_PER_BUCKET]
        self._first_buckets = min(buckets, _FIRST_BUCKETS) if grows else buckets
        self.bucket_mask = self._first_buckets - 1
        self.generation = 0
        self._contents: str | None = None
        #: Nobody has been told where the entries are since the table was empty.
        self._is_empty = True

    @property
    def address(self) -> int:
        """Where the kernels find it; valid as long as this object lives."""
        return self._words.ctypes.data

    @property
    def megabytes(self) -> float:
        """Size in MiB, with what is not used yet."""
        return self._words.nbytes / 2**20

    def new_search(self) -> None:
        """Begin a generation of entries (256 of them are told apart)."""
        self.generation = (self.generation + 1) & 255

    def clear(self) -> None:
        """Forget everything; threads that go on with the table are attached to it again.

        One that nobody has used since is left alone: the solver's, mostly, in the midgame. Its memory is not taken from the system.
        """
        if not self._is_empty:
            self._used()[:] = 0
        self._is_empty = True
        self.bucket_mask = self._first_buckets - 1
        self.generation = 0
        self._contents = None

    def fill(self) -> float:
        """Share of entries in use, estimated from the first ten thousand buckets."""
        sample = self._used()[: 10_000 * WORDS_PER_BUCKET].reshape(-1, 3)
        return float((sample[:, 2] != 0).mean())

    def reserve(self, entries: float) -> None:
        """Use so much of the memory that *entries* have room, as far as there is any.

        Nobody may be searching; threads that go on with the table are attached to it again.
        """
        used = buckets = self.bucket_mask + 1
        while WAYS * buckets < entries and buckets * WORDS_PER_BUCKET < self._words.size:
            buckets *= 2
        if buckets > used:
            self.bucket_mask = buckets - 1  # before: Ctrl-C meanwhile may lose entries, but not what is in use
            rehash(self.address, used, self.bucket_mask)

    def load_kernels(self) -> None:
        """Compile or load what growing needs, so that no clock pays for it."""
        rehash(self.address, 0, self.bucket_mask)

    def _used(self) -> np.ndarray:
        return self._words[: (self.bucket_mask + 1) * WORDS_PER_BUCKET]

    def attach(self, thread_states: np.ndarray, contents: str) -> None:
        """Let the threads' records use this table, which holds *contents* from now on and nothing else until `clear`."""
        self._holds(contents)
        thread_states["table"] = self.address
        thread_states["bucket_mask"] = self.bucket_mask
        thread_states["generation"] = self.generation

    def attach_endgame(self, thread_states: np.ndarray, contents: str) -> None:
        """`attach`, for values at the end of the game."""
        self._holds(contents)
        thread_states["endgame_table"] = self.address
        thread_states["endgame_mask"] = self.bucket_mask
        thread_states["endgame_generation"] = self.generation

    def _holds(self, contents: str) -> None:
        if self._contents not in (None, contents):
            raise ReversiError(f"table with {self._contents}: expected one with {contents}, or a cleared one")
        self._contents, self._is_empty = contents, False

    def words(self) -> np.ndarray:
        """The raw entries, for checkpoints of a table that does not grow."""
        self._is_empty = False
        return self._words
