"""Which evaluator a file was made with: names stay the same when weights change."""

from __future__ import annotations

import hashlib

from reversi_env import Rules
from search import evaluators


def weights_sha256(name: str, rules: Rules) -> str:
    """What tells two evaluators of the same name apart: a hash of the weights, or of the file that they come from.

    Not of the record: a network's holds an address, which is another one in every process.
    """
    return hashlib.sha256(evaluators.get(name).content(rules)).hexdigest()
