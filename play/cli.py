"""The `reversi` command: one file a subcommand in `play.commands`, each imported only when it runs.

The contract: results go to standard output and, with ``--json``, nothing else does; progress and messages go to
standard error. Bad input ends with one clear line and exit status 2, what fails otherwise with one and 1, never with a
traceback; after Ctrl-C it is 130.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from play.commands import (
    analyse,
    bench,
    connect,
    demo,
    evaluate,
    exam,
    experiment,
    expert,
    gtp,
    label,
    match,
    measure,
    nboard,
    perft,
    play,
    rl,
    rl_exam,
    serve,
    solve,
    tournament,
    train,
    tune,
)
from play.commands.clusters import ClusterCommand
from play.commands.interruptible import no_interrupt_lost
from play.commands.usage import Application, UsageError, complaint

app = Application(
    name="reversi",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"reversi {version('reversi-lab')}")
        raise typer.Exit


@app.callback()
def reversi(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """A laboratory for Reversi and Reversed Reversi: play, measure and learn."""


#: Exit status when nobody reads our output any more: 128 + SIGPIPE, as shells have it.
BROKEN_PIPE = 141
#: Errors of the system that are about a file or folder named by the user; others are failures.
WRONG_PLACES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
#: The groups of the help, in its order.
PLAY, LOOK, LEARN, MEASURE = "Play", "Look into positions", "Learn", "Measure"

app.command("play", rich_help_panel=PLAY)(play.play)
app.command("gtp", rich_help_panel=PLAY)(gtp.gtp)
app.command("nboard", rich_help_panel=PLAY)(nboard.nboard)
app.command("serve", rich_help_panel=PLAY)(serve.serve)
app.command("connect", rich_help_panel=PLAY)(connect.connect)
app.command("match", rich_help_panel=PLAY)(match.match)
app.command("analyse", rich_help_panel=LOOK, cls=analyse.AnalyseCommand)(analyse.analyse)
app.command("solve", rich_help_panel=LOOK)(solve.solve)
app.command("evaluate", rich_help_panel=LOOK)(evaluate.evaluate)
app.command("perft", rich_help_panel=LOOK)(perft.perft)
app.command("demo", rich_help_panel=LEARN)(demo.demo)
app.command("label", rich_help_panel=LEARN, cls=ClusterCommand)(label.label)
app.command("train", rich_help_panel=LEARN)(train.train)
app.command("tune", rich_help_panel=LEARN, cls=ClusterCommand)(tune.tune)
rl.app.command("expert")(expert.expert)
rl.app.command("exam")(rl_exam.exam)
app.add_typer(rl.app, name="rl", rich_help_panel=LEARN)
app.command("tournament", rich_help_panel=MEASURE, cls=ClusterCommand)(tournament.tournament)
app.command("winrate", rich_help_panel=MEASURE)(tournament.winrate)
app.command("exam", rich_help_panel=MEASURE)(exam.exam)
app.add_typer(measure.app, name="measure", rich_help_panel=MEASURE)
app.add_typer(experiment.app, name="experiment", rich_help_panel=MEASURE)
app.add_typer(bench.app, name="bench", rich_help_panel=MEASURE)


def main() -> None:
    """Run the command line; the console script comes here by way of `play.__main__`."""
    _open_closed_streams()
    try:
        with no_interrupt_lost():
            sys.exit(app(prog_name="reversi", standalone_mode=False))
    except UsageError as error:
        if (line := complaint(error)) is not None:
            print(line, file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # whoever reads our output has seen enough, as in `reversi … | head`
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


def _is_told(error: ValueError) -> bool:
    """Whether the error is about the input, and its message all that a user needs; the rules are loaded by then, or not needed."""
    errors = sys.modules.get("reversi_env.errors")
    return errors is not None and isinstance(error, errors.ReversiError)


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
