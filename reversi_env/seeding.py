"""Seeds of the parts of one run."""

from __future__ import annotations

import numpy as np


def derive_seed(seed: int, *stream: int) -> int:
    """Return a 64-bit seed for the part *stream* of a run with *seed*, such as a round, or a round and an opponent.

    Runs with neighbouring seeds have unrelated parts. Sums such as ``seed + round`` would make them share games.

    >>> derive_seed(0, 1) == derive_seed(1, 0)
    False
    """
    return int(np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)[0])
