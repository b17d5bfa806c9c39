"""`search_batch`: arrays of positions searched to a fixed depth with any evaluator, on all cores."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules
from reversi_env.batch import checked_boards
from reversi_env.errors import check_integer
from reversi_env.kernels.parallel import core_count
from reversi_env.rules import checked_rules
from search.engine.probcut import checked_margin, load_probcut
from search.engine.table import TranspositionTable
from search.engine.threads import checked_threads, make_thread_states, request_stop, run_in_threads
from search.evaluators.registry import Evaluator, get_evaluator
from search.kernels.evaluate import UNIT
from search.kernels.midgame import search_many

#: Positions that a thread takes at a time.
CHUNK = 64
#: Table of each thread, in MiB: small enough for the processor's cache.
TABLE_MIB = 1.0
MAX_DEPTH = 60


def search_batch(
    own: ArrayLike,
    opp: ArrayLike,
    evaluator: Evaluator | str,
    rules: Rules | None = None,
    depth: int = 4,
    *,
    probcut: float = 0.0,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> NDArray[np.float32]:
    """Return values in discs for the side to move, of arrays of positions searched to *depth* plies.

    A pass does not reduce the depth. A position whose game always ends within the depth gets its exact score; depth 0 is the static
    evaluation. *probcut* is the margin of selective search in standard deviations; the evaluator needs coefficients of
    `reversi train probcut`. *progress* is called with the number of positions searched so far; if it raises, or on Ctrl-C, the
    search ends. *threads* is by default the number of cores. The values do not depend on the order of the positions or on threads.

    >>> own, opp = np.array([0x0000000810000000], np.uint64), np.array([0x0000001008000000], np.uint64)
    >>> search_batch(own, opp, "six-factor", depth=4).tolist()
    [-0.296875]
    """
    rules = checked_rules(rules)
    own, opp = checked_boards(own, opp, rules)
    check_integer("depth", depth, 0, MAX_DEPTH)
    count = checked_threads(core_count() if threads is None else threads)
    evaluator = get_evaluator(evaluator)  # stays referenced: its record may point to its weights
    nets, margin = evaluator.record(rules), checked_margin(probcut, evaluator.probcut(rules))
    thread_states, tables = make_thread_states(rules, count), [TranspositionTable(TABLE_MIB) for _ in range(count)]
    for k, table in enumerate(tables):
        table.attach(thread_states[k : k + 1], "estimates")
    if margin:
        load_probcut(thread_states, evaluator, rules)
        thread_states["probcut_margin"] = margin
    # A selective search gets its move ordering from shallower ones.
    depths = range(depth % 2, depth + 1, 2) if margin else (depth,)
    values, empties = np.zeros(own.size, np.int64), rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
    table_empties = [-1] * count

    def search_chunk(k: int, rows: np.ndarray) -> int:
        if table_empties[k] != empties[rows[0]]:
            tables[k].words()[:] = 0
            table_empties[k] = int(empties[rows[0]])
        for group in (rows,) if not margin else rows[:, None]:
            results = np.zeros(group.size, np.int64)
            for next_depth in depths:
                search_many(thread_states[k : k + 1], nets, own[group], opp[group], next_depth, results)
            values[group] = results
            if margin:  # selective results must not reach the next position
                tables[k].words()[:] = 0
        return int(rows.size)

    with evaluator.during_search(partial(request_stop, thread_states)):
        run_in_threads(search_chunk, _chunks(empties), thread_states, progress)
    return (values / UNIT).astype(np.float32)


def _chunks(empties: np.ndarray) -> Iterator[np.ndarray]:
    """Return the indices of positions in chunks of equally many empties, most empties first."""
    order = np.argsort(-empties, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(empties[order])) + 1):
        for start in range(0, group.size, CHUNK):
            yield group[start : start + CHUNK]
