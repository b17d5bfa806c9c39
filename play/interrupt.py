"""Ctrl-C and a status line for long work in kernels.

Kernels do not handle signals. They run in a background thread, and the main thread shows their progress and asks them to stop
after Ctrl-C. No exception interrupts them, so that partial results can be printed and saved.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    work: Callable[[], Result], stop: Callable[[], None], look: Callable[[], str] | None = None
) -> tuple[Result, bool]:
    """Run *work* in a thread; return its result and whether Ctrl-C ended it. Its errors are raised here.

    *stop* asks the work to return early; it is repeated, because the first request may come before the work has begun. *look*
    is called about twice a second, and its text is shown where standard error is a terminal. A second Ctrl-C raises
    KeyboardInterrupt.
    """
    with _noted_interrupt(stop) as interrupted, _status_line(look) as show:

        def is_due() -> bool:
            if not interrupted():
                show()
            return interrupted()

        return run_until(is_due, work, stop, POLL_SECONDS), interrupted()


def abandonable(work: Callable[[], Result]) -> Result:
    """Run *work* in a thread that Ctrl-C abandons: for kernels that cannot be stopped, which end with the process."""
    return in_background(work).result()


@contextmanager
def resend_swallowed_interrupt() -> Iterator[None]:
    """Send a Ctrl-C again that Python has swallowed: a destructor or a weak reference's callback reports it without raising."""
    before = sys.unraisablehook

    def look(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN_SECONDS, _interrupt_main_thread).start()
        else:
            before(unraisable)

    sys.unraisablehook = look
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt_main_thread() -> None:
    """Send SIGINT to the main thread where that is possible: unlike `interrupt_main`, it ends a wait."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


@contextmanager
def _noted_interrupt(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C call *stop*, and yield a function that returns whether there was one.

    Only the main thread gets signals, and a SIGINT that the parent process ignores (nohup, a shell's &) stays ignored.
    """
    noted = threading.Event()

    def note(*_: object) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()
        stop()

    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield noted.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _status_line(look: Callable[[], str] | None) -> Iterator[Callable[[], object]]:
    """Show *look*'s text on standard error, updated by each call of the yielded function; only call *look* without a terminal."""
    if look is None:
        yield lambda: None
    elif not sys.stderr.isatty():
        yield look
    else:
        from rich.console import Console

        status = Console(file=sys.stderr).status("")

        def show() -> None:
            status.update(look())
            status.start()  # shown only now: short work needs no line

        try:
            yield show
        finally:
            status.stop()
