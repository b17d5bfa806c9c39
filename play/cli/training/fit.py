"""`reversi train fit`: a network from labelled positions, in a folder that survives interruptions."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Device, Json, Out, Threads, options_of, text
from play.cli.output import RESUME, attributes, exit_on_interrupt, print_json, print_table, progress_bar
from train.fitting.options import FitOptions

if TYPE_CHECKING:
    from train.fitting.training import FitResult

FitChoice: Any = options_of(FitOptions)
NETWORK_HELP = "Network type: linear (one weight per state of a pattern) or deep (a vector per state and a small head)."


def fit(
    *labels: Annotated[str, Parameter(help="One or more dataset folders written by reversi label.")],
    out: Out,
    network: Annotated[str | None, text(f"{NETWORK_HELP} [default: linear]", metavar="NAME")] = None,
    start: Annotated[
        str | None, text("Initial weights: network (the packaged ones) or network:weights=FILE.", metavar="SPEC")
    ] = None,
    chosen: FitChoice = NOTHING,
    threads: Threads = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Fit a value network to labelled positions.

    Example: reversi train fit labels/10-14 --out runs/first

    The defaults shown are those of --network linear on 6x6 and 8x8. Those of deep
    are --epochs 8 --learning-rate 0.005 --weight-decay 0.3 --huber-delta 12. On
    4x4 the defaults are --epochs 40 --patience 15, with --learning-rate 0.05 for
    linear and --weight-decay 0.1 for deep.

    A phase is a range of empties with its own weights. --start fine-tunes
    existing weights; phases without labels keep their weights.

    Run the same command again to resume after Ctrl-C or a crash. The folder has
    the weights, log.csv and error-by-empties.svg, errors in discs on held-out
    positions.
    """
    from reversi_env.errors import ReversiError, quoted, require

    if not labels:
        raise ReversiError("LABELS is missing: expected a folder that `reversi label` has written")
    for folder in labels:
        if Path(folder).is_file():
            raise ReversiError(
                f"LABELS {quoted(folder, 300)} is a file: expected a folder that `reversi label` has written"
            )
    require("torch", "pyarrow")
    from models.patterns import checked_network
    from train.fitting.options import preset
    from train.fitting.training import starting_weights, train_on_labels
    from train.labels import read_manifest

    if network is not None:
        checked_network(network)
    began, rules = perf_counter(), read_manifest(Path(labels[0])).options.rules
    if start is not None:
        network = starting_weights(start, rules, network).name
    network = network or "linear"
    options = preset(rules.size, network, **chosen)
    with exit_on_interrupt(f"reversi: stopped; {RESUME}"), progress_bar() as show:
        result = train_on_labels(
            *(labels, out, options),
            network=network,
            start=start,
            command=recorded_command(sys.argv[1:]),
            device=device,
            threads=threads,
            progress=lambda epoch: show(
                "fitting, epochs", epoch.number, options.epochs, f"error {epoch.validation_error:.3f} discs"
            ),
        )
    print_result(result, perf_counter() - began, as_json)


def recorded_command(arguments: list[str]) -> str:
    """Return the command without its --out, so that the weights and their file name do not depend on the folder."""
    kept, skip = ["reversi"], False
    for argument in arguments:
        if not skip and not re.match(r"--out(=|$)|-o", argument):
            kept.append(argument)
        skip = argument in ("--out", "-o")
    return shlex.join(kept)


def print_result(trained: FitResult, seconds: float, as_json: bool) -> None:
    """Print the weights, their error, and how to use them."""
    if as_json:
        by_empties = [{"empties": e, "error": error} for e, error in trained.error_by_empties.items()]
        figures = {"validation_error": trained.validation_error, "by_empties": by_empties}
        print_json(
            {
                "weights": str(trained.weights),
                **figures,
                **attributes(trained, "positions", "epochs"),
                "seconds": seconds,
            }
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
