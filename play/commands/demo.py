"""`reversi demo`: solve, learn, search and play on 6x6, in a few minutes from nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, made_folder, print_json

if TYPE_CHECKING:
    from train.fitting.demo import DemoResult


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for labels, weights and the plot.")] = Path("demo"),
    scale: Annotated[float, typer.Option("--scale", help="Multiplies the numbers of positions.", min=0.001)] = 1.0,
    games: Annotated[int, typer.Option("--games", "-g", help="Games against each heuristic; even.", min=2)] = 40,
    as_json: Json = False,
) -> None:
    """Learn to play 6x6 Reversi from nothing, and beat the published heuristics.

    Endgames are solved exactly, a network learns them, a search carries them
    back to earlier positions, the network learns those; then alpha-beta with
    the network plays alpha-beta with each published heuristic, equally deep.
    About two minutes on two cores. Interrupted, it goes on where it was.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    require("torch", "pyarrow")
    if games % 2:
        raise ReversiError(f"--games {games}: expected an even number, since every opening is played from both sides")
    made_folder("--out", out)
    try:
        from train.fitting.demo import chart, run

        result = run(out, scale=scale, games=games, progress=_Bars())
    except KeyboardInterrupt:
        print("reversi: interrupted; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    plot = out / "errors.svg"
    chart(result).save(plot)
    if as_json:
        print_json(as_dict(result, plot))
    else:
        _print_tables(result, plot)


class _Bars:
    """One line on standard error a step, with a bar while a person watches."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task: Any = None
        self._step = ""

    def __call__(self, step: Any) -> None:
        title = f"{step.name}: {step.doing}"
        if title != self._step:
            self._next(title, step.total)
        self._bar.update(self._task, completed=step.done, total=step.total)
        if step.done >= step.total:
            self._bar.stop()

    def _next(self, title: str, total: int) -> None:
        if self._bar.disable:
            print(title, file=sys.stderr, flush=True)
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task, self._step = self._bar.add_task(title, total=total), title
        self._bar.start()


def as_dict(result: DemoResult, plot: Path) -> dict[str, Any]:
    """The result under the command line's stable keys."""
    return {
        "weights": str(result.weights),
        "plot": str(plot),
        "errors": result.errors,
        "matches": [
            {
                "opponent": match.opponent,
                "games": match.result.games,
                "wins": match.result.wins,
                "draws": match.result.draws,
                "losses": match.result.losses,
                "score": match.result.score,
                "interval": match.result.interval(),
                "discs_per_game": match.result.discs_per_game,
            }
            for match in result.matches
        ],
    }


def _print_tables(result: DemoResult, plot: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console()
    look: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False, "title_justify": "left"}
    errors = Table(title="Mean error of the static value, discs, by empty squares", **look)
    empties = sorted(next(iter(result.errors.values())))
    errors.add_column("evaluator", no_wrap=True)
    for e in empties:
        errors.add_column(str(e), justify="right")
    for name, by_empties in result.errors.items():
        errors.add_row(name, *(f"{by_empties[e]:.1f}" for e in empties))
    console.print(errors)
    table = Table(title="The network against each heuristic, both four plies deep", **look)
    for heading in ("opponent", "won", "drawn", "lost", "score", "95 % between", "discs"):
        table.add_column(heading, justify="left" if heading == "opponent" else "right")
    for match in sorted(result.matches, key=lambda match: -match.result.score):
        played, (low, high) = match.result, match.result.interval()
        numbers = (str(played.wins), str(played.draws), str(played.losses), f"{played.score:.1%}")
        table.add_row(match.opponent, *numbers, f"{low:.0%} and {high:.0%}", f"{played.discs_per_game:+.1f}")
    console.print(table)
    console.print(f"weights: {result.weights}   plot: {plot}", highlight=False, soft_wrap=True)
    console.print(
        f"play on: reversi match network:depth=6,weights={result.weights} six-factor:depth=6 --size 6",
        highlight=False,
        soft_wrap=True,
    )
