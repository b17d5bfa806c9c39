"""Environment steps a second of `reversi train ppo --algorithm tensor`, end to end: playing itself and past selves, and learning.

    python -m benchmarks.tensor_ppo --device cuda --size 6 --num-envs 16384,32768,65536 --epochs 1,2

A line of JSON for each: the median of some updates after three to warm up, and which share of the time is playing. Steps are plies
in all games. ``--plain``: without torch's compiler too.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from train.rl.options import faster_precision, preset
from train.rl.tensor_ppo import TensorPPO

#: Updates before the clock is looked at: they compile, and let the pool of past selves fill.
WARM_UPS = 3


def measure(size: int, device: str, updates: int, *, compiled: bool, **changes: Any) -> dict[str, Any]:
    """Figures of some updates; nothing is written."""
    fixed_options: dict[str, Any] = {"algorithm": "tensor-ppo", "precision": faster_precision(device)}
    options = preset(size, **fixed_options, **changes)
    training = TensorPPO(Path(), options, device=device, compiled=compiled)
    began = perf_counter()
    training.set_up()
    for _ in range(options.pool_size):
        training.add_snapshot()
    for _ in range(WARM_UPS):
        _update(training)
    warm = perf_counter() - began
    played, learnt = zip(*(_update(training) for _ in range(updates)), strict=True)
    seconds = median(map(sum, zip(played, learnt, strict=True)))
    return {
        **changes,
        "compiled": compiled,
        "steps_per_second": round(options.num_envs * options.num_steps / seconds),
        "playing": round(median(played) / seconds, 3),
        "warm_up_seconds": round(warm, 1),
    }


def _update(training: TensorPPO) -> tuple[float, float]:
    """Seconds of playing and of learning; both end when the device is done."""
    began = perf_counter()
    training.collect_rollout()
    training.synchronise()
    played = perf_counter()
    training.update()
    training.synchronise()
    return played - began, perf_counter() - played


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--updates", type=int, default=10)
    for name, usual in (("num-envs", "32768"), ("num-steps", "16"), ("epochs", "2"), ("batch-size", "16384")):
        parser.add_argument(f"--{name}", default=usual)
    parser.add_argument("--channels", default="32")
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    names = ("num_envs", "num_steps", "epochs", "batch_size", "channels")
    for numbers in product(*([int(number) for number in getattr(arguments, name).split(",")] for name in names)):
        for compiled in (True, False) if arguments.plain else (arguments.device == "cuda",):
            changes = dict(zip(names, numbers, strict=True))
            print(
                json.dumps(measure(arguments.size, arguments.device, arguments.updates, compiled=compiled, **changes)),
                flush=True,
            )


if __name__ == "__main__":
    main()
