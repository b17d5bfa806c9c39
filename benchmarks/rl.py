"""Steps a second of both implementations of PPO; every measurement of stable-baselines3's is a process of its own.

``python -m benchmarks.rl sb3 KIND VECTOR UPDATES``: MaskablePPO on our vector environment (``ours``) and on the wrappers of the
single one (``dummy``, ``subproc``), after an update to warm up. Kind ``small``: stable-baselines3's own ``MlpPolicy`` against
``random``, so that the environment is much of the work; ``selfplay``: the network and updates of ``reversi train ppo`` against six
past selves.

``python -m benchmarks.rl tensor --device cuda --num-envs 16384,32768 --n-epochs 1,2``: `TensorPPO` end to end, a line of JSON for
each setting: the median of some updates, and the share of the time that is playing. Steps are plies in all games.
``--plain``: without torch's compiler too.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.timing import measured_apart

if TYPE_CHECKING:
    from train.rl.tensor_ppo import TensorPPO

KINDS, VECTORS = ("small", "selfplay"), ("ours", "dummy", "subproc")
SIZE = 6
#: Steps of an update; games in step for our environment and for DummyVecEnv, and processes of SubprocVecEnv.
STEPS, GAMES, PROCESSES = 16_384, 256, 8
PAST_SELVES = 6
#: Updates of `TensorPPO` before the measurement: they compile, and let the pool of past selves fill.
WARM_UPS = 3


# --- stable-baselines3 ----------------------------------------------------------------------------


def measured(kind: str, vector: str, updates: int) -> dict[str, float]:
    """Figures of one training in a process of its own: steps a second, and shares of its time."""
    figures: dict[str, float] = measured_apart("benchmarks.rl", "sb3", kind, vector, str(updates))
    return figures


class _Stopwatch:
    """Adds up the seconds that calls of a method take."""

    def __init__(self, owner: Any, name: str) -> None:
        self.seconds, self._call = 0.0, getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        began = perf_counter()
        try:
            return self._call(*arguments, **options)
        finally:
            self.seconds += perf_counter() - began


def _past_selves() -> list[Any]:
    """Networks with initial weights, which do not matter for speed."""
    import torch

    from models.policy.net import PolicyValueNet
    from train.arena.network_players import BatchPolicy
    from train.rl.options import preset

    torch.manual_seed(0)
    architecture = preset(SIZE).architecture
    return [BatchPolicy(PolicyValueNet(SIZE, architecture).eval(), 1.0, seed) for seed in range(PAST_SELVES)]


class _OneGame:
    """A past self as the single environment calls it: a callable on one board."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def __call__(self, board: Any, mask: Any) -> int:
        return int(self._policy(board[None], mask[None])[0])


def _environment(kind: str, vector: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from train.rl.vec_env import ReversiVecEnv

    observation: Literal["flat", "dict"] = "flat" if kind == "small" else "dict"

    def single() -> Any:
        import torch

        from reversi_env.envs import ReversiEnv

        torch.set_num_threads(1)
        opponent: Any = "random" if kind == "small" else [_OneGame(policy) for policy in _past_selves()]
        return ReversiEnv(size=SIZE, colour="random", opponent=opponent, observation=observation)

    if vector == "ours":
        opponent: Any = "random" if kind == "small" else _past_selves()
        return ReversiVecEnv(GAMES, size=SIZE, colour="random", opponent=opponent, observation=observation)
    if vector == "dummy":
        return make_vec_env(single, GAMES, vec_env_cls=DummyVecEnv)
    return make_vec_env(single, PROCESSES, vec_env_cls=SubprocVecEnv)


def _model(kind: str, env: Any) -> Any:
    from sb3_contrib import MaskablePPO

    from train.rl.board_policy import BoardPolicy
    from train.rl.options import faster_precision, preset

    options = preset(SIZE)
    ppo_kwargs: dict[str, Any] = {
        "n_steps": STEPS // env.num_envs,
        "batch_size": options.batch_size,
        "n_epochs": options.n_epochs,
        "gamma": 1.0,
        "device": "cpu",
    }
    if kind == "small":
        return MaskablePPO("MlpPolicy", env, **ppo_kwargs)
    shape = {"architecture": options.architecture.as_dict(), "half_precision": faster_precision() == "bfloat16"}
    return MaskablePPO(BoardPolicy, env, policy_kwargs=shape, **ppo_kwargs)


def _run(kind: str, vector: str, updates: int) -> dict[str, float]:
    import torch
    from stable_baselines3.common.logger import KVWriter, Logger

    torch.set_num_threads(1)
    env = _environment(kind, vector)
    model = _model(kind, env)
    reported: list[float] = []

    class Fps(KVWriter):
        def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
            reported.append(float(key_values["time/fps"]))

        def close(self) -> None:
            pass

    model.set_logger(Logger(None, [Fps()]))
    model.learn(STEPS)
    watches = {"step": _Stopwatch(env, "step_wait")}
    if vector == "ours":
        watches["opponents"] = _Stopwatch(env.games, "_play_opponent_replies")
    began = perf_counter()
    model.learn(updates * STEPS, reset_num_timesteps=True)
    elapsed = perf_counter() - began
    shares = {name: watch.seconds / elapsed for name, watch in watches.items()}
    env.close()
    # stable-baselines3's own figure leaves out the last update, after which nothing is logged: with few updates it is too high
    return {"steps_per_second": updates * STEPS / elapsed, "reported": reported[-1], **shares}


# --- tensors --------------------------------------------------------------------------------------


def tensor_ppo(size: int, device: str, updates: int, *, compiled: bool, **changes: Any) -> dict[str, Any]:
    """Figures of some updates of `TensorPPO`; nothing is written."""
    from train.rl.options import faster_precision, preset
    from train.rl.tensor_ppo import TensorPPO

    options = preset(size, algorithm="tensor-ppo", precision=faster_precision(device), **changes)
    training = TensorPPO(Path(), options, device=device, compiled=compiled)
    began = perf_counter()
    training.set_up()
    for _ in range(options.pool_size):
        training.add_snapshot()
    for _ in range(WARM_UPS):
        _update(training)
    warm_up_seconds = perf_counter() - began
    played, learnt = zip(*(_update(training) for _ in range(updates)), strict=True)
    seconds = median(map(sum, zip(played, learnt, strict=True)))
    return {
        **changes,
        "compiled": compiled,
        "steps_per_second": round(options.num_envs * options.num_steps / seconds),
        "playing": round(median(played) / seconds, 3),
        "warm_up_seconds": round(warm_up_seconds, 1),
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


def main(program: str, *words: str) -> None:
    """Print the figures that were asked for."""
    if program == "sb3":
        kind, vector, updates = words
        print(json.dumps(_run(kind, vector, int(updates))))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rl tensor")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--plain", action="store_true")
    varied = {"num_envs": "32768", "num_steps": "16", "n_epochs": "2", "batch_size": "16384", "channels": "32"}
    for name, default in varied.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=default)
    options = parser.parse_args(words)
    for values in product(*(map(int, getattr(options, name).split(",")) for name in varied)):
        changes = dict(zip(varied, values, strict=True))
        for compiled in (True, False) if options.plain else (options.device == "cuda",):
            figures = tensor_ppo(options.size, options.device, options.updates, compiled=compiled, **changes)
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
