"""`reversi train`: a network from labels, or from nothing, in a folder that an interruption cannot spoil."""

from __future__ import annotations

import re
import shlex
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from play.commands.frame import Show, ends_at_ctrl_c, picked, print_json, print_table, progress_bar
from play.commands.job_options import given, options_from
from play.commands.options import Json, Threads

if TYPE_CHECKING:
    from train.fitting.training import Trained


@options_from("train.fitting.options:FitOptions", presets=True)
def train(
    context: typer.Context,
    labels: Annotated[str | None, typer.Argument(metavar="LABELS", help="Folder that reversi label made.")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for weights and logs.")] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="From nothing: label and fit, stage by stage.")
    ] = False,
    probcut: Annotated[
        str | None, typer.Option("--probcut", metavar="WEIGHTS", help="Fit selective search to these weights.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network", help="linear: a number a pattern; deep: a vector each, and a head; dense: no patterns."
        ),
    ] = None,
    size: Annotated[int | None, typer.Option("--size", "-n", help="Board of the bootstrap: 4, 6 or 8.")] = None,
    variant: Annotated[
        Literal["normal", "reversed"] | None, typer.Option("--variant", "-v", help="Game of the bootstrap.")
    ] = None,
    player: Annotated[
        str | None, typer.Option("--player", help="Evaluator that plays the bootstrap's games, as network.")
    ] = None,
    exact: Annotated[int | None, typer.Option("--exact", help="Empties that the bootstrap solves; GPU: 14.")] = None,
    scale: Annotated[float | None, typer.Option("--scale", help="Share of the bootstrap's positions.")] = None,
    threads: Threads = None,
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
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require

    if out is None:
        raise ReversiError("--out is missing: expected a folder for weights and logs")
    of_labels = given(context)
    seed = of_labels.pop("seed", 0)
    game: dict[str, Any] = {"size": size, "variant": variant, "scale": scale, "player": player, "exact": exact}
    of_bootstrap = {name: value for name, value in game.items() if value is not None}
    if probcut is not None:
        if labels is not None or bootstrap or of_labels or of_bootstrap or network is not None or device != "cpu":
            raise ReversiError("--probcut with LABELS or other options of a training: expected it with --out alone")
        _probcut(probcut, Path(out), seed, threads, as_json)
        return
    _check_kind(labels, bootstrap, of_labels, of_bootstrap)
    require("torch", "pyarrow")
    from models.networks import checked_network

    kind: dict[str, Any] = {"network": checked_network(network)} if network is not None else {}
    how: dict[str, Any] = {"command": _command(sys.argv[1:]), "device": device, "threads": threads}
    began = perf_counter()
    with ends_at_ctrl_c("stopped; the same command goes on"), progress_bar() as show:
        if bootstrap:
            from train.fitting.bootstrap import BootstrapOptions
            from train.fitting.training import train_from_nothing

            options = BootstrapOptions(**of_bootstrap, **kind, seed=seed)
            trained = train_from_nothing(Path(out), options, **how, progress=show)
        else:
            trained = _on_labels(str(labels), Path(out), {**of_labels, **kind, "seed": seed}, how, show)
    _print_result(trained, perf_counter() - began, as_json)


def _probcut(weights: str, out: Path, seed: int, threads: int | None, as_json: bool) -> None:
    """Fit ProbCut, show what was found and where the weights are."""
    from train.fitting.cuts import add_probcut

    with ends_at_ctrl_c("stopped; nothing was written"), progress_bar() as show:
        how: dict[str, Any] = {"seed": seed, "threads": threads}
        path, cuts = add_probcut(Path(weights), out, **how, progress=lambda *done: show("searching, positions", *done))
    if as_json:
        from search.cuts import as_table

        print_json({"weights": str(path), **as_table(cuts)})
        return
    empties = (cuts.empties[0], sum(cuts.empties) // 2, cuts.empties[1])
    headings = ("deep", "foretold by", "slope", "shift", *(f"± at {count}" for count in empties))
    rows = []
    for pair in cuts.pairs:
        deviations = (f"{cuts.deviation(pair, count):.2f}" for count in empties)
        rows.append((pair.deep, pair.shallow, f"{pair.slope:.2f}", f"{pair.shift:+.2f}", *deviations))
    print_table(headings, rows, words=0)
    print("shift, and ±, one standard deviation at a number of empty squares, in discs")
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
        what = "not for --bootstrap: expected it with LABELS" if bootstrap else "for --bootstrap: expected it there"
        raise ReversiError(f"{option} is {what}")


def _on_labels(labels: str, out: Path, changes: dict[str, Any], how: dict[str, Any], show: Show) -> Trained:
    from reversi_env.errors import ReversiError, shown
    from train.fitting.fit import Epoch, preset
    from train.fitting.training import train_on_labels
    from train.labels import read_manifest

    if Path(labels).is_file():
        raise ReversiError(f"LABELS {shown(labels, 300)} is a file: expected a folder that `reversi label` made")
    manifest = read_manifest(Path(labels)).options
    options = preset(manifest.size, manifest.variant, **changes)

    def tell(epoch: Epoch) -> None:
        show("fitting, epochs", epoch.number, options.epochs, f"error {epoch.validation_error:.3f} discs")

    how |= {"network": changes.get("network", "linear"), "solving": partial(show, "solving successors")}
    return train_on_labels(labels, out, options, **how, progress=tell)


def _print_result(trained: Trained, seconds: float, as_json: bool) -> None:
    """Where the weights are, how good they are, and how to use them."""
    if as_json:
        by_empties = [{"empties": e, "error": error} for e, error in trained.error_by_empties.items()]
        figures = {"validation_error": trained.validation_error, "by_empties": by_empties}
        print_json(
            {"weights": str(trained.weights), **figures, **picked(trained, "positions", "epochs"), "seconds": seconds}
        )
        return
    rows = ((empties, f"{error:.2f}") for empties, error in trained.error_by_empties.items())
    print_table(("empties", "error, discs"), rows, words=0)
    print(f"{trained.positions:,} positions, {trained.epochs} epochs, {seconds:.1f} s")
    print(f"mean error on held-out positions: {trained.validation_error:.2f} discs")
    print(f"weights: {trained.weights}")
    game = f"--size {trained.rules.size} --variant {trained.rules.variant}"
    print(f"use them: reversi match network:depth=4,weights={trained.weights} six-factor:depth=4 {game} --games 20")
