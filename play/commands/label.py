"""`reversi label`: training positions with their scores, in Parquet files that an interruption cannot spoil."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from play.commands.clusters import RayAddress, Workers, chosen_executor
from play.commands.options import Json, Seed, Size, VariantName, VariantOption, print_json

if TYPE_CHECKING:
    from train.labels import Found, LabelOptions, Manifest, Step

Number = TypeVar("Number", int, float)


def label(
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder for the data set; made if it is not there.")],
    count: Annotated[int, typer.Option("--count", help="Positions in all.")],
    empties: Annotated[str, typer.Option("--empties", "-e", help="Empty squares, as in 12 or 10-14.")] = "10-14",
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    labeller: Annotated[str, typer.Option("--labeller", help="exact, or an evaluator to search with.")] = "exact",
    depth: Annotated[int | None, typer.Option("--depth", "-d", help="Plies to search.")] = None,
    player: Annotated[str, typer.Option("--player", help="Evaluator that plays the games.")] = "six-factor",
    play_depth: Annotated[int, typer.Option("--play-depth", help="Plies that it searches for a move.")] = 2,
    noise: Annotated[str, typer.Option("--noise", help="Probabilities of a random move.")] = "0,0.02,0.05",
    heat: Annotated[str, typer.Option("--heat", help="Temperatures of its choice, in discs.")] = "0.5,1,2",
    prefixes: Annotated[
        str, typer.Option("--prefixes", help="Random moves at the start are fewer than these.")
    ] = "4,10,20",
    seed: Seed = 0,
    shard_rows: Annotated[int, typer.Option("--shard-rows", help="Positions a file.")] = 100_000,
    block_rows: Annotated[
        int,
        typer.Option("--block-rows", help="Positions kept apart together, at 40 bytes; each block plays all games."),
    ] = 1 << 23,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="cpu, or cuda to solve on a GPU: then --shard-rows 1000000.")
    ] = "cpu",
    workers: Workers = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Sample positions without duplicates, label them with scores, and write them to Parquet files.

    Example: reversi label labels/10-14 --count 1000000 --empties 10-14

    Positions come from games with a random beginning and noisy play by
    --player; every number of empties gets equally many, and no two are
    symmetric to each other. Each side of a game draws one of --noise and one
    of --heat: a move worse by the heat is e times as rare, 0 plays the best.
    Each game draws one of --prefixes. Scores are discs for the side to move.
    With an evaluator as --labeller, as in [b]six-factor:depth=4,exact=10[/b], only
    positions with few empties are solved; above 24 (26 on 6x6) none can be.

    Run the same command again to go on after Ctrl-C, or after a crash: the files
    come out the same. OUT/manifest.json lists them with their SHA-256. With --ray
    all machines of a cluster play and solve, to the same files.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env import ReversiError
    from train.labels import LabelOptions, generate
    from train.labels.storage import rows_in_place

    if device != "cpu" and (ray is not None or workers is not None):
        raise ReversiError(f"--device {device} with --ray or --workers: expected cpu there, or one machine with a GPU")
    options = LabelOptions(
        size=size,
        variant=variant.value,
        count=count,
        empties=_range(empties),
        seed=seed,
        shard_rows=shard_rows,
        block_rows=block_rows,
        labeller=_with_depth(labeller, depth),
        player=player,
        play_depth=play_depth,
        noise=_numbers("--noise", noise, float),
        heat=_numbers("--heat", heat, float),
        prefixes=_numbers("--prefixes", prefixes, int),
    )
    folder, began = Path(out), perf_counter()
    before = _Before(folder, options)
    try:
        with chosen_executor(ray, workers) as executor, _progress_bar(options) as progress:
            how: dict[str, Any] = {"device": device, "threads": threads, "executor": executor}
            manifest = generate(options, folder, progress=progress, found=before, **how)
    except KeyboardInterrupt:
        print(f"stopped at {rows_in_place(folder)} of {count} positions; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    result = _as_dict(out, manifest, before.rows, perf_counter() - began)
    if as_json:
        print_json(result)
    else:
        _print_table(options, result)


def _range(text: str) -> tuple[int, int]:
    from reversi_env.errors import ReversiError, shown

    low, dash, high = text.partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise ReversiError(f"--empties {shown(text)}: expected a number or a range, as in 12 or 10-14") from None


def _numbers(option: str, text: str, kind: type[Number]) -> tuple[Number, ...]:
    from reversi_env.errors import ReversiError, shown

    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise ReversiError(f"{option} {shown(text)}: expected {what} with commas between them") from None


def _with_depth(labeller: str, depth: int | None) -> str:
    """The labeller's spec with the depth that it leaves open."""
    from reversi_env.errors import ReversiError, shown
    from search.agents import AgentSpec

    if depth is None:
        return labeller
    if labeller == "exact":
        raise ReversiError(f"--depth {depth} with --labeller exact: expected an evaluator to search with")
    spec = AgentSpec.parse(labeller)
    if "depth" in spec.options:
        raise ReversiError(f"--depth {depth} with --labeller {shown(labeller)}: expected the depth in one place")
    return str(AgentSpec(spec.name).with_(depth=depth, **spec.options))  # first, as manifests have it


@dataclass
class _Before:
    """What earlier runs have made: said on standard error, if it is anything, as soon as it has been checked."""

    folder: Path
    options: LabelOptions
    rows: int = 0

    def __call__(self, found: Found) -> None:
        """Say it, and keep it for the result."""
        self.rows = found.rows
        if found.rows:
            shards = self.options.shards
            what = "complete already" if found.shards == shards else "going on from there"
            message = f"{self.folder}: {found.shards} of {shards} shards, {found.rows:,} positions; {what}"
            print(message, file=sys.stderr)


@contextmanager
def _progress_bar(options: LabelOptions) -> Iterator[Callable[[Step], None]]:
    """A bar on standard error with the rate and the time left: one for the sampling of a block, one for the labels."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    shown: dict[str, Any] = {"transient": True, "disable": not console.is_terminal, "redirect_stdout": False}
    with Progress(*columns, console=console, **shown) as bar:
        tasks = {
            "sampling": bar.add_task("sampling", rate="", visible=False),
            "labelling": bar.add_task("labelling", total=options.count, rate="", visible=False),
        }

        def show(step: Step) -> None:
            task = bar.tasks[tasks[step.stage]]
            rate = f"{task.speed:,.0f}/s" if task.speed else ""
            other = "labelling" if step.stage == "sampling" else "sampling"
            bar.update(tasks[other], visible=False)
            bar.update(task.id, completed=step.done, total=step.total, rate=rate, visible=True)

        yield show


def _as_dict(out: str, manifest: Manifest, finished: int, seconds: float) -> dict[str, Any]:
    """The result under the command line's stable keys."""
    options = manifest.options
    by_empties = [
        {"empties": options.empties[0] + stratum, "positions": len(range(stratum, manifest.rows, options.strata))}
        for stratum in range(options.strata)
    ]
    return {
        "folder": out,
        "positions": manifest.rows,
        "shards": len(manifest.shards),
        "resumed_from": finished,
        "seconds": seconds,
        "positions_per_second": (manifest.rows - finished) / seconds,
        "by_empties": by_empties,
    }


def _print_table(options: LabelOptions, result: dict[str, Any]) -> None:
    """Positions by empties and how they were labelled, for people."""
    from rich.console import Console
    from rich.table import Table

    from train.labels.labellers import labeller_plan

    plan = labeller_plan(options.labeller)
    title = f"{options.size}x{options.size} {options.variant}, {result['positions']:,} positions in {result['folder']}"
    print(title)
    table = Table()
    for heading in ("empties", "positions", "labels"):
        table.add_column(heading, justify="right")
    for row in result["by_empties"]:
        kind = "exact" if row["empties"] <= plan.solved else f"depth {plan.depth}"
        table.add_row(str(row["empties"]), f"{row['positions']:,}", kind)
    Console().print(table)
    new = result["positions"] - result["resumed_from"]
    if new:
        print(f"{new:,} in {result['seconds']:.1f} s: {result['positions_per_second']:,.0f} positions/s")
