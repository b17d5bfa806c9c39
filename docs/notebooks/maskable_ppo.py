# %% [markdown]
# # MaskablePPO, and an agent you play
#
# A few thousand games on the 4×4 board with sb3-contrib's MaskablePPO, with the regret against the exact solver during training.

# %%
import numpy as np
import torch
from sb3_contrib import MaskablePPO

from train import ReversiVecEnv

torch.set_num_threads(1)  # so small a network is not worth two


def score(model, games=400):
    """Mean points per game against random play, both colours."""
    envs = ReversiVecEnv(200, size=4, colour="alternate", observation="flat")
    envs.seed(1000)
    observations, results = envs.reset(), []
    while len(results) < games:
        actions, _ = model.predict(observations, action_masks=envs.action_masks(), deterministic=True)
        observations, rewards, dones, _ = envs.step(actions)
        results.extend(rewards[dones])
    return float(np.mean([(1 + r) / 2 for r in results]))


env = ReversiVecEnv(64, size=4, colour="random", observation="flat", opponent=["random", "greedy"])
model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=1024, learning_rate=1e-3, gamma=1.0, seed=1, device="cpu")
before = score(model)
model.learn(60_000)
print(f"against random: {before:.0%} before, {score(model):.0%} after 60,000 steps")

# %% [markdown]
# An object with `predict` is an opponent: play against the new policy, here by random moves.

# %%
import gymnasium

import reversi_env

game = gymnasium.make("Reversi-v0", size=4, opponent=model, observation="flat")
observation, info = game.reset(seed=3)
terminated = False
while not terminated:
    action = game.action_space.sample(info["action_mask"])  # your move
    observation, reward, terminated, truncated, info = game.step(action)
print("you won" if reward > 0 else "you lost" if reward < 0 else "a draw")
game.unwrapped.position()
