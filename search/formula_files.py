"""Weights of a formula in a file: JSON that a person can read, with the record of where they come from.

    {"format": "reversi-lab formula", "version": 1, "formula": "ten-weight", "weights": {"table": [...]},
     "scale": {"8": 41.3}, "record": {...}}

Every formula takes such a file wherever an evaluator or an agent is named: ``ten-weight:weights=FILE``. ``scale`` is what
one unit of the formula is worth in discs, by board size; sizes that are not in it keep the formula's own. ``record`` is for
the reader: nothing is done by it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reversi_env import Rules
from reversi_env.errors import quoted
from search.evaluation import EvaluatorError, file_name
from search.formulas import Formula

FORMAT, VERSION = "reversi-lab formula", 1
_SIZES = (4, 6, 8)
_LARGEST = 1 << 20


def formula_file(evaluator: Formula, formula: str, scale: Mapping[int, float], record: Mapping[str, Any]) -> bytes:
    """The content of a file with *evaluator*'s weights for the formula of that name."""
    weights = {name: list(value) if isinstance(value, tuple) else value for name, value in evaluator.weights.items()}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "formula": formula,
        "weights": weights,
        "scale": {str(size): value for size, value in scale.items()},
        "record": dict(record),
    }
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


def read_formula(formula: Formula, path: str) -> Formula:
    """*formula* with the weights of a file, under the name ``formula:weights=path``."""
    content = _content(path)
    if content.get("formula") != formula.name:
        raise EvaluatorError(
            f"weight file {path!r} is for formula {quoted(content.get('formula'))}: expected one for {formula.name}"
        )
    weights = content.get("weights")
    if not isinstance(weights, dict) or not weights:
        raise EvaluatorError(f"weight file {path!r} has no weights: expected an object of numbers by name")
    try:
        changed = formula.with_weights(**weights)
        changed.record(Rules())  # what the formula itself refuses
    except (EvaluatorError, TypeError) as error:
        raise EvaluatorError(f"weight file {path!r}: {error}") from None
    scale = {size: formula.scale_on(Rules(size)) for size in _SIZES} | _scales(content.get("scale", {}), path)
    return replace(changed, name=file_name(formula.name, path), scale=scale, source="")


def _content(path: str) -> dict[str, Any]:
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise EvaluatorError(f"weight file {path!r}: expected at most {_LARGEST} bytes")
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise EvaluatorError(f"weight file {path!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, EvaluatorError):
            raise
        raise EvaluatorError(f"weight file {path!r} is not JSON: expected one that `reversi tune` wrote") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
        raise EvaluatorError(
            f"weight file {path!r}: expected format {FORMAT!r}, version {VERSION}, as `reversi tune` writes"
        )
    return content


def _scales(given: Any, path: str) -> dict[int, float]:
    sizes = {str(size): size for size in _SIZES}
    fits = isinstance(given, dict) and all(
        size in sizes
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
        for size, value in given.items()
    )
    if not fits:
        raise EvaluatorError(
            f"weight file {path!r} has scale {quoted(given)}: expected a number for each of the sizes 4, 6, 8"
        )
    return {sizes[size]: float(value) for size, value in given.items()}
