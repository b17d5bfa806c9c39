"""`reversi train ppo`: a policy by reinforcement learning, in a folder that survives interruptions."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from play.cli.options import NOTHING, Json, Out, flag, integer, make_folder, options_of
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from train.rl.options import PpoOptions, preset

if TYPE_CHECKING:
    from reversi_env.options import Options
    from train.rl.policy_run import PolicyRun

PpoChoice: Any = options_of(PpoOptions, preset=preset)


def ppo(
    *,
    out: Out,
    chosen: PpoChoice = NOTHING,
    regret: Annotated[bool, flag("Also measure regret in solved endgames (default).", negative="--no-regret")] = True,
    threads: Annotated[int, integer("Number of CPU threads for torch.", "--threads", low=1, high=1024)] = 1,
    as_json: Json = False,
) -> None:
    """Train a policy by reinforcement learning from scratch (PPO).

    Example: reversi train ppo --out runs/first --size 6

    The policy learns by self-play, against itself and snapshots of itself, in
    many games at once. It is evaluated regularly against fixed baselines, from
    random to network:depth=2, and in solved endgames. Defaults of the form 1/2/3
    are for 4x4, 6x6 and 8x8. The folder gets policy.safetensors for the agents
    rl:FILE and rl-search:FILE, curve.svg, regret.svg, log.csv, evaluations.csv,
    and logs for TensorBoard.

    Run the same command again to resume after Ctrl-C or a crash; --out alone is
    enough. A larger --total-timesteps extends a finished run.
    """
    from play.first_start import prepare_parts
    from reversi_env.errors import require
    from train.rl.options import faster_precision

    require("torch")
    from train.fitting.fit import checked_device
    from train.rl.tensor_ppo import TensorPPO

    checked_device(chosen.get("device", "cpu"))
    usual = partial(preset, precision=faster_precision(chosen.get("device", "cpu")))
    run = started_run(out, PpoOptions, usual, dict(chosen))
    prepare_parts(["endgames"])
    began = perf_counter()
    with exit_on_interrupt(resume_text("ppo", out, threads)), progress_bar() as show:
        training = TensorPPO(**run, threads=threads, regret=regret, progress=show)
        training.run()
    show_training(training, perf_counter() - began, as_json)


def resume_text(command: str, out: Path, threads: int | None, more: str = "") -> str:
    """Return how to resume a stopped run. Its folder has the options, but not the threads, which affect floating-point sums."""
    count = "" if threads is None else f" --threads {threads}"
    return f"reversi: stopped; resume with: reversi train {command} --out {shlex.quote(str(out))}{count}{more}"


def started_run(
    out: Path, kind: type[Options], preset: Callable[..., Options], changes: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a training: its folder, and the options it was started with, or a preset, with *changes*."""
    from train.jobs.run import stored_options

    begun = stored_options(out, kind)
    options = replace(begun, **changes) if begun else preset(**changes)
    make_folder("--out", out)
    return {"folder": out, "options": options, "command": shlex.join(["reversi", *sys.argv[1:]])}


def show_training(training: PolicyRun, seconds: float, as_json: bool) -> None:
    """Print the strength of the policy and how to use it."""
    from train.arena.ratings import rating_text

    path, standing = training.policy, training.evaluations[-1]
    if as_json:
        print_json({"policy": str(path), **standing, "seconds": seconds})
        return
    rows = (
        (
            *(name, baseline["wins"], baseline["draws"], baseline["losses"], f"{baseline['points']:.1%}"),
            "–".join(f"{end:.1%}" for end in baseline.get("interval", ())),  # files of version 0.2 have no interval
            f"{baseline['discs']:+.1f}",
        )
        for name, baseline in standing["rungs"].items()
    )
    print_table(("against", "won", "drawn", "lost", "score", "95 % interval", "discs"), rows, gap=2)
    elo = rating_text(*(standing[key] for key in ("elo", "elo_low", "elo_high")))
    requested, done = training.options.total_timesteps, standing["steps"]
    rounded = (
        f" ({requested:,} requested, rounded up to a full update)"
        if requested < done == training.options.rounded_timesteps
        else ""
    )
    print(f"Elo above random: {elo} after {done:,} steps{rounded}")
    before = training.seconds
    print(f"{seconds:.1f} s" + (f", and {before:,.1f} s in earlier runs" if before else ""))
    print(f"{standing['steps_per_second']:,} environment steps/s, without the evaluations")
    print(f"policy: {path}")
    game = f"--size {training.rules.size} --variant {training.rules.variant}"
    print(f"play it: reversi play --agent rl:{shlex.quote(str(path))} {game}")
