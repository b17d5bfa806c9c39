"""`Labels`: labelled positions in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules
from train.errors import TrainError


@dataclass(frozen=True, eq=False)
class Labels:
    """Positions and their scores, as arrays of equal length.

    ``own``, ``opp``: boards of the side to move and of the other side. ``score``: discs for the side to move under the
    objective of ``rules``. ``empties``: empty squares. ``exact``: whether the score is that of perfect play.
    ``depth``: plies searched, the empties where it is exact.
    """

    rules: Rules
    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    score: NDArray[np.float32]
    empties: NDArray[np.uint8]
    exact: NDArray[np.bool_]
    depth: NDArray[np.uint8]

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in COLUMNS}
        if len(set(lengths.values())) != 1:
            raise TrainError(f"columns of {lengths} rows: expected as many in all")

    def __len__(self) -> int:
        return len(self.own)

    def select(self, rows: ArrayLike) -> Labels:
        """The rows of a boolean mask, or those with the given numbers, in their order."""
        chosen = np.asarray(rows)
        return Labels(self.rules, *(getattr(self, name)[chosen] for name in COLUMNS))

    @staticmethod
    def concatenate(parts: Sequence[Labels]) -> Labels:
        """All rows of *parts*, one after the other; they must be of the same game."""
        if not parts:
            raise TrainError("no labels to concatenate: expected one part or more")
        games = {part.rules for part in parts}
        if len(games) > 1:
            raise TrainError(f"labels of different games, {', '.join(sorted(map(str, games)))}: expected those of one")
        return Labels(parts[0].rules, *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


#: The arrays of `Labels`, in order.
COLUMNS = tuple(field.name for field in fields(Labels) if field.name != "rules")
