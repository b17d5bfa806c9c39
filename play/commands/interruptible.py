"""Ctrl-C for long searches: kernels do not look at signals, so they run in a thread of their own and are told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def interruptible(work: Callable[[], Result], stop: Callable[[], None]) -> Result:
    """What *work* returns or raises; interrupted, it is told to *stop*, awaited, and the interruption goes on."""
    results: list[Result] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        done.wait()
    except KeyboardInterrupt:
        while not done.is_set():  # asked again, should the work not have begun yet
            stop()
            done.wait(0.05)
        raise
    finally:
        thread.join()
    if failures:
        raise failures[0]
    return results[0]
