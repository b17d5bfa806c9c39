"""`reversi train`: a network from labels or from scratch, in a folder that an interruption cannot spoil."""

from __future__ import annotations

import re
import shlex
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from play.cli.job_options import given, options_from
from play.cli.options import Json, Threads
from play.cli.output import Show, ends_at_ctrl_c, picked, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from reversi_env import Rules
    from train.fitting.fit import Epoch
    from train.fitting.training import Trained


#: Options of the command's own that are for trainings from nothing.
GAME = {"size", "variant", "exact"}


@options_from(
    "train.fitting.options:FitOptions",
    presets=True,
    without=(*GAME, "device"),
)
def train(
    context: typer.Context,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="LABELS", help="Folder that reversi label made, or several.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Folder for weights and logs.")] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="From nothing: label and fit, stage by stage.")
    ] = False,
    start: Annotated[
        str | None, typer.Option("--start", help="Go on from these weights: network, or network:weights=FILE.")
    ] = None,
    probcut: Annotated[
        str | None, typer.Option("--probcut", metavar="WEIGHTS", help="Fit selective search to these weights.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option("--network", help="linear: one weight per pattern; deep: one vector per pattern, and a head."),
    ] = None,
    size: Annotated[int | None, typer.Option("--size", "-n", help="Board, from nothing: 4, 6 or 8.")] = None,
    variant: Annotated[
        Literal["normal", "reversed"] | None, typer.Option("--variant", "-v", help="Game, from nothing.")
    ] = None,
    player: Annotated[
        str | None, typer.Option("--player", help="Evaluator that plays the bootstrap's games, as network.")
    ] = None,
    exact: Annotated[
        int | None, typer.Option("--exact", help="Empties that are solved, from nothing; GPU: 14.")
    ] = None,
    scale: Annotated[float | None, typer.Option("--scale", help="Share of the bootstrap's positions.")] = None,
    threads: Threads = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu (the default) or cuda.")] = None,
    as_json: Json = False,
) -> None:
    """Train a network and write its weights.

    Example: reversi train labels/10-14 --out runs/first

    Fits a network to labelled positions; options that are not given are those
    that did well for the game. With --start it goes on from weights that there
    are; what the labels say nothing of stays as it is. With --bootstrap there
    is nothing to begin with: endgames are solved and learnt, earlier positions
    are searched into what is learnt, and so on back to the opening. --scale 1
    of that is for a GPU and many cores.

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
    kind = _kind(labels, bootstrap=bootstrap, probcut=probcut)
    own: dict[str, Any] = {"size": size, "variant": variant, "exact": exact, "scale": scale, "player": player}
    own |= {"network": network, "device": device, "start": start}
    changes = {**given(context), **{name: value for name, value in own.items() if value is not None}}
    _check_options(kind, changes)
    if kind == "--probcut":
        _probcut(str(probcut), Path(out), changes.get("seed", 0), threads, as_json)
        return
    require("torch", "pyarrow")
    from models.networks import checked_network

    if network is not None:
        checked_network(network)
    changes.pop("device", None)
    how: dict[str, Any] = {"command": _command(sys.argv[1:]), "device": device or "cpu", "threads": threads}
    job = _from_nothing if kind == "--bootstrap" else partial(_on_labels, labels or [])
    began = perf_counter()
    with ends_at_ctrl_c("stopped; the same command goes on"), progress_bar() as show:
        result = job(Path(out), changes, how, show)
    _print_result(result, perf_counter() - began, as_json)


def _probcut(weights: str, out: Path, seed: int, threads: int | None, as_json: bool) -> None:
    """Fit ProbCut, show what was found and where the weights are."""
    from train.fitting.cuts import add_probcut

    with ends_at_ctrl_c("stopped; nothing was written"), progress_bar() as show:
        how: dict[str, Any] = {"seed": seed, "threads": threads}
        path, cuts = add_probcut(Path(weights), out, **how, progress=lambda *done: show("searching, positions", *done))
    if as_json:
        from search.probcut import as_table

        print_json({"weights": str(path), **as_table(cuts)})
        return
    empties = (cuts.empties[0], sum(cuts.empties) // 2, cuts.empties[1])
    headings = ("deep", "foretold by", "slope", "shift", *(f"SD at {count}" for count in empties))
    rows = []
    for pair in cuts.pairs:
        deviations = (f"{cuts.deviation(pair, count):.2f}" for count in empties)
        rows.append((pair.deep, pair.shallow, f"{pair.slope:.2f}", f"{pair.shift:+.2f}", *deviations))
    print_table(headings, rows, words=0)
    print("shift, and SD, the standard deviation at a number of empty squares, in discs")
    print(f"weights: {path}")


def _command(arguments: list[str]) -> str:
    """What is kept of the command: all but the folder, on which neither the weights nor the name of their file depend."""
    kept, skip = ["reversi"], False
    for argument in arguments:
        if not skip and not re.match(r"--out(=|$)|-o", argument):
            kept.append(argument)
        skip = argument in ("--out", "-o")
    return shlex.join(kept)


def _kind(labels: list[str] | None, **asked: Any) -> str:
    """Which kind of training is asked for, by its option or as LABELS; more than one, or none, is refused."""
    from reversi_env.errors import ReversiError

    kinds = [f"--{name}" for name, value in asked.items() if value]
    if labels and kinds:
        raise ReversiError(f"LABELS {' '.join(labels)!r} with {kinds[0]}: expected one of them")
    if len(kinds) > 1:
        raise ReversiError(f"{kinds[0]} with {kinds[1]}: expected one of them")
    if not labels and not kinds:
        raise ReversiError(
            "LABELS is missing: expected a folder that `reversi label` made, or --bootstrap or --probcut"
        )
    return kinds[0] if kinds else "LABELS"


def _check_options(kind: str, options: dict[str, Any]) -> None:
    """Refuse an option that is for another kind of training, and name one that it is for."""
    from reversi_env.errors import ReversiError
    from reversi_env.options import option_fields
    from train.fitting.options import FitOptions

    fit = {one.name for one in option_fields(FitOptions)}
    known = {
        "LABELS": fit | {"network", "device", "start"},
        "--bootstrap": GAME | {"scale", "player", "network", "device", "seed"},
        "--probcut": {"seed"},
    }
    for name in options.keys() - known[kind]:
        places = [other for other, names in known.items() if name in names]
        option = f"--{name.replace('_', '-')}"
        raise ReversiError(f"{option} is not for {_told(kind)}: expected it with {' or '.join(places)}")


def _told(kind: str) -> str:
    return "a training on LABELS" if kind == "LABELS" else kind


def _from_nothing(out: Path, changes: dict[str, Any], how: dict[str, Any], show: Show) -> Trained:
    from train.fitting.bootstrap import BootstrapOptions
    from train.fitting.training import train_from_nothing

    return train_from_nothing(out, BootstrapOptions(**changes), **how, progress=show)


def _beginning(rules: Rules, changes: dict[str, Any], usual: str) -> dict[str, str | None]:
    """The kind of network and the weights to go on from, if any, which decide the kind: taken out of the options."""
    from train.fitting.training import starting_weights

    network, start = changes.pop("network", None), changes.pop("start", None)
    if start is not None:
        network = starting_weights(start, rules, network).name
    return {"network": network or usual, "start": start}


def _on_labels(labels: list[str], out: Path, changes: dict[str, Any], how: dict[str, Any], show: Show) -> Trained:
    from reversi_env.errors import ReversiError, quoted
    from train.fitting.options import preset
    from train.fitting.training import train_on_labels
    from train.labels import read_manifest

    for folder in labels:
        if Path(folder).is_file():
            raise ReversiError(f"LABELS {quoted(folder, 300)} is a file: expected a folder that `reversi label` made")
    rules = read_manifest(Path(labels[0])).options.rules
    how |= _beginning(rules, changes, "linear")
    options = preset(rules.size, how["network"], **changes)
    how |= {"solving": partial(show, "solving successors")}
    return train_on_labels(labels, out, options, **how, progress=_epochs(show, options.epochs))


def _epochs(show: Show, epochs: int) -> Callable[[Epoch], None]:
    """Tell of every epoch."""
    return lambda epoch: show("fitting, epochs", epoch.number, epochs, f"error {epoch.validation_error:.3f} discs")


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
    from reversi_env.errors import count_noun

    print(f"{count_noun(trained.positions, 'position')}, {count_noun(trained.epochs, 'epoch')}, {seconds:.1f} s")
    print(f"mean error on {trained.judged_on}: {trained.validation_error:.2f} discs")
    print(f"weights: {trained.weights}")
    game = f"--size {trained.rules.size} --variant {trained.rules.variant}"
    agent = shlex.quote(f"network:depth=4,weights={trained.weights}")
    print(f"use them: reversi match {agent} six-factor:depth=4 {game} --games 20")
