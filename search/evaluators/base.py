"""`Evaluator`: the base class of formulas, networks and functions that evaluate positions."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import quoted
from search.kernels.evaluate import static_values

#: Separates the name of an evaluator and its weight file.
WEIGHTS_SEPARATOR = ":weights="
_NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*({WEIGHTS_SEPARATOR}.+)?")


class EvaluatorError(ReversiError):
    """An unknown evaluator, or a wrong weight."""


def file_name(name: str, path: object) -> str:
    """Return the name of the evaluator *name* with the weights of a file."""
    return f"{name}{WEIGHTS_SEPARATOR}{path}"


def checked_name(name: object) -> str:
    """Return *name* if it consists of words joined by hyphens, and optionally a weight file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise EvaluatorError(f"evaluator name {quoted(name)}: expected lower-case words joined by hyphens")
    return name


class Evaluator(ABC):
    """Evaluates positions in discs for the side to move, positive if this side is better under the rules' objective.

    The type of its `record` selects the function that is compiled into the search. `search.evaluator` converts a function.
    """

    name: str
    #: Whether the exact solver uses it for move ordering.
    orders_endgames: bool = False

    @abstractmethod
    def record(self, rules: Rules) -> np.ndarray:
        """Return the data for kernels in this game: an array of one record, valid while the evaluator lives."""

    @property
    def family(self) -> str:
        """The name without the weight file."""
        return self.name.partition(WEIGHTS_SEPARATOR)[0]

    def static_value(self, position: Position) -> float:
        """Return the static value of a position in discs for the side to move; that of a terminal position is undefined."""
        return float(self.static_values(*batch.from_positions([position]), position.rules)[0])

    def static_values(self, own: ArrayLike, opp: ArrayLike, rules: Rules) -> NDArray[np.float64]:
        """Return the static values of many positions, two arrays of boards."""
        return static_values(self.record(rules), *batch.checked_boards(own, opp, rules))

    def probcut(self, rules: Rules) -> dict[str, Any] | None:
        """Return the ProbCut coefficients (`search.engine.probcut.as_table`), or None."""
        return None

    def identity(self, rules: Rules) -> bytes:
        """Return bytes that distinguish this evaluator from others of the same name; they are the same in every process."""
        raise EvaluatorError(f"evaluator {self.name}: expected an evaluator with an `identity`")

    def sha256(self, rules: Rules) -> str:
        """Return the hash of `identity`, for files that depend on this evaluator."""
        return hashlib.sha256(self.identity(rules)).hexdigest()

    def during_search(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Return the context of a search that *stop* ends. On exit it raises errors of the evaluator."""
        return nullcontext()
