"""Run and stop work in a background thread: kernels do not handle signals or clocks, but can be asked to stop.

A search ignores requests to stop that came before it began, and a request may come too early. Requests are
therefore repeated until the search has ended.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

#: Seconds between two requests to stop, and between two checks whether one is due.
POLL_SECONDS = 0.02

Result = TypeVar("Result")


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Run *work* in a daemon thread and return the future of its result."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def run_until(
    is_due: Callable[[], bool], work: Callable[[], Result], stop: Callable[[], None], poll_seconds: float = POLL_SECONDS
) -> Result:
    """Run *work* in the background until *is_due*, which is called every *poll_seconds*; return or raise its result.

    An error of *is_due*, or Ctrl-C in the main thread, stops the work, too.
    """
    future, due = in_background(work), False
    try:
        while not wait([future], POLL_SECONDS if due else poll_seconds).done:
            if due := is_due():
                stop()
    finally:
        while not future.done():
            stop()
            wait([future], POLL_SECONDS)
    return future.result()
