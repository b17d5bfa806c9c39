"""One game of the Gymnasium environment with random legal moves against a greedy opponent."""

import gymnasium

import reversi_env  # noqa: F401 - registers the ids

env = gymnasium.make("Reversi-v0", opponent="greedy", render_mode="ansi")
env.action_space.seed(7)
observation, info = env.reset(seed=7)
terminated = False
while not terminated:
    action = env.action_space.sample(info["action_mask"])
    observation, reward, terminated, truncated, info = env.step(action)
print(env.render())
print("reward:", reward)
