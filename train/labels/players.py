"""Evaluators by name, for those who play the games and those who search for labels."""

from __future__ import annotations

import hashlib

from search import evaluators
from search.evaluators import Evaluator


def player_of(name: str) -> Evaluator:
    """The evaluator of that name; an unknown one raises and lists those that exist."""
    return evaluators.get(name)


def weights_sha256(evaluator: Evaluator) -> str:
    """What tells two evaluators of the same name apart: a hash of their weights.

    Not of their record: a network's holds an address, which is another one in every process.
    """
    text = f"{evaluator.name} {evaluator.written_for} {evaluator.scale} {sorted(evaluator.weights.items())}"
    return hashlib.sha256(text.encode()).hexdigest()
