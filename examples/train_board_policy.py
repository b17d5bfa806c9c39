"""MaskablePPO with the board network against an opponent of your choice; a minute on one core.

Arguments: steps, and optionally a file for the policy.
"""

import sys
from pathlib import Path

import torch
from sb3_contrib import MaskablePPO

from models.residual.net import SavedResidual
from reversi_env import Rules
from train.arena.network_players import ZeroPlayer
from train.evaluation.ladder import Ladder
from train.rl.board_policy import BoardPolicy
from train.rl.vec_env import ReversiVecEnv

torch.set_num_threads(1)  # a second thread does not speed up so small a network
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
rules = Rules(6)

env = ReversiVecEnv(
    128, size=rules.size, colour="random", opponent=["random", "greedy"], observation="dict", opening_plies=4
)
model = MaskablePPO(
    BoardPolicy, env, n_steps=32, batch_size=512, n_epochs=3, learning_rate=1e-3, gamma=1.0, seed=1, device="cpu"
)
model.learn(steps)

net = model.policy.net
standing = Ladder(rules, games=200, baselines=("random", "greedy")).measure(ZeroPlayer(net, rules))
for name, score in standing.scores.items():
    print(f"{score.games} games against {name}: score {score.score:.1%}")
if len(sys.argv) > 2:  # a file for the policy
    path = Path(sys.argv[2])
    path.write_bytes(SavedResidual(rules, net, {"steps": model.num_timesteps}).to_bytes())
    print(f"play it: reversi play --agent rl:{path} --size {rules.size}")
