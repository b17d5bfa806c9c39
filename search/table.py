"""`Table`: the memory of a transposition table, owned by Python and shared by the threads of a search."""

from __future__ import annotations

import numpy as np

from reversi_env import ReversiError
from reversi_env.errors import shown
from search.core.table import BYTES_PER_BUCKET, WORDS_PER_BUCKET

DEFAULT_MEGABYTES = 64
_LARGEST_MEGABYTES = 1 << 20
#: Words of a line of the cache. Where the table begins with one, no bucket lies in more than two.
_LINE = 8


class Table:
    """A transposition table of at most *megabytes* MiB (a power of two of 96-byte buckets, four entries each).

    Memory is taken from the system as it is first touched. `new_search` makes older entries the first to be replaced;
    `clear` forgets everything.
    """

    def __init__(self, megabytes: float = DEFAULT_MEGABYTES) -> None:
        if (
            isinstance(megabytes, bool)
            or not isinstance(megabytes, (int, float))
            or not 0.001 <= megabytes <= _LARGEST_MEGABYTES
        ):
            raise ReversiError(f"table of {shown(megabytes)} MiB: expected a number from 0.001 to {_LARGEST_MEGABYTES}")
        buckets = 1
        while 2 * buckets * BYTES_PER_BUCKET <= megabytes * 2**20:
            buckets *= 2
        try:
            memory = np.zeros(buckets * WORDS_PER_BUCKET + _LINE, np.uint64)
        except MemoryError:
            raise ReversiError(f"table of {megabytes:g} MiB: expected a size that the memory has room for") from None
        first = -memory.ctypes.data // 8 % _LINE
        self._words = memory[first : first + buckets * WORDS_PER_BUCKET]
        self.bucket_mask = buckets - 1
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
        """Size in MiB."""
        return self._words.nbytes / 2**20

    def new_search(self) -> None:
        """Begin a generation of entries (256 of them are told apart)."""
        self.generation = (self.generation + 1) & 255

    def clear(self) -> None:
        """Forget everything; threads that go on with the table are attached to it again.

        One that nobody has used since is left alone: the solver's, mostly, in the midgame. Its memory is not taken from the system.
        """
        if not self._is_empty:
            self._words[:] = 0
        self._is_empty = True
        self.generation = 0
        self._contents = None

    def fill(self) -> float:
        """Share of entries in use, estimated from the first ten thousand buckets."""
        sample = self._words[: 10_000 * WORDS_PER_BUCKET].reshape(-1, 3)
        return float((sample[:, 2] != 0).mean())

    def attach(self, works: np.ndarray, contents: str) -> None:
        """Let the threads' records use this table, which holds *contents* from now on and nothing else until `clear`."""
        self._holds(contents)
        works["table"] = self.address
        works["bucket_mask"] = self.bucket_mask
        works["generation"] = self.generation

    def attach_endings(self, works: np.ndarray, contents: str) -> None:
        """`attach`, for values at the end of the game."""
        self._holds(contents)
        works["endings"] = self.address
        works["endings_mask"] = self.bucket_mask
        works["endings_generation"] = self.generation

    def _holds(self, contents: str) -> None:
        if self._contents not in (None, contents):
            raise ReversiError(f"table with {self._contents}: expected one with {contents}, or a cleared one")
        self._contents, self._is_empty = contents, False

    def words(self) -> np.ndarray:
        """The raw entries, for checkpoints."""
        self._is_empty = False
        return self._words
