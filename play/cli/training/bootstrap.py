"""`reversi train bootstrap`: a network from scratch, stage by stage from solved endgames back to the opening."""

import sys
from time import perf_counter
from typing import Any

from play.cli.options import NOTHING, Device, Json, Out, Threads, options_of
from play.cli.output import RESUME, exit_on_interrupt, progress_bar
from play.cli.training.fit import print_result, recorded_command
from train.fitting.stages import BootstrapOptions

BootstrapChoice: Any = options_of(BootstrapOptions, without=("stages",))


def bootstrap(
    *,
    out: Out,
    chosen: BootstrapChoice = NOTHING,
    threads: Threads = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Train a value network from scratch, from solved endgames back to the opening.

    Example: reversi train bootstrap --out runs/first --size 6 --scale 0.004

    It fits the network to solved endgames. It then labels positions with a few
    more empties, by searches whose leaves are in the range of the fit, fits the
    network to them, and repeats this back to the opening. --scale 1 is for a GPU and many cores.

    Run the same command again to resume after Ctrl-C or a crash. The folder has
    the weights, log.csv and error-by-empties.svg, errors in discs on held-out
    positions.
    """
    from reversi_env.errors import require

    require("torch", "pyarrow")
    from train.fitting.training import train_from_scratch

    options, began = BootstrapOptions(**chosen), perf_counter()
    with exit_on_interrupt(f"reversi: stopped; {RESUME}"), progress_bar() as show:
        result = train_from_scratch(
            out, options, command=recorded_command(sys.argv[1:]), device=device, threads=threads, progress=show
        )
    print_result(result, perf_counter() - began, as_json)
