"""The `reversi` command: one file a subcommand in `play.cli`, each imported only when it runs.

The contract: results go to standard output and, with ``--json``, nothing else does; progress and messages go to
standard error. Bad input ends with one clear line and exit status 2, what fails otherwise with one and 1, never with a
traceback; after Ctrl-C it is 130.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from play.cli.clone import CloneError
from play.cli.interrupt import no_interrupt_lost
from play.cli.usage import Application, ClosedPipe, Command, UsageError, complaint

#: Exit status when nobody reads our output any more: 128 + SIGPIPE, as shells have it.
BROKEN_PIPE = 141
#: Errors of the system that are about a file or folder named by the user; others are failures.
WRONG_PLACES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
#: The groups of the help, in its order.
PLAY, LOOK, LEARN, MEASURE = "Play", "Look into positions", "Learn", "Measure"
#: The commands in the help's order: its group, where in `play.cli` it is, and of which class, if not the usual. An `app` has
#: commands of its own.
COMMANDS: dict[str, tuple[str, ...]] = {
    "play": (PLAY, "game.play:play"),
    "gtp": (PLAY, "game.gtp:gtp"),
    "nboard": (PLAY, "game.nboard:nboard"),
    "serve": (PLAY, "game.serve:serve"),
    "connect": (PLAY, "game.connect:connect"),
    "match": (PLAY, "measure.match:match"),
    "analyse": (LOOK, "analysis.analyse:analyse", "analysis.analyse:AnalyseCommand"),
    "review": (LOOK, "analysis.review:review"),
    "analyze": (LOOK, "analysis.analyse:analyse", "analysis.analyse:AnalyseCommand"),
    "solve": (LOOK, "analysis.solve:solve"),
    "puzzles": (LOOK, "analysis.puzzles:puzzles"),
    "evaluate": (LOOK, "analysis.evaluate:evaluate"),
    "book": (LOOK, "analysis.book:app"),
    "perft": (LOOK, "measure.perft:perft"),
    "demo": (LEARN, "training.demo:demo"),
    "label": (LEARN, "training.label:label", "clusters:ClusterCommand"),
    "train": (LEARN, "training.fit:train"),
    "tune": (LEARN, "training.tune:tune"),
    "rl": (LEARN, "training.ppo:app"),
    "tournament": (MEASURE, "measure.tournament:tournament", "clusters:ClusterCommand"),
    "winrate": (MEASURE, "measure.tournament:winrate"),
    "exam": (MEASURE, "measure.exam:exam"),
    "network": (MEASURE, "measure.network:network"),
    "measure": (MEASURE, "studies:measure"),
    "experiment": (MEASURE, "studies:experiment"),
    "bench": (MEASURE, "bench:app"),
    "cache": (MEASURE, "measure.cache:app"),
}
#: Other spellings of a command, which the help does not show.
ALIASES = ("analyze",)


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"reversi {version('reversi-lab')}")
        raise typer.Exit


def reversi(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """A laboratory for Reversi and Reversed Reversi: play, measure and learn."""


@cache
def application(names: Iterable[str] = tuple(COMMANDS)) -> Application:
    """The command line with these commands: all of them, or the one that will run, which is loaded much quicker."""
    app = Application(
        name="reversi",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(reversi)
    for name in names:
        panel, place, *kind = COMMANDS[name]
        try:
            command = _loaded(place)
        except CloneError:
            if names == (name,):
                raise
            continue
        if isinstance(command, Application):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            cls = _loaded(*kind) if kind else Command
            app.command(name, rich_help_panel=panel, cls=cls, hidden=name in ALIASES)(command)
    return app


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"play.cli.{module}"), name)


def _asked(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that a command line names, or all of them for help, completion and errors."""
    first = next(iter(arguments), "")
    return (first,) if first in COMMANDS and "_REVERSI_COMPLETE" not in os.environ else tuple(COMMANDS)


def main() -> None:
    """Run the command line; the console script comes here by way of `play.__main__`."""
    _open_closed_streams()
    _write_any_character()
    try:
        with no_interrupt_lost():
            sys.exit(application(_asked(sys.argv[1:]))(prog_name="reversi", standalone_mode=False))
    except UsageError as error:
        if (line := complaint(error)) is not None:
            print(line, file=sys.stderr)
        sys.exit(2)
    except (BrokenPipeError, ClosedPipe):  # whoever reads our output has seen enough, as in `reversi … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except MemoryError as error:
        print(
            f"reversi: not enough memory for that: expected less at once ({error or 'nothing more is known'})",
            file=sys.stderr,
        )
        sys.exit(1)
    except OSError as error:
        reason = f"{error.filename!r}: {error.strerror.lower()}" if error.filename and error.strerror else error
        print(f"reversi: {reason}", file=sys.stderr)
        sys.exit(2 if isinstance(error, WRONG_PLACES) else 1)
    except ImportError as error:
        if (told := _told(error)) is None:
            raise
        print(f"reversi: {told}", file=sys.stderr)
        sys.exit(2)
    except ValueError as error:
        if not _is_told(error):
            raise
        print(f"reversi: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_status", 2))


def _open_closed_streams() -> None:
    """Let a stream that whoever started us has closed (``<&-``) be an empty one, in the place that it had."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - as long as we run


def _write_any_character() -> None:
    """Let no result be lost for a character that the terminal's encoding lacks; names of files keep bytes that are no text."""

    def forgive(error: UnicodeError) -> tuple[bytes, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        lacking = error.object[error.start : error.end]
        return b"".join(bytes([ord(one) & 255]) if "\udc80" <= one <= "\udcff" else b"?" for one in lacking), error.end

    codecs.register_error("reversi", forgive)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="reversi")


def _is_told(error: ValueError) -> bool:
    """Whether the error is about the input, and its message all that a user needs; the rules are loaded by then, or not needed."""
    errors = sys.modules.get("reversi_env.errors")
    return isinstance(error, CloneError) or (errors is not None and isinstance(error, errors.ReversiError))


def _told(error: ImportError) -> Exception | None:
    """Why an import failed, if a user can help it: a library that is not installed, or a file that hides a package of ours."""
    from reversi_env import ReversiError
    from reversi_env.extras import extra_libraries
    from reversi_env.plugins import explained

    try:
        with extra_libraries():
            raise explained(error) or error
    except ReversiError as told:
        return told
    except ImportError:
        return None


if __name__ == "__main__":
    main()
