"""Which evaluator a file was made with: names stay the same when weights change."""

from __future__ import annotations

import hashlib
from pathlib import Path

from reversi_env import Rules
from search import evaluators
from search.evaluators import Evaluator


def weights_sha256(name: str, rules: Rules) -> str:
    """What tells two evaluators of the same name apart: a hash of the weights, or of the file that they come from.

    Not of the record: a network's holds an address, which is another one in every process.
    """
    evaluator = evaluators.get(name)
    if isinstance(evaluator, Evaluator):
        weights = sorted(evaluator.weights.items())
        content = f"{evaluator.name} {evaluator.written_for} {evaluator.scale} {weights}".encode()
    else:
        content = Path(evaluator.file(rules)).read_bytes()
    return hashlib.sha256(content).hexdigest()
