"""Where the `reversi` command begins: so little that Ctrl-C finds a guard from the first moment on.

Everything else is imported within it; `python -m play` does the same.
"""

from __future__ import annotations

import signal
import sys

#: Exit status after Ctrl-C, as shells have it: 128 + SIGINT. That of `play.cli.interrupt`, which is not loaded yet.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded ends it without a traceback, and pressed again it changes nothing more."""
    try:
        from play.cli.app import main as run

        run()
    except KeyboardInterrupt:
        _let_nothing_disturb_the_end()
        sys.exit(INTERRUPTED)
    finally:
        _let_nothing_disturb_the_end()


def _let_nothing_disturb_the_end() -> None:
    """Ignore Ctrl-C: during the shutdown of the interpreter it would end it by signal, or with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
