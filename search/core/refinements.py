"""What the search adds to minimax, and how a study turns parts of it off.

A kernel asks ``uses(work, NULL_WINDOWS)``, and numba answers by the type of the record *thread*, as it does for `evaluate`. The
engine's record has no switches: the answer is a constant, and nothing of the question is left in the code. A record with a field
``switches`` has a bit for each refinement, and one with a field ``counts`` gets counts that the engine does not keep. The table and
ProbCut need no switch: a record says by its ``table`` and ``cut_margin`` whether they are used.
"""

from __future__ import annotations

from typing import Any

from numba.extending import overload

#: Bits of ``switches``: moves that cannot matter are left out; moves with few replies (on the last ply the one that last refuted),
#: then those of a good value, are searched first; later moves are tried with a null window; children are looked up in the table
#: before any is searched.
ALPHA_BETA, REPLY_ORDER, VALUE_ORDER, NULL_WINDOWS, LOOK_AHEAD = (1 << bit for bit in range(5))


def uses(thread: Any, refinement: int) -> bool:
    """Whether the search whose record *thread* is uses the refinement with that bit. For use in kernels."""
    raise TypeError("uses is compiled into kernels")


def count_moves(thread: Any, moves: int) -> None:
    """Count a node at which *moves* moves were searched: ``counts`` are such nodes, and moves at them. For use in kernels."""
    raise TypeError("count_moves is compiled into kernels")


@overload(uses)
def _uses(thread, refinement):
    if "switches" in thread.fields:
        return lambda thread, refinement: thread.switches & refinement != 0
    return lambda thread, refinement: True


@overload(count_moves)
def _count_moves(thread, moves):
    def count(thread, moves):
        thread.counts[0] += 1
        thread.counts[1] += moves

    return count if "counts" in thread.fields else lambda thread, moves: None
