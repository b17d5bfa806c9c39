"""`reversi train`: a network from labels, or from nothing, in a folder that an interruption cannot spoil."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Seed, VariantOption, print_json

if TYPE_CHECKING:
    from train.fitting.bootstrap import Progress as Step
    from train.fitting.fit import Epoch, FitOptions
    from train.fitting.training import Trained

Meter = Callable[[str, int, int, str], None]


def train(
    labels: Annotated[str | None, typer.Argument(metavar="LABELS", help="Folder that reversi label made.")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for weights and logs.")] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="From nothing: label and fit, stage by stage.")
    ] = False,
    probcut: Annotated[
        str | None, typer.Option("--probcut", metavar="WEIGHTS", help="Fit selective search to these weights.")
    ] = None,
    size: Annotated[int | None, typer.Option("--size", "-n", help="Board of the bootstrap: 4, 6 or 8.")] = None,
    variant: Annotated[VariantOption | None, typer.Option("--variant", "-v", help="Game of the bootstrap.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network", help="linear: a number a pattern; deep: a vector each, and a head; dense: no patterns."
        ),
    ] = None,
    player: Annotated[
        str | None, typer.Option("--player", help="Evaluator that plays the bootstrap's games, as network.")
    ] = None,
    exact: Annotated[int | None, typer.Option("--exact", help="Empties that the bootstrap solves; GPU: 14.")] = None,
    scale: Annotated[float | None, typer.Option("--scale", help="Share of the bootstrap's positions.")] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Times every position is seen.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Positions a step.")] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="Adam's step at the beginning, in discs.")] = None,
    decay: Annotated[float | None, typer.Option("--decay", help="Weight decay.")] = None,
    blur: Annotated[float | None, typer.Option("--blur", help="Empties by which phases are blurred.")] = None,
    held_out: Annotated[float | None, typer.Option("--held-out", help="Share for validation.")] = None,
    patience: Annotated[int | None, typer.Option("--patience", help="Epochs without a gain before the end.")] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="plain, or structural: trees of solved positions.")] = None,
    plies: Annotated[int | None, typer.Option("--plies", help="Depth of these trees.")] = None,
    seed: Seed = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", "-t", help="Default: one a core.", min=1, max=1024)
    ] = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Train a network and write its weights.

    Example: reversi train labels/10-14 --out runs/first

    Fits a network to labelled positions; options that are not given are those
    that did well for the game. With --bootstrap there is nothing to begin
    with: endgames are solved and learnt, earlier positions are searched into
    what is learnt, and so on back to the opening. --scale 1 of that is for a
    GPU and many cores.

    With --probcut WEIGHTS the weights stay as they are; how well shallow
    searches with them foretell deep ones is measured, and a file that knows
    it is written: searches with it leave out what is hopeless.

    Run the same command again to go on after Ctrl-C, or after a crash. The
    folder has the weights, log.csv and error-by-empties.svg, errors in discs
    on positions that were held out.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    if out is None:
        raise ReversiError("--out is missing: expected a folder for weights and logs")
    how_to_fit: dict[str, Any] = {
        "epochs": epochs,
        "batch": batch,
        "rate": rate,
        "decay": decay,
        "blur": blur,
        "held_out": held_out,
    }
    how_to_fit |= {"patience": patience, "loss": loss, "plies": plies}
    of_labels = {name: value for name, value in how_to_fit.items() if value is not None}
    game = {
        "size": size,
        "variant": variant.value if variant else None,
        "scale": scale,
        "player": player,
        "exact": exact,
    }
    of_bootstrap = {name: value for name, value in game.items() if value is not None}
    if probcut is not None:
        if labels is not None or bootstrap or of_labels or of_bootstrap or network is not None or device != "cpu":
            raise ReversiError("--probcut with LABELS or other options of a training: expected it with --out alone")
        _probcut(probcut, Path(out), seed, threads, as_json)
        return
    _check_kind(labels, bootstrap, of_labels, of_bootstrap)
    require("torch", "pyarrow")
    from models.networks import checked_network

    kind = {"network": checked_network(network)} if network is not None else {}
    how: dict[str, Any] = {"command": _command(sys.argv[1:]), "device": device, "threads": threads}
    began = perf_counter()
    try:
        with _meters() as meter:
            if bootstrap:
                trained = _from_nothing(Path(out), {**of_bootstrap, **kind, "seed": seed}, how, meter)
            else:
                trained = _on_labels(str(labels), Path(out), {**of_labels, **kind, "seed": seed}, how, meter)
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _show(trained, perf_counter() - began, as_json)


def _probcut(weights: str, out: Path, seed: int, threads: int | None, as_json: bool) -> None:
    """Fit ProbCut, show what was found and where the weights are."""
    from play.commands.interruptible import INTERRUPTED
    from train.fitting.cuts import add_probcut

    try:
        with _meters() as meter:
            path, cuts = add_probcut(
                *(Path(weights), out),
                seed=seed,
                threads=threads,
                progress=lambda done, total: meter("searching, positions", done, total, ""),
            )
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        from search.cuts import as_table

        print_json({"weights": str(path), **as_table(cuts)})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    empties = (cuts.empties[0], sum(cuts.empties) // 2, cuts.empties[1])
    for heading in ("deep", "foretold by", "slope", "shift", *(f"± at {count} empty" for count in empties)):
        table.add_column(heading, justify="right")
    for pair in cuts.pairs:
        deviations = [f"{cuts.deviation(pair, count):.2f}" for count in empties]
        table.add_row(f"{pair.deep}", f"{pair.shallow}", f"{pair.slope:.2f}", f"{pair.shift:+.2f}", *deviations)
    Console().print(table)
    print("shift and ±, one standard deviation, in discs")
    print(f"weights: {path}")


def _command(arguments: list[str]) -> str:
    """What is kept of the command: all but the folder, on which neither the weights nor the name of their file depend."""
    kept, skip = ["reversi"], False
    for argument in arguments:
        if not skip and not re.match(r"--out(=|$)|-o", argument):
            kept.append(argument)
        skip = argument in ("--out", "-o")
    return shlex.join(kept)


def _check_kind(labels: str | None, bootstrap: bool, of_labels: dict[str, Any], of_bootstrap: dict[str, Any]) -> None:
    """Labels or a bootstrap, each with its own options."""
    from reversi_env.errors import ReversiError

    if bootstrap and labels is not None:
        raise ReversiError(
            f"LABELS {labels!r} with --bootstrap: expected one of them; a bootstrap makes its own labels"
        )
    if not bootstrap and labels is None:
        raise ReversiError("LABELS is missing: expected a folder that `reversi label` made, or --bootstrap")
    wrong = of_labels if bootstrap else of_bootstrap
    if wrong:
        option = f"--{next(iter(wrong)).replace('_', '-')}"
        what = (
            "is not for --bootstrap: expected it with LABELS" if bootstrap else "is for --bootstrap: expected it there"
        )
        raise ReversiError(f"{option} {what}")


def _on_labels(labels: str, out: Path, changes: dict[str, Any], how: dict[str, Any], meter: Meter) -> Trained:
    from reversi_env.errors import ReversiError, shown
    from train.fitting.fit import preset
    from train.fitting.training import train_on_labels
    from train.labels import read_manifest

    if Path(labels).is_file():
        raise ReversiError(f"LABELS {shown(labels, 300)} is a file: expected a folder that `reversi label` made")
    manifest = read_manifest(Path(labels)).options
    network = changes.get("network", "linear")
    options = preset(manifest.size, manifest.variant, **changes)

    def solving(done: int, total: int) -> None:
        meter("solving successors", done, total, "")

    return train_on_labels(
        labels, out, options, network=network, **how, solving=solving, progress=_epoch_meter(meter, options)
    )


def _epoch_meter(meter: Meter, options: FitOptions) -> Callable[[Epoch], None]:
    def show(epoch: Epoch) -> None:
        meter("fitting, epochs", epoch.number, options.epochs, f"error {epoch.validation_error:.3f} discs")

    return show


def _from_nothing(out: Path, changes: dict[str, Any], how: dict[str, Any], meter: Meter) -> Trained:
    from train.fitting.bootstrap import BootstrapOptions
    from train.fitting.training import train_from_nothing

    def show(step: Step) -> None:
        meter(f"stage {step.stage + 1}/{step.stages} {step.name}: {step.doing}", step.done, step.total, "")

    return train_from_nothing(out, BootstrapOptions(**changes), **how, progress=show)


@contextmanager
def _meters() -> Iterator[Meter]:
    """A bar on standard error for whatever is being done, with its rate and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int, note: str) -> None:
            if what not in tasks:
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[what] = bar.add_task(what, total=total, rate="", note="")
            speed = bar.tasks[tasks[what]].speed
            rate = f"{speed:,.{0 if speed >= 100 else 1}f}/s" if speed else ""
            bar.update(tasks[what], completed=done, rate=rate, note=note)

        yield show


def _show(trained: Trained, seconds: float, as_json: bool) -> None:
    """Where the weights are, how good they are, and how to use them."""
    if as_json:
        by_empties = [{"empties": e, "error": error} for e, error in trained.error_by_empties.items()]
        print_json(
            {
                "weights": str(trained.weights),
                "validation_error": trained.validation_error,
                "by_empties": by_empties,
                "positions": trained.positions,
                "epochs": trained.epochs,
                "seconds": seconds,
            }
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("empties", justify="right")
    table.add_column("error, discs", justify="right")
    for empties, error in trained.error_by_empties.items():
        table.add_row(str(empties), f"{error:.2f}")
    Console().print(table)
    print(f"{trained.positions:,} positions, {trained.epochs} epochs, {seconds:.1f} s")
    print(f"mean error on held-out positions: {trained.validation_error:.2f} discs")
    print(f"weights: {trained.weights}")
    game = f"--size {trained.rules.size} --variant {trained.rules.variant}"
    print(f"use them: reversi match network:depth=4,weights={trained.weights} six-factor:depth=4 {game} --games 20")
