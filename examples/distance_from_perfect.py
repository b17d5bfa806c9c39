"""Train MaskablePPO by self-play, and measure how many discs it loses per game against perfect play.

Arguments: steps, size, games. Needs the extra `rl`. By default it trains for about five minutes on 6x6, and plays for some minutes.
"""

import sys

import torch
from sb3_contrib import MaskablePPO

from reversi_env import Rules
from train import ReversiVecEnv, score_policy

steps, size, games = [int(text) for text in sys.argv[1:]] + [1_000_000, 6, 22][len(sys.argv) - 1 :]

torch.set_num_threads(1)  # more threads do not speed up so small a network
env = ReversiVecEnv(64, size=size, opponent=None, observation="flat")
model = MaskablePPO("MlpPolicy", env, gamma=-1.0, n_steps=64, batch_size=1024, learning_rate=1e-3, seed=1, device="cpu")


def policy(boards, masks):
    return model.predict(boards, action_masks=masks, deterministic=True)[0]


print("  steps  discs lost per game  95 % interval  perfect moves")
for part in range(5):
    if part:
        model.learn(steps // 4, reset_num_timesteps=False)
    score = score_policy(policy, Rules(size), whole_games=True, games=games, observation="flat")
    lost, (low, high) = score.lost_per_game.mean, score.lost_per_game.interval
    print(
        f"{model.num_timesteps:7} {lost:20.1f}  {f'{low:.1f}–{high:.1f}':>13}  {score.overall.perfect.mean:13.1%}",
        flush=True,
    )
print(score)
