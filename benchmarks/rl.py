"""Steps a second of stable-baselines3's MaskablePPO on our vector environment, and on its own wrappers of the single one.

Every measurement is a process of its own: a training of a few updates after one to warm up, and what stable-baselines3 itself
reports as ``time/fps``. Two kinds:

* ``small``: stable-baselines3's own ``MlpPolicy`` against ``random``, so that the environment is much of the work;
* ``selfplay``: the network and the updates of ``reversi train ppo`` against a pool of six past selves.

``python -m benchmarks.rl KIND VECTOR UPDATES`` prints the figures of one as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Literal

from benchmarks.timing import measured_apart

KINDS, VECTORS = ("small", "selfplay"), ("ours", "dummy", "subproc")
SIZE = 6
#: Steps of an update; games in step for our environment and for DummyVecEnv, and processes of SubprocVecEnv.
STEPS, GAMES, PROCESSES = 16_384, 256, 8
SELVES = 6


def measured(kind: str, vector: str, updates: int) -> dict[str, float]:
    """Figures of one training in a process of its own: steps a second, and shares of its time."""
    figures: dict[str, float] = measured_apart("benchmarks.rl", kind, vector, str(updates))
    return figures


class _Clock:
    """Adds up the seconds that calls of a method take."""

    def __init__(self, thing: Any, name: str) -> None:
        self.seconds, self._call = 0.0, getattr(thing, name)
        setattr(thing, name, self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return self._call(*arguments, **options)
        finally:
            self.seconds += time.perf_counter() - began


def _selves() -> list[Any]:
    """Past selves: networks as they begin, for speed their weights do not matter."""
    import torch

    from models.policy.net import PolicyValueNet
    from train.arena.network_players import BatchPolicy
    from train.rl.options import preset

    torch.manual_seed(0)
    architecture = preset(SIZE).architecture
    return [BatchPolicy(PolicyValueNet(SIZE, architecture).eval(), 1.0, seed) for seed in range(SELVES)]


class _OneGame:
    """A past self as the single environment calls it: a callable on one board."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def __call__(self, board: Any, mask: Any) -> int:
        return int(self._policy(board[None], mask[None])[0])


def _single(kind: str) -> Any:
    """One environment, made where it is used."""
    import torch

    from reversi_env.envs import ReversiEnv

    torch.set_num_threads(1)
    opponent: Any = "random" if kind == "small" else [_OneGame(policy) for policy in _selves()]
    return ReversiEnv(size=SIZE, colour="random", opponent=opponent, observation=_observation(kind))


def _observation(kind: str) -> Literal["flat", "dict"]:
    return "flat" if kind == "small" else "dict"


def _environment(kind: str, vector: str) -> Any:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from train.rl.vec_env import ReversiVecEnv

    if vector == "ours":
        opponent: Any = "random" if kind == "small" else _selves()
        return ReversiVecEnv(GAMES, size=SIZE, colour="random", opponent=opponent, observation=_observation(kind))
    if vector == "dummy":
        return make_vec_env(lambda: _single(kind), GAMES, vec_env_cls=DummyVecEnv)
    return make_vec_env(lambda: _single(kind), PROCESSES, vec_env_cls=SubprocVecEnv)


def _model(kind: str, env: Any) -> Any:
    from sb3_contrib import MaskablePPO

    from train.rl.board_policy import BoardPolicy
    from train.rl.options import faster_precision, preset

    options = preset(SIZE)
    ppo_kwargs: dict[str, Any] = {
        "n_steps": STEPS // env.num_envs,
        "batch_size": options.batch_size,
        "n_epochs": options.epochs,
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
    seen: list[float] = []

    class Fps(KVWriter):
        def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
            seen.append(float(key_values["time/fps"]))

        def close(self) -> None:
            pass

    model.set_logger(Logger(None, [Fps()]))
    model.learn(STEPS)
    clocks = {"step": _Clock(env, "step_wait")}
    if vector == "ours":
        clocks["opponents"] = _Clock(env.games, "_play_opponent_replies")
    began = time.perf_counter()
    model.learn(updates * STEPS, reset_num_timesteps=True)
    elapsed = time.perf_counter() - began
    shares = {name: clock.seconds / elapsed for name, clock in clocks.items()}
    env.close()
    # what is reported leaves out the last update, after which nothing is logged: with few updates it is too much
    return {"steps_per_second": updates * STEPS / elapsed, "reported": seen[-1], **shares}


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
