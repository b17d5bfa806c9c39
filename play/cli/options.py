"""Options and arguments that several subcommands share, so that they read and behave the same everywhere, and agent specs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

Number = TypeVar("Number", int, float)
#: Options that may be cut to a letter, the same in every command.
LETTERS = {
    "--agent": "-a",
    "--baseline": "-b",
    "--colour": "-c",
    "--depth": "-d",
    "--empties": "-e",
    "--games": "-g",
    "--iterations": "-i",
    "--level": "-l",
    "--out": "-o",
    "--plies": "-k",
    "--positions": "-p",
    "--size": "-n",
    "--steps": "-s",
    "--threads": "-t",
    "--variant": "-v",
    "--workers": "-w",
}
SPEC_HELP = "Agent spec, such as [b]network:time=2[/b] or [b]six-factor:level=3[/b]; by default the network, if the game has one."


def complete_spec(incomplete: str) -> list[str]:
    """The agents that begin so, and after the colon the options that the agent knows."""
    from search import agents

    name, colon, options = incomplete.partition(":")
    if not colon:
        return [agent for agent in agents.names() if agent.startswith(name)]
    done, _, begun = options.rpartition(",")
    before = f"{name}:{done}," if done else f"{name}:"
    taken = {item.partition("=")[0] for item in done.split(",")}
    try:
        known = agents.option_names(name)
    except agents.AgentSpecError:
        return []
    return [f"{before}{key}=" for key in known if key.startswith(begun) and key not in taken]


Size = Annotated[int, typer.Option("--size", "-n", help="Board size: 4, 6 or 8.")]
VariantName = Annotated[
    Literal["normal", "reversed"], typer.Option("--variant", "-v", help="Most discs win, or fewest do.")
]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same result.", min=0)]
Threads = Annotated[int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]
AgentArgument = Annotated[
    str | None, typer.Argument(metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False)
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False),
]
SearchThreads = Annotated[int, typer.Option("--threads", "-t", help="Threads that search together.", min=1, max=1024)]
Ponder = Annotated[bool, typer.Option("--ponder", help="Think on the opponent's time, too.")]
GameNumber = Annotated[
    int | None, typer.Option("--game", help="Of a GGF file with several games: which one, from 1.", min=1)
]
StartSize = Annotated[
    int | None, typer.Option("--size", "-n", help="Board size of moves from the start: 4, 6 or 8, by default 8.")
]
SecondsAMove = Annotated[
    float, typer.Option("--time", help="Seconds a move, where neither agent nor controller set a limit.", min=0.001)
]


def spec_lines(spec: str, width: int) -> str:
    """The spec in lines of at most *width* characters, broken after a colon or a comma where it has any."""
    lines = [""]
    for part in re.findall(r"[^:,]*[:,]|[^:,]+", spec):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def number_range(text: str, option: str = "--empties") -> tuple[int, int]:
    """Lowest and highest number of a text such as ``12`` or ``10-14``."""
    from reversi_env.errors import ReversiError, quoted

    low, dash, high = text.partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise ReversiError(f"{option} {quoted(text)}: expected a number or a range, as in 12 or 10-14") from None


def number_list(text: str, option: str, kind: type[Number]) -> tuple[Number, ...]:
    """The numbers of a text such as ``0.5,1,2``."""
    from reversi_env.errors import ReversiError, quoted

    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise ReversiError(f"{option} {quoted(text)}: expected {what} with commas between them") from None


def checked_plot(path: Path | None) -> None:
    """Refuse a chart that could not be written, before anything is measured for it."""
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    if path is None:
        return
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ReversiError(f"plot {str(path)!r}: expected a name that ends in .svg, .png or .pdf")
    checked_parent("--plot", path)
    require("matplotlib")


def checked_parent(option: str, path: Path | None) -> None:
    """Refuse a file that could not be written, before there is anything to write."""
    from reversi_env.errors import ReversiError

    if path is None:
        return
    if path.is_dir():
        raise ReversiError(f"{option} {str(path)!r} is a folder: expected a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ReversiError(
            f"{option} {str(path)!r}: expected a file in a folder where you may write, not in {str(path.parent)!r}"
        )


def made_folder(option: str, path: Path) -> None:
    """Make the folder for results, and refuse a place where it cannot be, before there are any."""
    from reversi_env.errors import ReversiError

    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ReversiError(f"{option} {str(path)!r} is a file, or in one: expected a folder") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(
            f"{option} {str(path)!r} cannot be made, {reason}: expected a folder where you may write"
        ) from None
    if not os.access(path, os.W_OK):
        raise ReversiError(f"{option} {str(path)!r} is read-only: expected a folder where you may write")


def checked_even(option: str, games: int) -> None:
    """Refuse a number of games that would leave an opening played from one side only."""
    from reversi_env.errors import ReversiError

    if games % 2:
        raise ReversiError(f"{option} {games}: expected an even number, since every opening is played from both sides")


def torch_threads(threads: int | None) -> int:
    """Let torch use so many cores, or all; how many those are."""
    import torch

    count = threads or os.cpu_count() or 1
    torch.set_num_threads(count)
    return count


def checked_seconds(seconds: float | None, option: str = "--time") -> None:
    """Refuse a time that is none, also where no agent would look at it."""
    from reversi_env.errors import ReversiError

    if seconds is not None and not 0 < seconds < 1e9:
        raise ReversiError(f"{option} {seconds:g}: expected seconds above 0")
