"""The `reversi` command: the table of its commands, each loaded only when it runs, and its exit status.

Results go to standard output and, with ``--json``, nothing else does; progress and messages go to standard error. Bad input ends
with one line and status 2, other failures with one line and status 1, Ctrl-C with 130, a closed pipe with 141.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App, CoercionError, CycloptsError, Group, Parameter, UnknownCommandError, ValidationError

from play.cli.clone import CloneError, has_clone
from play.cli.interrupt import no_interrupt_lost
from reversi_env.errors import ReversiError, did_you_mean

#: Exit status when the reader of standard output has closed it: 128 + SIGPIPE.
BROKEN_PIPE = 141
#: Errors of the system that are about a file or folder named by the user; others are failures.
WRONG_PLACES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
#: Characters of a value that an error shows.
MAX_SHOWN = 60
#: The groups of the help, in its order.
PLAY, ANALYSE, TRAIN, EVALUATE = (
    Group(name, sort_key=place) for place, name in enumerate(("Play", "Analyse", "Train", "Evaluate"))
)
#: Commands that have commands of their own, with their line in the help.
GROUPS = {
    "book": (ANALYSE, "Build, show and check opening books."),
    "train": (TRAIN, "Train an evaluation network or a policy."),
}
#: The commands in the order of the help: group, function in `play.cli`, line in the help, which is the first of its docstring.
COMMANDS: dict[str, tuple[Group, str, str]] = {
    "play": (
        PLAY,
        "game.play:play",
        "Play a game in the terminal against an agent or another person, or watch two agents.",
    ),
    "gtp": (
        PLAY,
        "game.engines:gtp",
        "Run a GTP engine on standard input and output, for Quarry, GRhino and other GTP controllers.",
    ),
    "nboard": (PLAY, "game.engines:nboard", "Run an NBoard engine on standard input and output."),
    "serve": (PLAY, "game.serve:serve", "Run the game server and the web page."),
    "connect": (PLAY, "game.serve:connect", "Play a game on a server, yourself or with an agent."),
    "match": (
        PLAY,
        "measure.match:match",
        "Play a match between two agents; each opening is played with both colours.",
    ),
    "analyse": (
        ANALYSE,
        "analysis.analyse:analyse",
        "Search a position and print the best move, its value and the principal variation.",
    ),
    "review": (
        ANALYSE,
        "analysis.review:review",
        "Analyse every move of a game: its value, the discs it loses and the best move.",
    ),
    "solve": (
        ANALYSE,
        "analysis.solve:solve",
        "Solve endgames exactly and print the final score in discs for the side to move.",
    ),
    "puzzles": (ANALYSE, "analysis.puzzles:puzzles", "Generate endgame puzzles with a single best move."),
    "book show": (
        ANALYSE,
        "analysis.book:show",
        "Show the book moves of a position and their frequency in recorded games.",
    ),
    "book build": (
        ANALYSE,
        "analysis.book:build",
        "Build an opening book by best-first expansion and negamax backup.",
    ),
    "book check": (ANALYSE, "analysis.book:check", "Verify the moves of a book with a deeper search."),
    "demo": (
        TRAIN,
        "training.demo:demo",
        "Train a 6x6 network from scratch and compare it with the published heuristics.",
    ),
    "label": (TRAIN, "training.label:label", "Generate a dataset of labelled positions as Parquet files."),
    "train fit": (TRAIN, "training.fit:fit", "Fit an evaluation network to labelled positions."),
    "train bootstrap": (
        TRAIN,
        "training.bootstrap:bootstrap",
        "Train an evaluation network from scratch, from solved endgames back to the opening.",
    ),
    "train probcut": (TRAIN, "training.probcut:probcut", "Fit the ProbCut parameters of a weight file."),
    "train ppo": (TRAIN, "training.ppo:ppo", "Train a policy by reinforcement learning from scratch (PPO)."),
    "train alphazero": (TRAIN, "training.alphazero:alphazero", "Train by AlphaZero: self-play with a tree search."),
    "tune": (TRAIN, "training.tune:tune", "Tune the weights of a heuristic and save them to a file."),
    "tournament": (
        EVALUATE,
        "measure.tournament:tournament",
        "Run a tournament between agents and compute Elo ratings.",
    ),
    "winrate": (
        EVALUATE,
        "measure.winrate:winrate",
        "Estimate the win rate of an agent to a given precision (a draw counts half).",
    ),
    "exam": (
        EVALUATE,
        "measure.exam:exam",
        "Measure the errors of evaluators, or the strength of a policy with and without search.",
    ),
    "network": (
        EVALUATE,
        "measure.network:network",
        "Show the record of a weight file: game, architecture and training.",
    ),
    "perft": (
        EVALUATE,
        "measure.perft:perft",
        "Count the move sequences of a given length from the start position (perft).",
    ),
    "measure": (EVALUATE, "clone:measure", "Measure evaluators and players: tree errors, search depth, regret."),
    "experiment": (EVALUATE, "clone:experiment", "Repeat the experiments of docs/lab/experiments.md."),
    "bench": (EVALUATE, "clone:bench", "Run the speed benchmarks on this machine."),
    "cache": (EVALUATE, "measure.cache:cache", "Show the location and size of the caches, or clear them."),
}
#: Commands that only a clone of the project has.
CLONE_COMMANDS = ("measure", "experiment", "bench")
#: Other spellings of a command, which the help does not show.
ALIASES = {"analyze": "analyse"}


def application(arguments: Sequence[str] = ()) -> App:
    """Return the command line. A command among *arguments* shows its whole docstring; the others are known by their line alone."""
    app = _made_app("reversi", "Play, analyse, train and evaluate Reversi (Othello) and Reversed Reversi.")
    app.version = _version
    places = {path.split()[0]: place for place, path in reversed([*enumerate(COMMANDS)])}
    groups = {
        name: _made_app(name, words, group=group, sort_key=places[name]) for name, (group, words) in GROUPS.items()
    }
    for group in groups.values():
        app.command(group)
    for place, (path, (heading, function, words)) in enumerate(COMMANDS.items()):
        *parents, name = path.split()
        for spelling in (name, *(alias for alias, of in ALIASES.items() if of == name)):
            about: dict[str, Any] = {} if parents else {"group": heading}
            if spelling not in arguments:
                about["help"] = words
            hidden = spelling != name or (name in CLONE_COMMANDS and not has_clone())
            (groups[parents[0]] if parents else app).command(
                f"play.cli.{function}", name=spelling, sort_key=place, show=not hidden, **about
            )
    if "--install-completion" in arguments:
        app.register_install_completion_command()
    return app


def _made_app(name: str, words: str, **more: Any) -> App:
    return App(
        name=name,
        help=words,
        help_format="plaintext",
        default_parameter=Parameter(negative=(), allow_repeating=True),
        group_parameters=Group("Options", sort_key=10),
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        **more,
    )


def _version() -> str:
    from importlib.metadata import version

    return f"reversi {version('reversi-lab')}"


def main() -> None:
    """Run the command line and exit; the console script calls this by way of `play.__main__`."""
    _open_closed_streams()
    _write_any_character()
    arguments = sys.argv[1:]
    try:
        with no_interrupt_lost():
            sys.exit(application(arguments)(arguments))
    except CycloptsError as error:
        print(complaint(error), file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except MemoryError as error:
        print(
            f"reversi: not enough memory: expected a smaller job ({error or 'no details'})",
            file=sys.stderr,
        )
        sys.exit(1)
    except OSError as error:
        reason = f"{error.filename!r}: {error.strerror.lower()}" if error.filename and error.strerror else error
        print(f"reversi: {reason}", file=sys.stderr)
        sys.exit(2 if isinstance(error, WRONG_PLACES) else 1)
    except ImportError as error:
        if (problem := _import_problem(error)) is None:
            raise
        print(f"reversi: {problem}", file=sys.stderr)
        sys.exit(2)
    except (ReversiError, CloneError) as error:
        print(f"reversi: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_status", 2))


# --- what is wrong with a command line ------------------------------------------------------------


def complaint(error: CycloptsError) -> str:
    """Return one line about what was typed wrong, and where to read on."""
    command = " ".join(("reversi", *(error.command_chain or ())))
    return f"{command}: {_reason(error)} (see {command} --help)"


def _reason(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        before, [name, *_] = " ".join(error.command_chain or ()), error.unused_tokens
        known = [path.removeprefix(before).strip() for path in (*COMMANDS, *GROUPS) if path.startswith(before)]
        return f"command {_cut(name)!r} is unknown{did_you_mean(name, known)}"
    token = getattr(error, "token", None) or next(iter(getattr(error.argument, "tokens", ())), None)
    if isinstance(error, (CoercionError, ValidationError)) and token is not None and error.argument is not None:
        return f"{error.argument.name} {_cut(token.value)}: {_expected(error)}"
    return " ".join(str(error).split())


def _expected(error: Any) -> str:
    kind = getattr(error, "target_type", None)
    if get_origin(kind) is Literal:
        return f"expected one of {', '.join(map(str, get_args(kind)))}"
    return str(error.msg) if error.msg else f"expected {getattr(kind, '__name__', 'another value')}"


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _import_problem(error: ImportError) -> Exception | None:
    """Return why an import failed if a user can fix it: a missing library, or a file that shadows a package of the project."""
    from reversi_env.errors import extra_libraries
    from reversi_env.plugins import shadowing_error

    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    try:
        with extra_libraries():
            raise shadowing_error(cause) or cause
    except ReversiError as problem:
        return problem
    except ImportError:
        return None


# --- streams --------------------------------------------------------------------------------------


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


if __name__ == "__main__":
    main()
