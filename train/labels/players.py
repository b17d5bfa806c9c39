"""Evaluators by name, for those who play the games and those who search for labels."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from reversi_env import Rules
from search import evaluators
from search.evaluators import Evaluator


def player_of(name: str) -> Any:
    """The evaluator of that name; an unknown one raises and lists those that exist."""
    return evaluators.get(name)


def weights_sha256(name: str, rules: Rules) -> str:
    """What tells two evaluators of the same name apart: a hash of the weights, or of the file that they come from.

    Not of the record: a network's holds an address, which is another one in every process.
    """
    evaluator = player_of(name)
    if isinstance(evaluator, Evaluator):
        weights = sorted(evaluator.weights.items())
        content = f"{evaluator.name} {evaluator.written_for} {evaluator.scale} {weights}".encode()
    else:
        content = Path(evaluator.file(rules)).read_bytes()
    return hashlib.sha256(content).hexdigest()
