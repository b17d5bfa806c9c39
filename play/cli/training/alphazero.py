"""`reversi train alphazero`: a network by self-play with a tree search."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from play.cli.measure.exam import EXAM_WIDTH, elo_cells, print_elo_note
from play.cli.options import (
    NOTHING,
    Cache,
    Json,
    Out,
    RayAddress,
    Threads,
    chosen_executor,
    flag,
    options_of,
    torch_threads,
)
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from play.cli.training.ppo import resume_text, started_run
from train.alphazero.options import SelfPlayOptions, preset

if TYPE_CHECKING:
    from train.alphazero.run import SelfPlayRun

AlphaZeroChoice: Any = options_of(SelfPlayOptions, preset=preset)


def alphazero(
    *,
    out: Out,
    chosen: AlphaZeroChoice = NOTHING,
    exam: Annotated[
        bool, flag("Evaluate the final network with and without search (default).", negative="--no-exam")
    ] = True,
    cache: Cache = None,
    threads: Threads = None,
    ray: RayAddress = None,
    mixed: Annotated[bool, flag("With --ray: play on all GPUs and all CPUs of the cluster.")] = False,
    as_json: Json = False,
) -> None:
    """Train by AlphaZero: self-play with a tree search.

    Example: reversi train alphazero --out runs/zero --size 6

    A tree search (Gumbel AlphaZero or PUCT) plays many games in parallel. The
    network is trained on the search policies and on value targets from game
    results and search values. Its policy without search is evaluated regularly
    against fixed baselines, from random to network:depth=2, and in solved
    endgames. A CPU is enough for 4x4 and 6x6. Defaults of the form 1/2/3 are for
    4x4, 6x6 and 8x8.

    With --ray the machines of a cluster play the games, in jobs of --job-games,
    and this one trains. The result depends on the options, not on the machines.

    Run the same command again to resume after Ctrl-C or a crash; --out alone is
    enough. The folder has zero-….safetensors for the agent zero:FILE, log.csv,
    curve.svg, errors.svg (not on 4x4), and logs for TensorBoard. Without a
    terminal the metrics of each generation are a line on standard error.
    """
    from reversi_env.errors import ReversiError, require

    require("torch")
    from train.alphazero.options import CLUSTER_JOB_GAMES
    from train.alphazero.run import SelfPlayRun

    usual: dict[str, Any] = {}
    if mixed and ray is None:
        raise ReversiError("--mixed without --ray: expected the cluster whose GPUs and CPUs play")
    if ray is not None:
        usual["job_games"] = CLUSTER_JOB_GAMES[chosen.get("device", "cpu")]
    run, began = started_run(out, SelfPlayOptions, partial(preset, **usual), dict(chosen)), perf_counter()
    cluster = "" if ray is None else f" --ray {shlex.quote(ray)}" + " --mixed" * mixed
    stopped = resume_text("alphazero", out, threads, cluster)

    def log(text: str) -> None:
        if not sys.stderr.isatty():  # a terminal has the progress bar
            print(text, file=sys.stderr, flush=True)

    log(stopped.removeprefix("reversi: stopped; "))
    with exit_on_interrupt(stopped), chosen_executor(ray, None) as executor, progress_bar() as show:
        training = SelfPlayRun(
            **run,
            threads=torch_threads(threads),
            cache=cache,
            progress=show,
            executor=executor,
            mixed=mixed,
            on_metrics=lambda number, metrics: log(_line(metrics, training.options)),
        )
        result = training.run()
        table = training.examine() if exam and training.options.eval_games else None
    _show(training, result.weights, table, perf_counter() - began, as_json)


def _show(
    training: SelfPlayRun, weights: Path, table: dict[str, dict[str, Any]] | None, seconds: float, as_json: bool
) -> None:
    if as_json:
        print_json({"weights": str(weights), "figures": training.metrics, "exam": table, "seconds": seconds})
        return
    if table is not None:
        names = list(dict.fromkeys(name for of in table.values() for name in of["points"]))
        rows = [
            (
                player,
                *(f"{100 * of['points'][name]:.1f}" if name in of["points"] else "" for name in names),
                *elo_cells(of),
                f"{of['regret']:.2f}",
            )
            for player, of in table.items()
        ]
        headings = [name.replace("-", "-\n").replace(":", ":\n") for name in names]
        print_table(
            ["points, %", *headings, "Elo", "95 %\ninterval", "regret,\ndiscs"],
            rows,
            width=EXAM_WIDTH,
            gap=1,
            show_edge=False,
        )
        print_elo_note(rows)
    from reversi_env.errors import count_noun

    print(f"{count_noun(training.options.generations, 'generation')}, {seconds:.1f} s")
    print(f"weights: {weights}")
    game = f"--size {training.rules.size} --variant {training.rules.variant}"
    print(f"play it: reversi play --agent zero:{shlex.quote(str(weights))},simulations=64 {game}")


def _line(metrics: dict[str, float], options: SelfPlayOptions) -> str:
    """Return the metrics of a row as a line of a log, by their names in ``log.csv``."""
    values = dict(metrics)
    if "generation" in values:
        stage = f"generation {values.pop('generation') + 1}/{options.generations}"
    else:
        stage = f"final steps {values.pop('last_steps')}/{options.final_steps}"
    return f"{stage}: " + ", ".join(f"{name} {value:g}" for name, value in values.items())
