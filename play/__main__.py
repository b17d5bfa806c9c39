"""Where the `reversi` command begins: so little that Ctrl-C finds a guard from the first moment on.

Everything else is imported within it; `python -m play` does the same.
"""

from __future__ import annotations

import sys

#: Exit status after Ctrl-C, as shells have it: 128 + SIGINT. That of `play.commands.interruptible`, which is not loaded yet.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is loaded ends it without a traceback."""
    try:
        from play.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
