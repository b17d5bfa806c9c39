"""Train MaskablePPO on the 4x4 board against a random opponent and measure it: half a minute on one core."""

import sys

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from train.rl.sb3 import ReversiVecEnv

torch.set_num_threads(1)  # so small a network is not worth two
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 150_000

env = ReversiVecEnv(64, size=4, colour="random", observation="flat")
model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=1024, learning_rate=1e-3, gamma=1.0, seed=1, device="cpu")
model.learn(steps)

games = ReversiVecEnv(500, size=4, colour="alternate", observation="flat")
games.seed(1000)
observations, results = games.reset(), []
while len(results) < 1000:
    actions, _ = model.predict(observations, action_masks=games.action_masks(), deterministic=True)
    observations, rewards, dones, _ = games.step(actions)
    results.extend(rewards[dones])
score = np.mean([(1 + result) / 2 for result in results])
print(f"{len(results)} games against random: score {score:.1%}")
