"""Entry point of the `reversi` command and of `python -m play`; other imports happen where Ctrl-C is handled."""

import signal
import sys

#: Exit status after Ctrl-C: 128 + SIGINT, as in `play.interrupt`, which is not loaded yet.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is being imported ends it without a traceback."""
    try:
        from play.cli.app import main as run

        run()
    except KeyboardInterrupt:
        _ignore_interrupts()
        sys.exit(INTERRUPTED)
    finally:
        _ignore_interrupts()


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C, which would end the interpreter's shutdown by a signal or with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
