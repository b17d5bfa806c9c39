"""The `reversi` command: the table of its commands, each loaded only when it runs, and its exit status.

Results go to standard output and, with ``--json``, nothing else does; progress and messages go to standard error. Bad input ends
with one line and status 2, other failures with one line and status 1, Ctrl-C with 130, a closed pipe with 141.
"""

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from play.cli.clone import has_clone
from play.interrupt import resend_swallowed_interrupt
from reversi_env import __version__
from reversi_env.errors import ReversiError, did_you_mean, extra_libraries, quoted

#: Exit status when the reader of standard output has closed it: 128 + SIGPIPE.
BROKEN_PIPE = 141
#: Errors of the system that are about a file or folder named by the user; others are failures.
PATH_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
#: Characters of a value that an error shows.
MAX_SHOWN = 60
#: Commands with subcommands, and their line in the help.
GROUPS = {
    "book": "Build, show and check opening books.",
    "train": "Train a value network, a policy or a sequence model.",
}
#: The groups of the help, each with its commands: name, module in `play.cli`, and the first line of the command's docstring.
_TABLE = """\
Play
  play             game.play           Play a game in the terminal against an agent or another person, or watch two agents.
  gtp              game.engines        Run a GTP engine on standard input and output, for Quarry, GRhino and other GTP controllers.
  nboard           game.engines        Run an NBoard engine on standard input and output.
  serve            game.serve          Run the game server and the web page.
  connect          game.serve          Play a game on a server, yourself or with an agent.
  match            measure.match       Play a match between two agents; each opening is played with both colours.
Analyse
  analyse          analysis.analyse    Search a position and print the best move, its value and the principal variation.
  review           analysis.review     Analyse every move of a game: its value, the discs it loses and the best move.
  solve            analysis.solve      Solve endgames exactly and print the final score in discs for the side to move.
  puzzles          analysis.puzzles    Generate endgame puzzles with a single best move.
  book show        analysis.book       Show the book moves of a position and their frequency in recorded games.
  book build       analysis.book       Build an opening book by searches of its positions.
  book solve       analysis.book       Build a book of all positions up to a ply with their exact scores, on 4x4 or 6x6.
  book check       analysis.book       Verify the moves of a book with a deeper search.
Train
  demo             training.demo       Train a 6x6 network from scratch and compare it with the published heuristics.
  label            training.label      Generate a dataset of labelled positions as Parquet files.
  tokens           training.gpt        Write games as sequences of tokens to Parquet files.
  train fit        training.fit        Fit a value network to labelled positions.
  train bootstrap  training.bootstrap  Train a value network from scratch, from solved endgames back to the opening.
  train probcut    training.probcut    Fit the ProbCut parameters of a weight file.
  train ppo        training.ppo        Train a policy by reinforcement learning from scratch (PPO).
  train alphazero  training.alphazero  Train by AlphaZero: self-play with a tree search.
  train gpt        training.gpt        Train a GPT to predict the moves of games (Othello-GPT).
  tune             training.tune       Tune the weights of a heuristic and save them to a file.
Evaluate
  tournament       measure.tournament  Run a tournament between agents and compute Elo ratings.
  winrate          measure.winrate     Estimate the win rate of an agent to a given precision (a draw counts half).
  exam             measure.exam        Measure the errors of evaluators, or the strength of a policy with and without search.
  probe            training.gpt        Probe what a GPT knows of the board, and change it.
  network          measure.network     Show the record of a weight file: game, architecture and training.
  perft            measure.perft       Count the move sequences of a given length from the start position (perft).
  measure          clone               Measure evaluators and players: search depth, regret.
  experiment       clone               Repeat the experiments of docs/lab/experiments.md.
  bench            clone               Run the speed benchmarks on this machine.
  cache            measure.cache       Show the location and size of the caches, or clear them.
"""
#: Commands that only a clone of the project has.
CLONE_COMMANDS = ("measure", "experiment", "bench")
#: Other spellings of a command, which the help does not show.
ALIASES = {"analyze": "analyse"}


class Command(NamedTuple):
    """A command of the table: its group in the help, its function as ``module:name``, and its help line."""

    group: str
    function: str
    line: str


def _commands() -> Iterator[tuple[str, Command]]:
    group = ""
    for row in _TABLE.splitlines():
        if not row.startswith(" "):
            group = row
            continue
        path, module, line = re.split(r"\s{2,}", row.strip(), maxsplit=2)
        yield path, Command(group, f"play.cli.{module}:{path.split()[-1]}", line)


COMMANDS = dict(_commands())


def application(arguments: Sequence[str] = ()) -> App:
    """Return the command line. Commands that *arguments* do not name are not loaded: their help is the line of the table."""
    app = _new_app("reversi", "Play, analyse, train and evaluate Reversi (Othello) and Reversed Reversi.")
    app.version = f"reversi {__version__}"
    app["--help"].group = app["--version"].group = Group("Options", sort_key=10)
    headings: dict[str, Group] = {}
    parents: dict[str, App] = {}
    for place, (path, (group, function, line)) in enumerate(COMMANDS.items()):
        heading = headings.setdefault(group, Group(group, sort_key=len(headings)))
        *parent, name = path.split()
        if parent and parent[0] not in parents:
            parents[parent[0]] = _new_app(parent[0], GROUPS[parent[0]], group=heading, sort_key=place)
            app.command(parents[parent[0]])
        for spelling in (name, *(alias for alias, target in ALIASES.items() if target == name)):
            settings: dict[str, Any] = {} if parent else {"group": heading}
            if spelling not in arguments:
                settings["help"] = line
            settings["show"] = spelling == name and (name not in CLONE_COMMANDS or has_clone())
            (parents[parent[0]] if parent else app).command(function, name=spelling, sort_key=place, **settings)
    if "--install-completion" in arguments or not arguments or arguments[0] in ("--help", "-h"):
        app.register_install_completion_command(
            group=app["--help"].group, help="Install Tab completion for this shell."
        )
    return app


def _new_app(name: str, line: str, **settings: Any) -> App:
    return App(
        name=name,
        help=line,
        help_format="plaintext",
        default_parameter=Parameter(negative=(), allow_repeating=True),
        group_parameters=Group("Options", sort_key=10),
        result_action="return_value",
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        **settings,
    )


def main() -> None:
    """Run the command line and exit; the console script calls this by way of `play.__main__`."""
    _prepare_streams()
    arguments = sys.argv[1:]
    try:
        with resend_swallowed_interrupt():
            sys.exit(application(arguments)(arguments))
    except CycloptsError as error:
        _fail(2, usage_error(error), program="")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except MemoryError as error:
        _fail(1, f"not enough memory: expected a smaller job ({error or 'no details'})")
    except OSError as error:
        reason = f"{error.filename!r}: {error.strerror.lower()}" if error.filename and error.strerror else error
        _fail(2 if isinstance(error, PATH_ERRORS) else 1, reason)
    except ImportError as error:
        _fail(2, _import_problem(error))
    except ReversiError as error:
        _fail(getattr(error, "exit_status", 2), error)


def _fail(status: int, message: object, program: str = "reversi: ") -> NoReturn:
    print(f"{program}{message}", file=sys.stderr)
    sys.exit(status)


def usage_error(error: CycloptsError) -> str:
    """Return one line with the error of a command line and the help to read."""
    command = " ".join(("reversi", *(error.command_chain or ())))
    return f"{command}: {_reason(error)} (see {command} --help)"


def _reason(error: CycloptsError) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        before, [name, *_] = " ".join(error.command_chain or ()), error.unused_tokens
        names = [path.removeprefix(before).strip() for path in (*COMMANDS, *GROUPS) if path.startswith(before)]
        return f"command {quoted(name)} is unknown{did_you_mean(name, names)}: expected a command from the list"
    argument: Any = error.argument
    if isinstance(error, MissingArgumentError) and argument is not None:
        about = (argument.parameter.help or "").rstrip(".")
        return f"{argument.name} is missing: expected a value{about and f' ({about})'}"
    if isinstance(error, UnknownOptionError):
        name = error.token.keyword or error.token.value
        return f"option {name} is unknown{_meant_option(name, error)}: expected an option from the list"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"argument {quoted(error.unused_tokens[0])} is one too many: expected fewer, or an option in front of it"
    token = getattr(error, "token", None) or next(iter(getattr(argument, "tokens", ())), None)
    if isinstance(error, (CoercionError, ValidationError)) and token is not None and argument is not None:
        shown = token.value if len(token.value) <= MAX_SHOWN else f"{token.value[: MAX_SHOWN - 1]}…"
        kind = getattr(error, "target_type", None)
        choices = ", ".join(map(str, get_args(kind))) if get_origin(kind) is Literal else None
        reason = getattr(error, "exception_message", "") or error.msg
        words = "no value" if kind is bool else getattr(kind, "__name__", "another value")
        expected = f"one of {choices}" if choices else words
        meant = _meant_option(token.value, error) if token.value.startswith("--") else ""
        return f"{argument.name} {shown}{meant}: {(not choices and reason) or f'expected {expected}'}"
    return " ".join(str(error).split())


def _meant_option(word: str, error: CycloptsError) -> str:
    arguments: Any = error.app.assemble_argument_collection() if error.app else ()
    return did_you_mean(word, [name for one in arguments for name in one.names])


def _import_problem(error: ImportError) -> ReversiError:
    """Return the error of a missing extra, or of a file that shadows a package of the project; raise any other error."""
    from reversi_env.loading import shadowing_error

    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    try:
        with extra_libraries():
            raise shadowing_error(cause) or cause
    except ReversiError as problem:
        return problem


def _prepare_streams() -> None:
    """Replace closed streams (``<&-``) by empty ones, and characters that standard output cannot encode by "?"."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
