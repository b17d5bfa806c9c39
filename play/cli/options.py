"""Options that commands share, and `options_of`, which makes the options of a command from an `Options` class."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import MISSING
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict, get_args

from cyclopts import Parameter

from reversi_env.errors import ReversiError
from reversi_env.options import OptionField, option_fields

if TYPE_CHECKING:
    from train.jobs.processes import Executor

#: Options that have a letter, the same in every command.
LETTERS = {
    "--agent": "-a",
    "--colour": "-c",
    "--depth": "-d",
    "--empties": "-e",
    "--games": "-g",
    "--level": "-l",
    "--out": "-o",
    "--plies": "-k",
    "--positions": "-p",
    "--size": "-n",
    "--threads": "-t",
    "--variant": "-v",
    "--workers": "-w",
}
#: The default of a command's options from an `Options` class: nothing was typed.
NOTHING: dict[str, Any] = MappingProxyType({})  # type: ignore[assignment]


# --- options of an Options class ------------------------------------------------------------------


def options_of(
    kind: type[Any],
    *,
    presets: bool = False,
    without: Sequence[str] = (),
    required: Sequence[str] = (),
    named: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Return the type of a parameter that holds the options of an `Options` class *kind* that were typed, by field.

    A field without help, or in *without*, is no option of the command. With *presets* the help shows no defaults, because the game
    decides them. *named* gives options other names than those of their fields.
    """
    types: dict[str, Any] = {}
    for one in option_fields(kind):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
        if one.help and one.name not in without:
            name = f"--{named.get(one.name, one.name).replace('_', '-')}"
            is_required = one.name in required or (one.default is MISSING and not presets)
            shown = Required[_shown_type(one)] if is_required else _shown_type(one)
            types[one.name] = Annotated[shown, _parameter(one, name, shows_default=not presets and not is_required)]
    return Annotated[TypedDict(kind.__name__, types, total=False), Parameter(name="*")]  # type: ignore[operator]


def _shown_type(one: OptionField) -> Any:
    """Return the type that the help and the completion of an option are made from."""
    if one.choices:
        return Literal[tuple(one.choices)]
    if one.is_tuple:
        return str if get_args(one.type) == (int, int) else list[str]
    return one.type


def _parameter(one: OptionField, *names: str, shows_default: bool = False) -> Parameter:
    names, words = _with_letter(names), one.help
    if one.type is bool:
        has_negative = one.default is True or not shows_default
        return Parameter(names, help=words, negative=f"--no-{names[0][2:]}" if has_negative else ())
    if shows_default and one.default not in (MISSING, None, ()):
        default = one.default
        if isinstance(default, tuple):
            default = ("-" if get_args(one.type) == (int, int) else ",").join(map(str, default))
        words += f" [default: {default}]"
    metavar = None
    if one.is_tuple:
        items = get_args(one.type)
        metavar = "LOW-HIGH" if items == (int, int) else "SPEC" if items[0] is str else "N,…"
    return Parameter(
        names,
        help=words,
        metavar=metavar,
        show_default=_range_text if metavar == "LOW-HIGH" else None,
        negative=(),
        n_tokens=None if _shown_type(one) == list[str] else 1,
        converter=lambda _, tokens: one.parse([token.value for token in tokens]),
        allow_leading_hyphen=one.type in (int, float),
    )


def _range_text(values: tuple[int, int]) -> str:
    return "{}-{}".format(*values)


def _with_letter(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, LETTERS[names[0]]) if len(names) == 1 and names[0] in LETTERS else names


def integer(*names: str, help: str, low: int = 0, high: int | None = None, even: bool = False) -> Parameter:
    """Return the declaration of an option with an integer, both bounds included."""
    return _parameter(OptionField(names[0], int, True, None, help, low, high, (), even), *names)


def integers(*names: str, help: str, low: int = 0, high: int | None = None) -> Parameter:
    """Return the declaration of an option with integers, separated by commas or each with the option again."""
    return _parameter(OptionField(names[0], tuple[int, ...], True, None, help, low, high, ()), *names)


def integer_range(*names: str, help: str, low: int = 0, high: int | None = None) -> Parameter:
    """Return the declaration of an option with a range such as ``10-14``."""
    return _parameter(OptionField(names[0], tuple[int, int], True, None, help, low, high, ()), *names)


def number(*names: str, help: str, low: float = 0, high: float | None = None) -> Parameter:
    """Return the declaration of an option with a number, both bounds included."""
    return _parameter(OptionField(names[0], float, True, None, help, low, high, ()), *names)


def text(*names: str, help: str, metavar: str | None = None) -> Parameter:
    """Return the declaration of an option with a text, a path or a choice."""
    return Parameter(_with_letter(names), help=help, metavar=metavar, negative=())


def flag(*names: str, help: str, negative: str | tuple[()] = ()) -> Parameter:
    """Return the declaration of a flag, which is off unless it is typed or has a *negative*."""
    return Parameter(names, help=help, negative=negative, show_default=False)


# --- shared options -------------------------------------------------------------------------------

Size = Annotated[int, integer("--size", help="Board size: 4, 6 or 8.")]
VariantName = Annotated[
    Literal["normal", "reversed"],
    text("--variant", help="Rules: normal (most discs win) or reversed (fewest discs win)."),
]
VariantOrDefault = Annotated[
    Literal["normal", "reversed"] | None,
    text("--variant", help="Rules: normal (default; most discs win) or reversed (fewest discs win)."),
]
Seed = Annotated[int, integer("--seed", help="Random seed.")]
Threads = Annotated[
    int | None, integer("--threads", help="Number of threads (default: one per core).", low=1, high=1024)
]
SearchThreads = Annotated[int, integer("--threads", help="Number of search threads.", low=1, high=1024)]
Json = Annotated[bool, flag("--json", help="Print the result as JSON on standard output.")]
Plot = Annotated[Path | None, text("--plot", help="Write the plot to FILE.svg, .png or .pdf.", metavar="FILE")]
Out = Annotated[Path, text("--out", help="Folder for weights, logs and checkpoints.", metavar="DIR")]
Cache = Annotated[Path | None, text("--cache", help="Cache folder of solved positions.", metavar="DIR")]
SPEC_HELP = "Agent spec, such as network:time=2 or six-factor:depth=3 (default: the strongest agent for the game)."
AgentArgument = Annotated[str | None, Parameter(help=SPEC_HELP, show_default=False)]
AgentOption = Annotated[str | None, text("--agent", help=SPEC_HELP, metavar="SPEC")]
Level = Annotated[
    int | None, integer("--level", help="Level of the human-like agent that plays: 1 (beginner) to 10.", low=1, high=10)
]
Ponder = Annotated[bool, flag("--ponder", help="Ponder: think on the opponent's time.")]
SecondsPerMove = Annotated[
    float,
    number("--time", help="Seconds per move if neither the agent spec nor the controller sets a limit.", low=0.001),
]
GameNumber = Annotated[
    int | None, integer("--game", help="Number of the game in a file with several games, from 1 (default: 1).", low=1)
]
StartSize = Annotated[int | None, integer("--size", help="Board size of start or of moves: 4, 6 or 8 (default: 8).")]
Device = Annotated[Literal["cpu", "cuda"], text("--device", help="Device: cpu or cuda.")]
RayAddress = Annotated[
    str | None,
    text(
        "--ray",
        help="Run on a Ray cluster: auto (the one of this machine), local (a new one) or HOST:PORT of its head.",
        metavar="ADDRESS",
    ),
]
Workers = Annotated[
    int | None,
    integer("--workers", help="Number of worker processes (default: threads of this process).", low=1, high=1024),
]
ProcessCount = Annotated[
    int | None, integer("--workers", help="Number of worker processes (default: one per core).", low=1, high=1024)
]


def agent_of_level(agent: str | None, level: int | None) -> str | None:
    """Return the spec of ``--agent`` or ``--level``; None if neither is given."""
    if agent is not None and level is not None:
        raise ReversiError(f"--level {level} with agent {agent!r}: expected one of them")
    return agent if level is None else f"human:level={level}"


# --- checks ---------------------------------------------------------------------------------------


def checked_plot(path: Path | None) -> None:
    """Refuse a plot that could not be written, before anything is measured for it."""
    from reversi_env.errors import require

    if path is None:
        return
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ReversiError(f"--plot {str(path)!r}: expected a name that ends in .svg, .png or .pdf")
    checked_parent("--plot", path)
    require("matplotlib")


def checked_parent(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    if path is None:
        return
    if path.is_dir():
        raise ReversiError(f"{option} {str(path)!r}: expected a file, and not a folder")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ReversiError(
            f"{option} {str(path)!r}: expected a file in a folder where you may write, not in {str(path.parent)!r}"
        )


def make_folder(option: str, path: Path | None) -> None:
    """Make the folder for results, or refuse it before there are any."""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ReversiError(f"{option} {str(path)!r}: expected a folder, and not a file or a folder in one") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(f"{option} {str(path)!r}, {reason}: expected a folder where you may write") from None
    if not os.access(path, os.W_OK):
        raise ReversiError(f"{option} {str(path)!r}, read-only: expected a folder where you may write")


def torch_threads(threads: int | None) -> int:
    """Set the number of threads that torch uses, by default one per core, and return it."""
    import torch

    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    return count


@contextmanager
def chosen_executor(ray: str | None, workers: int | None) -> Iterator[Executor | None]:
    """Give the executor of ``--ray`` and ``--workers``; None for this process, in the command's own way."""
    from train.jobs.processes import LocalExecutor

    if ray is None:
        yield None if workers is None else LocalExecutor(workers)
        return
    if workers is not None:
        raise ReversiError(
            f"--workers {workers} with --ray: expected one of them; a cluster has its own number of workers"
        )
    from train.jobs.ray import RayCluster

    def tell(words: str) -> None:
        print(f"reversi: {words}", file=sys.stderr)

    # Ray prints pages on standard output when it loses a machine; one line on standard error is enough.
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        RayCluster(ray, tell) as cluster,
    ):
        yield cluster
