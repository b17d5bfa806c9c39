"""MaskablePPO learns 6x6 by self-play, with one model for both sides, and is evaluated: a minute and a half on one core.

Turns strictly alternate, passes included, so gamma=-1 makes a stock PPO a negamax learner. Argument: steps.
"""

import sys

import torch
from sb3_contrib import MaskablePPO

from reversi_env import Rules
from train import ReversiVecEnv, score_policy

torch.set_num_threads(1)  # a second thread does not speed up so small a network
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000

env = ReversiVecEnv(64, size=6, opponent=None, observation="flat")
model = MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=1024, learning_rate=1e-3, gamma=-1.0, seed=1, device="cpu")
model.learn(steps)


def policy(boards, masks):
    return model.predict(boards, action_masks=masks, deterministic=True)[0]


print(score_policy(policy, Rules(6), observation="flat"))
