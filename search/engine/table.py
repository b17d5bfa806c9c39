"""`TranspositionTable`: the memory of a transposition table, owned by Python and shared by the threads of a search."""

import math

import numpy as np

from reversi_env import ReversiError
from reversi_env.errors import quoted
from search.kernels.table import BYTES_PER_BUCKET, WAYS, WORDS_PER_BUCKET, rehash

MIN_MEGABYTES, MAX_MEGABYTES = 0.001, 1 << 20
#: Words of a cache line. The table is aligned to it, so that a bucket spans at most two.
_LINE = 8
#: Initial size of a table that grows: 768 KiB, which fits into the second-level cache.
_FIRST_BUCKETS = 1 << 13


class TranspositionTable:
    """A transposition table of at most *megabytes* MiB (a power of two of 96-byte buckets, four entries each).

    Memory is allocated when it is first written. `new_search` makes older entries the first to be replaced. A table that *grows*
    uses a small part of its memory until `reserve` is called.
    """

    def __init__(self, megabytes: float = 64, *, grows: bool = False) -> None:
        is_number = isinstance(megabytes, (int, float)) and not isinstance(megabytes, bool)
        if not is_number or not MIN_MEGABYTES <= megabytes <= MAX_MEGABYTES:
            raise ReversiError(
                f"table of {quoted(megabytes)} MiB: expected a number from {MIN_MEGABYTES} to {MAX_MEGABYTES}"
            )
        buckets = 1 << int(math.log2(megabytes * 2**20 / BYTES_PER_BUCKET))
        try:
            memory = np.zeros(buckets * WORDS_PER_BUCKET + _LINE, np.uint64)
        except MemoryError:
            raise ReversiError(f"table of {megabytes:g} MiB: expected a size that fits into memory") from None
        first = -memory.ctypes.data // 8 % _LINE
        self._words = memory[first : first + buckets * WORDS_PER_BUCKET]
        self._first_buckets = min(buckets, _FIRST_BUCKETS) if grows else buckets
        self.bucket_mask = self._first_buckets - 1
        self.generation = 0
        self._contents: str | None = None
        self._is_empty = True

    @property
    def address(self) -> int:
        """The address for kernels, valid as long as this object lives."""
        return self._words.ctypes.data

    def new_search(self) -> None:
        """Begin a new generation of entries, modulo 256."""
        self.generation = (self.generation + 1) & 255

    def clear(self) -> None:
        """Remove all entries; records that use the table must be attached again. An unused table stays untouched."""
        if not self._is_empty:
            self._words[: (self.bucket_mask + 1) * WORDS_PER_BUCKET] = 0
        self._is_empty = True
        self.bucket_mask = self._first_buckets - 1
        self.generation = 0
        self._contents = None

    def reserve(self, entries: float) -> None:
        """Grow to at least *entries* if the memory suffices. No search may run; records must be attached again."""
        used = buckets = self.bucket_mask + 1
        while WAYS * buckets < entries and buckets * WORDS_PER_BUCKET < self._words.size:
            buckets *= 2
        if buckets > used:
            self.bucket_mask = buckets - 1  # first: Ctrl-C may lose entries, but the table stays consistent
            rehash(self.address, used, self.bucket_mask)

    def load_kernels(self) -> None:
        rehash(self.address, 0, self.bucket_mask)

    def attach(self, thread_states: np.ndarray, contents: str) -> None:
        """Attach the table to the threads' records; until `clear` it holds nothing but *contents*."""
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
        """Return the raw entries, for checkpoints of a table that does not grow."""
        self._is_empty = False
        return self._words
