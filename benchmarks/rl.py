"""Steps per second of PPO: MaskablePPO of stable-baselines3 with its own ``MlpPolicy`` against ``random``.

``python -m benchmarks.rl VECTOR UPDATES`` runs it on our vector environment (``ours``) or on the wrappers of the single
environment (``dummy``, ``subproc``), after a warm-up update.
"""

import json
import sys
from time import perf_counter
from typing import Any

from benchmarks.timing import measured_apart

VECTORS = ("ours", "dummy", "subproc")
SIZE = 6
#: Steps of an update; environments of our vector environment and of DummyVecEnv, and processes of SubprocVecEnv.
STEPS, GAMES, PROCESSES = 16_384, 256, 8
#: Settings of MaskablePPO, those of `reversi train ppo` on 6x6.
BATCH_SIZE, EPOCHS = 512, 3


def steps_per_second(vector: str, updates: int) -> float:
    """Return the steps per second of one training, in another process."""
    return float(measured_apart("benchmarks.rl", vector, str(updates)))


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


def main(vector: str, updates: str) -> None:
    print(json.dumps(_run(vector, int(updates))))


if __name__ == "__main__":
    main(*sys.argv[1:])
