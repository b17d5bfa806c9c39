"""`Formula`: an evaluator that is a formula over bitboards with a few weights, and its weight files."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules
from reversi_env.errors import did_you_mean, quoted
from reversi_env.kernels.frame import board_of
from reversi_env.rules import SIZES, Variant
from search.evaluators.base import Evaluator, EvaluatorError, checked_name, file_name
from search.kernels import heuristics

Weight = float | tuple[float, ...]
Weights = Mapping[str, Weight]
#: A function that computes fields of a formula's record from the weights.
Derivation = Callable[[Weights, Rules], Mapping[str, Any]]


def square_classes(rules: Rules) -> list[int]:
    """Return a bitboard for each of the ten classes of squares that are equal by symmetry (corner, C square, next edge square, …).

    The order is that of ``CLASS_DISTANCES``. The bitboard is 0 if a small board has no square of the class.
    """
    squares: dict[tuple[int, ...], list[int]] = {distances: [] for distances in heuristics.CLASS_DISTANCES}
    for action in range(rules.square_count):
        row, column = divmod(action, rules.size)
        distances = sorted((min(row, rules.size - 1 - row), min(column, rules.size - 1 - column)))
        squares[tuple(distances)].append(rules.square_of(action))
    return [board_of(members) for members in squares.values()]


def _board_fields(rules: Rules) -> dict[str, Any]:
    last = rules.size - 1
    edges: dict[str, list[int]] = {"edge_rows": [], "edge_columns": []}
    for action in range(rules.square_count):
        row, column = divmod(action, rules.size)
        if row in (0, last):
            edges["edge_rows"].append(rules.square_of(action))
        if column in (0, last):
            edges["edge_columns"].append(rules.square_of(action))
    classes = square_classes(rules)
    return {
        "playable": rules.playable,
        "corners": classes[0],
        "square_classes": np.array(classes, np.uint64),
        "limit": rules.square_count - 0.5,  # maximum value in discs, below a win with all discs
        **{name: board_of(squares) for name, squares in edges.items()},
    }


def _checked_weight(name: str, value: Any, known: Weight | None = None) -> Weight:
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(np.nan)
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise EvaluatorError(f"weight {name}={quoted(value)}: expected finite numbers")
    if known is not None and numbers.shape != np.shape(known):
        count = f"{np.size(known)} numbers" if np.ndim(known) else "one number"
        raise EvaluatorError(f"weight {name}={quoted(value)}: expected {count}")
    return float(numbers) if numbers.ndim == 0 else tuple(float(number) for number in numbers)


@dataclass(frozen=True, eq=False)
class Formula(Evaluator):
    """A named heuristic: a compiled formula, its weights, and the variant for which it was designed.

    ``record_type`` selects the compiled function. A record of this type, with the weights and properties of the board, is the
    function's first argument. ``weights`` fill the record's fields of the same names, or ``derive`` computes the fields. The
    formula's result times ``scale`` is the value in discs; ``scale`` is one number, or one for every board size. ``code`` is a
    hash of a user's function.
    """

    name: str
    record_type: np.dtype
    weights: Weights
    written_for: Variant = "normal"
    scale: float | Mapping[int, float] = 1.0
    source: str = ""
    derive: Derivation | None = None
    code: str = ""

    def __post_init__(self) -> None:
        checked_name(self.name)
        checked = {name: _checked_weight(name, value) for name, value in self.weights.items()}
        object.__setattr__(self, "weights", MappingProxyType(checked))

    def with_weights(self, **weights: ArrayLike) -> Self:
        """Return the evaluator with some weights changed: numbers, or sequences of the same length as the default."""
        for name in weights:
            if name not in self.weights:
                raise EvaluatorError(
                    f"weight {quoted(name)} of evaluator {self.name} is unknown{did_you_mean(name, self.weights)}: "
                    f"expected one of {', '.join(self.weights)}"
                )
        changed = {name: _checked_weight(name, value, self.weights[name]) for name, value in weights.items()}
        return replace(self, weights={**self.weights, **changed})

    def weight_vector(self) -> NDArray[np.float64]:
        """Return all weights in the order of their declaration, for a tuner."""
        return np.concatenate([np.atleast_1d(weight) for weight in self.weights.values()])

    def with_weight_vector(self, vector: ArrayLike) -> Self:
        """Return the evaluator with all weights from a vector such as that of `weight_vector`."""
        numbers = np.asarray(vector, np.float64)
        sizes = [np.size(weight) for weight in self.weights.values()]
        if numbers.shape != (sum(sizes),):
            raise EvaluatorError(
                f"vector of shape {numbers.shape} for evaluator {self.name}: expected {sum(sizes)} numbers"
            )
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        weights = {
            name: part if np.ndim(known) else part[0]
            for (name, known), part in zip(self.weights.items(), parts, strict=True)
        }
        return self.with_weights(**weights)

    def named(self, name: str) -> Self:
        """Return the evaluator under another name, for example a name to register."""
        return replace(self, name=name)

    def sign(self, rules: Rules) -> int:
        """Return -1 if the heuristic was written for the other game, and its value is therefore negated."""
        return 1 if self.written_for == rules.variant else -1

    def scale_on(self, rules: Rules) -> float:
        """Return the factor from the formula's result to discs on this board."""
        if not isinstance(self.scale, Mapping):
            return self.scale
        if rules.size not in self.scale:
            raise EvaluatorError(
                f"evaluator {self.name} has no scale for size {rules.size}: expected one in {self.scale}"
            )
        return self.scale[rules.size]

    def record(self, rules: Rules) -> np.ndarray:
        fields = _board_fields(rules) | {"sign": self.sign(rules), "scale": self.scale_on(rules)}
        fields |= self.weights if self.derive is None else self.derive(self.weights, rules)
        filled = np.zeros(1, self.record_type)
        for name in self.record_type.names or ():
            if name not in fields:
                raise EvaluatorError(
                    f"field {name} of evaluator {self.name} has no value: expected a weight of that name"
                )
            filled[name] = fields[name]
        return filled

    def identity(self, rules: Rules) -> bytes:
        text = f"{self.name} {self.written_for} {self.scale} {sorted(self.weights.items())}"
        return (f"{text} {self.code}" if self.code else text).encode()


FORMAT, VERSION = "reversi-lab formula", 1
#: A longer file is read incompletely, and therefore refused as invalid JSON.
MAX_CHARACTERS = 1 << 20


def formula_file(evaluator: Formula, formula: str, scale: Mapping[int, float], record: Mapping[str, Any]) -> bytes:
    """Return the content of a file with *evaluator*'s weights for the formula of that name."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "formula": formula,
        "weights": dict(evaluator.weights),
        "scale": {str(size): value for size, value in scale.items()},
        "record": dict(record),
    }
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def read_formula(formula: Formula, path: str) -> Formula:
    """Return *formula* with the weights of a file, under the name ``formula:weights=path``."""
    content = _content(path)
    if content.get("formula") != formula.name:
        raise EvaluatorError(
            f"weight file {path!r} is for formula {quoted(content.get('formula'))}: expected one for {formula.name}"
        )
    weights, scale = content.get("weights"), content.get("scale", {})
    if not isinstance(weights, dict) or not weights:
        raise EvaluatorError(f"weight file {path!r} has no weights: expected an object of numbers by name")
    if not isinstance(scale, dict) or not scale.keys() <= set(map(str, SIZES)):
        raise EvaluatorError(f"weight file {path!r} has scale {quoted(scale)}: expected a number for each board size")
    try:
        changed = formula.with_weights(**weights)
        changed.record(Rules())  # raises an error for weights that are invalid in this formula
        scales: dict[int, Any] = {size: formula.scale_on(Rules(size)) for size in SIZES}
        scales |= {int(size): _checked_weight(f"scale {size}", value, 1.0) for size, value in scale.items()}
    except (EvaluatorError, TypeError) as error:
        raise EvaluatorError(f"weight file {path!r}: {error}") from None
    return replace(changed, name=file_name(formula.name, path), scale=scales, source="")


def _content(path: str) -> dict[str, Any]:
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = json.loads(file.read(MAX_CHARACTERS))
    except OSError as error:
        raise EvaluatorError(f"weight file {path!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise EvaluatorError(f"weight file {path!r} is not JSON: expected one that `reversi tune` wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise EvaluatorError(
            f"weight file {path!r}: expected format {FORMAT!r}, version {VERSION}, as `reversi tune` writes"
        )
    return content
