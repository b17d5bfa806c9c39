"""Steps per second of PPO.

``python -m benchmarks.rl sb3 VECTOR UPDATES``: MaskablePPO of stable-baselines3 with its own ``MlpPolicy`` against ``random``, on
our vector environment (``ours``) and on the wrappers of the single one (``dummy``, ``subproc``), after an update to warm up.

``python -m benchmarks.rl tensor --device cuda --num-envs 16384,32768 --n-epochs 1,2``: `TensorPPO` with its updates, a line of
JSON for each setting: the median of some updates, and the share of the time in rollouts. Steps are plies in all games.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.timing import measured_apart

if TYPE_CHECKING:
    from train.rl.tensor_ppo import TensorPPO

VECTORS = ("ours", "dummy", "subproc")
SIZE = 6
#: Steps of an update; environments of our vector environment and of DummyVecEnv, and processes of SubprocVecEnv.
STEPS, GAMES, PROCESSES = 16_384, 256, 8
#: Settings of MaskablePPO, those of `reversi train ppo` on 6x6.
BATCH_SIZE, EPOCHS = 512, 3
#: Updates of `TensorPPO` before the measurement: they compile, and fill the pool of snapshots.
WARM_UPS = 3


# --- stable-baselines3 ----------------------------------------------------------------------------


def steps_per_second(vector: str, updates: int) -> float:
    """Return the steps per second of one training, in another process."""
    return float(measured_apart("benchmarks.rl", "sb3", vector, str(updates)))


def _environment(vector: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from reversi_env.envs import ReversiEnv
    from train.rl.vec_env import ReversiVecEnv

    env_kwargs: dict[str, Any] = {"size": SIZE, "colour": "random", "opponent": "random", "observation": "flat"}
    if vector == "ours":
        return ReversiVecEnv(GAMES, **env_kwargs)
    if vector == "dummy":
        return make_vec_env(ReversiEnv, GAMES, env_kwargs=env_kwargs, vec_env_cls=DummyVecEnv)
    return make_vec_env(ReversiEnv, PROCESSES, env_kwargs=env_kwargs, vec_env_cls=SubprocVecEnv)


def _run(vector: str, updates: int) -> float:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.logger import Logger

    torch.set_num_threads(1)
    env = _environment(vector)
    ppo_kwargs: dict[str, Any] = {
        "n_steps": STEPS // env.num_envs,
        "batch_size": BATCH_SIZE,
        "n_epochs": EPOCHS,
        "gamma": 1.0,
        "device": "cpu",
    }
    model = MaskablePPO("MlpPolicy", env, **ppo_kwargs)
    model.set_logger(Logger(None, []))
    model.learn(STEPS)
    began = perf_counter()
    model.learn(updates * STEPS, reset_num_timesteps=True)
    elapsed = perf_counter() - began
    env.close()
    return updates * STEPS / elapsed


# --- tensors --------------------------------------------------------------------------------------


def tensor_ppo(size: int, device: str, updates: int, **changes: Any) -> dict[str, Any]:
    """Return the speed of some updates of `TensorPPO`; nothing is written."""
    from train.rl.options import PpoOptions, faster_precision, preset
    from train.rl.tensor_ppo import TensorPPO

    gpu_options = preset(size, device="cuda", precision=faster_precision(device), **changes).as_dict()
    options = PpoOptions.from_dict(gpu_options | {"device": device})
    training = TensorPPO(Path(), options, compiled=device == "cuda")
    training.set_up()
    for _ in range(options.pool_size):
        training.add_snapshot()
    for _ in range(WARM_UPS):
        _update(training)
    played, learnt = zip(*(_update(training) for _ in range(updates)), strict=True)
    seconds = median(map(sum, zip(played, learnt, strict=True)))
    return {
        **changes,
        "steps_per_second": round(options.num_envs * options.num_steps / seconds),
        "playing": round(median(played) / seconds, 3),
    }


def _update(training: TensorPPO) -> tuple[float, float]:
    """Return the seconds of a rollout and of an update; both end when the device is done."""
    began = perf_counter()
    training.collect_rollout()
    training.synchronise()
    played = perf_counter()
    training.update()
    training.synchronise()
    return played - began, perf_counter() - played


def main(program: str, *words: str) -> None:
    if program == "sb3":
        vector, updates = words
        print(json.dumps(_run(vector, int(updates))))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rl tensor")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--updates", type=int, default=10)
    varied = {"num_envs": "32768", "num_steps": "16", "n_epochs": "2", "batch_size": "16384", "channels": "32"}
    for name, default in varied.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=default)
    options = parser.parse_args(words)
    for values in product(*(map(int, getattr(options, name).split(",")) for name in varied)):
        changes = dict(zip(varied, values, strict=True))
        print(json.dumps(tensor_ppo(options.size, options.device, options.updates, **changes)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
