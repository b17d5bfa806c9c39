"""Evaluators by name.

Values are in discs for the side to move, positive if this side is better under the rules' objective. The value of a formula is
multiplied by its ``scale``, which is fitted for every board size, and limited to half a disc less than the number of squares.

>>> from reversi_env import Position
>>> get_evaluator("discs").static_value(Position.initial().play("d3"))
-3.0
>>> get_formula("six-factor").with_weights(corner_weight=400).weights["corner_weight"]
400.0
"""

from functools import cache
from typing import TypeVar

from reversi_env import loading
from reversi_env.errors import did_you_mean, quoted
from search.evaluators.base import WEIGHTS_SEPARATOR, Evaluator, EvaluatorError
from search.evaluators.formula import Formula, read_formula
from search.evaluators.published import FORMULAS

AnyEvaluator = TypeVar("AnyEvaluator", bound=Evaluator)
_REGISTRY: dict[str, Evaluator] = {formula.name: formula for formula in FORMULAS}
#: Classes of evaluators that read their weights from a file, by import path; without a file they use the packaged weights.
_FAMILIES = {"network": "models.evaluator:NetworkEvaluator"}


def register(evaluator: AnyEvaluator) -> AnyEvaluator:
    """Make *evaluator* available under its name, which must be new, in this process."""
    if evaluator.name in _REGISTRY or evaluator.name in _FAMILIES:
        raise EvaluatorError(f"an evaluator {evaluator.name!r} exists already: expected a new name, see Formula.named")
    _REGISTRY[evaluator.name] = evaluator
    return evaluator


@cache
def _from_family(name: str, weights: str | None) -> Evaluator:
    evaluator: Evaluator = loading.load(_FAMILIES[name])(weights)
    return evaluator


def names() -> tuple[str, ...]:
    """Return the names of all evaluators in alphabetical order; those of other packages only after they were loaded."""
    return tuple(sorted({*_REGISTRY, *_FAMILIES}))


def formulas() -> tuple[str, ...]:
    """Return the names of the evaluators that are a `Formula`."""
    return tuple(sorted(name for name, evaluator in _REGISTRY.items() if isinstance(evaluator, Formula)))


def get_formula(name: str) -> Formula:
    evaluator = get_evaluator(name)
    if not isinstance(evaluator, Formula):
        raise EvaluatorError(f"evaluator {quoted(name)} is not a formula: expected one of {', '.join(formulas())}")
    return evaluator


def published_names() -> tuple[str, ...]:
    """Return the names of the heuristics that come from a report."""
    return tuple(name for name in formulas() if get_formula(name).source)


def exists(name: str) -> bool:
    """Return whether there is an evaluator of that name; an entry point of that name is loaded."""
    if name not in _REGISTRY and name not in _FAMILIES:
        plugin = loading.load_entry_point(name)
        if isinstance(plugin, Evaluator):
            _REGISTRY[name] = plugin
    return name in _REGISTRY or name in _FAMILIES


def takes_weights(name: str) -> bool:
    """Return whether the evaluator of that name reads weights from a file."""
    return exists(name) and (name in _FAMILIES or isinstance(_REGISTRY[name], Formula))


def get_evaluator(name: Evaluator | str) -> Evaluator:
    """Return the evaluator of that name, or of ``name:weights=PATH``. An evaluator is returned unchanged."""
    if isinstance(name, Evaluator):
        return name
    if isinstance(name, str):
        family, separator, path = name.partition(WEIGHTS_SEPARATOR)
        if exists(family) and name in _REGISTRY:
            return _REGISTRY[name]
        if path and isinstance(formula := _REGISTRY.get(family), Formula):
            return read_formula(formula, path)
        if family in _FAMILIES and (path or not separator):
            return _from_family(family, path or None)
    elif callable(name):
        raise EvaluatorError(f"evaluator {quoted(name)} is a function: expected one decorated with @search.evaluator")
    raise EvaluatorError(
        f"evaluator {quoted(name)} is unknown{did_you_mean(name, dict.fromkeys(names()))}: expected one of {', '.join(names())}"
    )
