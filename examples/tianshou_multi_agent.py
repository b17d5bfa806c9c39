"""Tianshou's multi-agent example (DQN and tic-tac-toe) with the environment's name changed, both agents one learner.

Turns strictly alternate: after two steps the same agent is to move, so returns are over two steps. Argument: steps.
"""

import sys

import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

from reversi_env import Rules
from reversi_env.envs import pettingzoo as aec
from train import score_policy

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
torch.manual_seed(1)
torch.set_num_threads(1)


def make():
    return PettingZooEnv(aec.env(size=4))  # in the example: tictactoe_v3.env()


env = make()
boards, actions = env.observation_space["observation"], env.action_space
network = Net(state_shape=boards.shape, action_shape=actions.n, hidden_sizes=[128, 128])
learner = DQN(
    policy=DiscreteQLearningPolicy(model=network, action_space=actions, eps_training=0.1),
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.99,
    n_step_return_horizon=2,
    target_update_freq=300,
)
players = MultiAgentOffPolicyAlgorithm(algorithms=[learner, learner], env=env)
games = DummyVectorEnv([make for _ in range(10)])
games.seed(1)
collector = Collector(players, games, VectorReplayBuffer(20_000, len(games)), exploration_noise=True)
collector.reset()
collector.collect(n_step=640)
players.run_training(
    OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=steps,
        collection_step_num_env_steps=100,
        batch_size=64,
        update_step_num_gradient_steps_per_sample=0.1,
        multi_agent_return_reduction=lambda returns: returns[:, 0],
        show_progress=False,
        verbose=False,
    )
)


def policy(boards, masks):
    with torch.no_grad():
        values = network(boards)[0]
    return values.masked_fill(torch.as_tensor(masks) == 0, -torch.inf).argmax(1).numpy()


print(score_policy(policy, Rules(4), opponents=("random", "greedy")))
