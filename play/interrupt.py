"""Ctrl-C and a status line for long work in kernels.

Kernels do not handle signals. They run in a background thread; the main thread shows their progress and stops them after Ctrl-C.
No exception interrupts them, so that partial results can be printed.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from play.background import in_background, run_until

#: Exit status of an interrupted command: 128 + SIGINT.
INTERRUPTED = 130
#: Seconds between two updates of the status line.
POLL_SECONDS = 0.5
#: Seconds until a lost interrupt is sent again: by then the callback that lost it has returned.
AGAIN_SECONDS = 0.05

Result = TypeVar("Result")


def interruptible(
    work: Callable[[], Result], stop: Callable[[], None], status: Callable[[], str] = str
) -> tuple[Result, bool]:
    """Run *work* in a thread; return its result and whether Ctrl-C ended it. Its errors are raised here.

    *stop* asks the work to return early; it is repeated, because the first request may come before the work has begun. *status*
    is called about twice a second, and its text is shown on a terminal. A second Ctrl-C raises KeyboardInterrupt.
    """
    with _noted_interrupt(stop) as interrupted, _status_line(status) as show:

        def is_due() -> bool:
            if not interrupted():
                show()
            return interrupted()

        return run_until(is_due, work, stop, POLL_SECONDS), interrupted()


def abandonable(work: Callable[[], Result]) -> Result:
    """Return the result of *work* in a thread that Ctrl-C abandons: kernels that cannot be stopped end with the process."""
    return in_background(work).result()


@contextmanager
def resend_swallowed_interrupt() -> Iterator[None]:
    """Send a Ctrl-C again that Python has swallowed: a destructor or a weak reference's callback reports it without raising."""
    before, main = sys.unraisablehook, threading.main_thread().ident
    interrupt: Callable[[], object] = _thread.interrupt_main
    if hasattr(signal, "pthread_kill") and main is not None:
        interrupt = partial(signal.pthread_kill, main, signal.SIGINT)  # ends a wait, too

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN_SECONDS, interrupt).start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextmanager
def _noted_interrupt(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Make the first Ctrl-C call *stop*; yield a function that returns whether Ctrl-C was pressed.

    Only the main thread gets signals, and a SIGINT that the parent process ignores (nohup, a shell's &) stays ignored.
    """
    noted = threading.Event()

    def note(*_: object) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()
        stop()

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield noted.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _status_line(status: Callable[[], str]) -> Iterator[Callable[[], object]]:
    """Show the text of *status* on standard error, updated by each call of the yielded function, if that is a terminal."""
    if not sys.stderr.isatty():
        yield status
        return
    from rich.console import Console

    line = Console(file=sys.stderr).status("")

    def show() -> None:
        line.update(status())
        line.start()  # not earlier, so that short work shows no line

    try:
        yield show
    finally:
        line.stop()
