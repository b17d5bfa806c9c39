"""Threads of tests, and waiting: for what a test needs to be so, never for a time in which it ought to be."""

import threading
import time
from concurrent.futures import Future

from tests.oracles.jobs import PATIENCE, wait_until

#: Nodes that threads may still visit when they are told to stop at once: they look at every node but the last plies'.
AT_ONCE = 20_000


def in_background(ask):
    """The future of what *ask* returns, in a thread that does not keep the interpreter from ending."""
    future = Future()

    def run():
        try:
            future.set_result(ask())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def stopped_after(nodes, records, stop, ask):
    """What *ask* returns when *stop* is called as soon as the threads of *records* have visited so many *nodes*.

    Also how many nodes they visited after that, and how many seconds it took. A search has begun when it visits nodes: one that
    is stopped before it begins knows nothing of it.
    """
    for thread_states in records:
        thread_states["nodes"] = 0  # of the search before
    asked = in_background(ask)
    wait_until(lambda: visited(records) >= nodes or asked.done(), pause=0.001)
    began = time.perf_counter()
    stop()
    then = visited(records)
    result = asked.result(PATIENCE)
    return result, visited(records) - then, time.perf_counter() - began


def visited(records):
    return sum(int(thread_states["nodes"].sum()) for thread_states in records)
