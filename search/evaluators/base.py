"""`Evaluator`: what every evaluator is: a formula, a network, a function of one's own."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Position, ReversiError, Rules
from reversi_env.batch import checked_boards
from reversi_env.errors import quoted
from search.kernels.evaluate import static_values

#: What stands between the name of an evaluator and the file that its weights are from.
WEIGHTS_SEPARATOR = ":weights="
_NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*({WEIGHTS_SEPARATOR}.+)?")


class EvaluatorError(ReversiError):
    """An evaluator that does not exist, or a weight that it does not take."""


def file_name(name: str, path: object) -> str:
    """The name of the evaluator *name* with the weights of a file."""
    return f"{name}{WEIGHTS_SEPARATOR}{path}"


def checked_name(name: object) -> str:
    """*name*, if it can name an evaluator: words joined by hyphens, and the file that its weights are from."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise EvaluatorError(f"evaluator name {quoted(name)}: expected lower-case words joined by hyphens")
    return name


class Evaluator(ABC):
    """Gives positions a value in discs for the side to move, positive if it is better for it under the rules' objective.

    The search knows an evaluator by its `record`, whose type decides what is compiled into it. `search.evaluator` makes one of a
    function.
    """

    name: str
    description: str
    #: Whether it is worth its time in the exact solver too, where it orders the moves.
    orders_endgames: bool = False

    @abstractmethod
    def record(self, rules: Rules) -> np.ndarray:
        """The compiled evaluator's data for this game: an array of one record, valid while the evaluator lives."""

    @property
    def family(self) -> str:
        """The name without the file that its weights are from."""
        return self.name.partition(WEIGHTS_SEPARATOR)[0]

    def static_value(self, position: Position) -> float:
        """Value of the position in discs for the side to move, no search. Of a finished game, ask the rules."""
        own, opp = (np.array([board], np.uint64) for board in (position.own, position.opp))
        return float(self.static_values(own, opp, position.rules)[0])

    def static_values(self, own: ArrayLike, opp: ArrayLike, rules: Rules) -> NDArray[np.float64]:
        """Values of many positions, given as two arrays of boards."""
        return static_values(self.record(rules), *checked_boards(own, opp, rules))

    def probcut(self, rules: Rules) -> dict[str, Any] | None:
        """ProbCut's coefficients (`search.engine.probcut.as_table`), if some were fitted for this evaluator."""
        return None

    def identity(self, rules: Rules) -> bytes:
        """What tells this evaluator from another of the same name: bytes to be hashed, the same in every process."""
        raise EvaluatorError(f"evaluator {self.name}: expected one with weights that can be told from others")

    def sha256(self, rules: Rules) -> str:
        """The hash of `identity`, for files that were made with this evaluator: its name stays the same when its weights change."""
        return hashlib.sha256(self.identity(rules)).hexdigest()

    def during_search(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Around a search, which *stop* ends; an evaluator that can fail raises here what went wrong."""
        return nullcontext()
