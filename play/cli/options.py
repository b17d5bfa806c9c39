"""Options that commands share, and `options_of`, which makes the options of a command from an `Options` class."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import MISSING, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict, get_args

from cyclopts import Parameter

from reversi_env.errors import ReversiError, require
from reversi_env.options import OptionField, Options, option_fields
from reversi_env.rules import SIZES

if TYPE_CHECKING:
    from train.jobs.processes import Executor

#: Options with a letter, the same in every command.
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
#: Default of a command's options that come from an `Options` class: no option was typed.
NOTHING: dict[str, Any] = MappingProxyType({})  # type: ignore[assignment]


def options_of(
    kind: type[Any],
    *,
    preset: Callable[..., Options] | None = None,
    without: Sequence[str] = (),
    required: Sequence[str] = (),
    named: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Return the type of a parameter that holds the options of an `Options` class *kind* that were typed, by field.

    A field without help, or one in *without*, is not an option of the command. The defaults in the help are those of the class or,
    with *preset*, of its results for each board and device. *named* gives options other names than those of their fields.
    """
    types: dict[str, Any] = {}
    for one in option_fields(kind):  # type: ignore[arg-type]  # mypy: no Hashable of a frozen class's type
        if one.help and one.name not in without:
            name = f"--{named.get(one.name, one.name).replace('_', '-')}"
            is_required = one.name in required or (one.default is MISSING and preset is None)
            shown: Any = Literal[tuple(one.choices)] if one.choices else one.type  # for the help and the completion
            if one.is_tuple:
                shown = str if get_args(one.type) == (int, int) else list[str]
            if preset is not None and "(default" not in one.help:
                one = replace(one, help=f"{one.help} [default: {_preset_defaults(one.name, preset)}]")
            parameter = _parameter(one, name, shows_default=preset is None and not is_required)
            types[one.name] = Annotated[Required[shown] if is_required else shown, parameter]
    return Annotated[TypedDict(kind.__name__, types, total=False), Parameter(name="*")]  # type: ignore[operator]


def _preset_defaults(name: str, preset: Callable[..., Options]) -> str:
    """Return a default, or the defaults for 4x4/6x6/8x8, on a CPU and, if they differ, on a GPU."""
    texts = []
    for device in ("cpu", "cuda"):
        values = [str(getattr(preset(size, device=device), name)) for size in SIZES]
        texts.append(values[0] if len(set(values)) == 1 else "/".join(values))
    return texts[0] if len(set(texts)) == 1 else ", cuda: ".join(texts)


def _parameter(one: OptionField, *names: str, shows_default: bool = False) -> Parameter:
    names, words, items = _with_letter(names), one.help, get_args(one.type) if one.is_tuple else ()
    if one.type is bool:
        has_negative = one.default is True or not shows_default
        return Parameter(names, help=words, negative=f"--no-{names[0][2:]}" if has_negative else ())
    is_range, metavar = items == (int, int), None
    if shows_default and one.default not in (MISSING, None, ()):
        words += f" [default: {('-' if is_range else ',').join(map(str, one.default)) if items else one.default}]"
    if items:
        metavar = "LOW-HIGH" if is_range else "NAME" if items[0] is str else "N,…"
    return Parameter(
        names or None,
        help=words,
        metavar=metavar,
        show_default=(lambda values: "{}-{}".format(*values)) if is_range else None,
        negative=(),
        n_tokens=None if items and not is_range else 1,
        converter=lambda _, tokens: one.parse([token.value for token in tokens]),
        allow_leading_hyphen=one.type in (int, float),
    )


def _with_letter(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, LETTERS[names[0]]) if len(names) == 1 and names[0] in LETTERS else names


def _numeric(
    kind: Any, help: str, *names: str, low: float = 0, high: float | None = None, even: bool = False
) -> Parameter:
    """Return the declaration of an option with a number, or a tuple of numbers, of a *kind*; both bounds are included.

    Without *names* the option has the name of its parameter. This holds for `text` and `flag`, too.
    """
    return _parameter(OptionField("".join(names[:1]), kind, True, None, help, low, high, (), even), *names)


integer, number = partial(_numeric, int), partial(_numeric, float)
#: Integers, separated by commas or by repeating the option; and a range such as ``10-14``.
integers, integer_range = partial(_numeric, tuple[int, ...]), partial(_numeric, tuple[int, int])


def text(help: str, *names: str, metavar: str | None = None) -> Parameter:
    """Return the declaration of an option with a text, a path or a choice."""
    return Parameter(_with_letter(names) or None, help=help, metavar=metavar, negative=())


def flag(help: str, *names: str, negative: str | tuple[()] = ()) -> Parameter:
    """Return the declaration of a flag, which is off unless it is typed or has a *negative*."""
    return Parameter(names or None, help=help, negative=negative, show_default=False)


# --- shared options -------------------------------------------------------------------------------

Size = Annotated[int, integer("Board size: 4, 6 or 8.", "--size")]
VariantName = Annotated[
    Literal["normal", "reversed"], text("Rules: normal (most discs win) or reversed (fewest discs win).", "--variant")
]
VariantOrDefault = Annotated[
    Literal["normal", "reversed"] | None,
    text("Rules: normal (default; most discs win) or reversed (fewest discs win).", "--variant"),
]
Seed = Annotated[int, integer("Random seed.", "--seed")]
Threads = Annotated[int | None, integer("Number of threads (default: one per core).", "--threads", low=1, high=1024)]
SearchThreads = Annotated[int, integer("Number of search threads.", "--threads", low=1, high=1024)]
Json = Annotated[bool, flag("Print the result as JSON on standard output.", "--json")]
Plot = Annotated[Path | None, text("Write the plot to FILE.svg, .png or .pdf.", "--plot", metavar="FILE")]
Out = Annotated[Path, text("Folder for weights, logs and checkpoints.", "--out", metavar="DIR")]
Cache = Annotated[Path | None, text("Cache folder of solved positions.", "--cache", metavar="DIR")]
SPEC_HELP = (
    "Agent (computer player) with its options, such as network:time=2 or six-factor:depth=3 (default: the strongest)."
)
AgentArgument = Annotated[str | None, Parameter(help=SPEC_HELP, show_default=False)]
AgentOption = Annotated[str | None, text(SPEC_HELP, "--agent", metavar="SPEC")]
Level = Annotated[
    int | None, integer("Level for people, in place of --agent: 1 (beginner) to 10.", "--level", low=1, high=10)
]
Ponder = Annotated[bool, flag("Ponder: think on the opponent's time.", "--ponder")]
SecondsPerMove = Annotated[
    float, number("Seconds per move if neither the agent spec nor the controller sets a limit.", "--time", low=0.001)
]
GameNumber = Annotated[
    int | None, integer("Number of the game in a file with several games, from 1 (default: 1).", "--game", low=1)
]
StartSize = Annotated[
    int | None, integer("Board size, if the position or game does not have it: 4, 6 or 8 (default: 8).", "--size")
]
Device = Annotated[Literal["cpu", "cuda"], text("Device: cpu or cuda.", "--device")]
RayAddress = Annotated[
    str | None,
    text(
        "Run on a Ray cluster: auto (the cluster in RAY_ADDRESS or on this machine, else a new cluster), local (a new cluster) "
        "or HOST:PORT of a cluster's first machine.",
        "--ray",
        metavar="ADDRESS",
    ),
]
Workers = Annotated[
    int | None,
    integer("Number of worker processes (default: none, but threads of this process).", "--workers", low=1, high=1024),
]
ProcessCount = Annotated[
    int | None, integer("Number of worker processes (default: one per core).", "--workers", low=1, high=1024)
]


def agent_of_level(agent: str | None, level: int | None) -> str | None:
    """Return the spec of ``--agent`` or ``--level``; None if neither is given."""
    if agent is not None and level is not None:
        raise ReversiError(f"--level {level} with agent {agent!r}: expected one of them")
    return agent if level is None else f"human:level={level}"


def checked_plot(path: Path | None) -> None:
    """Raise an error, before the measurement, if the plot could not be written."""
    if path is None:
        return
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ReversiError(f"--plot {str(path)!r}: expected a name that ends in .svg, .png or .pdf")
    checked_parent("--plot", path)
    require("matplotlib")


def checked_parent(option: str, path: Path | None) -> None:
    """Raise an error, before the work begins, if the file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise ReversiError(f"{option} {str(path)!r}: expected a file, and not a folder")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ReversiError(
            f"{option} {str(path)!r}: expected a file in a folder where you may write, not in {str(path.parent)!r}"
        )


def make_folder(option: str, path: Path | None) -> None:
    """Create the folder for results, or raise an error before the work begins."""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "read-only")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(f"{option} {str(path)!r}, {reason}: expected a folder where you may write") from None


def torch_threads(threads: int | None) -> int:
    """Set the number of threads that torch uses, by default one per core, and return it."""
    import torch

    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    return count


@contextmanager
def chosen_executor(ray: str | None, workers: int | None) -> Iterator[Executor | None]:
    """Yield the executor of ``--ray`` and ``--workers``; None if the command runs in this process."""
    from train.jobs.processes import LocalExecutor

    if ray is None:
        yield None if workers is None else LocalExecutor(workers)
        return
    if workers is not None:
        raise ReversiError(
            f"--workers {workers} with --ray: expected one of them; a cluster has its own number of workers"
        )
    from train.jobs.ray import RayCluster

    def log(text: str) -> None:
        print(f"reversi: {text}", file=sys.stderr)

    # Ray prints pages on standard output when it loses a machine; one line on standard error is enough.
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        RayCluster(ray, log) as cluster,
    ):
        yield cluster
