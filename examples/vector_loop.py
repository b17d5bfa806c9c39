"""A thousand games at once, one agent playing both sides: plies per second with observations and masks."""

import time

import gymnasium

import reversi_env  # noqa: F401 - registers the ids

envs = gymnasium.make_vec("Reversi-v0", num_envs=1024, opponent=None)
observations, infos = envs.reset(seed=7)
steps, finished = 500, 0
envs.step(envs.unwrapped.sample_legal())  # compiles
began = time.perf_counter()
for _ in range(steps):
    actions = envs.unwrapped.sample_legal()  # your policy: actions from observations and infos["action_mask"]
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    finished += int(terminated.sum())
seconds = time.perf_counter() - began
print(f"{finished} games, {steps * envs.num_envs / seconds / 1e6:.1f} million plies/s")
