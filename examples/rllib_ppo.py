"""Ray RLlib: PPO over its PettingZoo wrapper, both agents one module that masks illegal moves. Argument: training iterations.

RLlib gives every agent an episode of its own moves with the reward at its end, so gamma is 1 here.
"""

import sys

import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune import register_env
from torch import nn

from reversi_env import Rules
from reversi_env.envs import pettingzoo as aec
from train import score_policy

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 20


class MaskedModule(TorchRLModule, ValueFunctionAPI):
    """A small network that masks illegal moves."""

    def setup(self):
        squares = self.action_space.n - 1
        self.body = nn.Sequential(nn.Linear(2 * squares, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, squares + 1), nn.Linear(128, 1)

    def _forward(self, batch, **_):
        boards, mask = (batch[Columns.OBS][name] for name in ("observation", "action_mask"))
        logits = self.actor(self.body(boards.flatten(1).float()))
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(mask == 0, -1e9)}

    def compute_values(self, batch, embeddings=None):
        return self.critic(self.body(batch[Columns.OBS]["observation"].flatten(1).float())).squeeze(-1)


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
register_env("reversi", lambda config: PettingZooEnv(aec.env(size=4)))
config = (
    PPOConfig()
    .environment("reversi")
    .env_runners(num_env_runners=0)
    .multi_agent(policies={"both"}, policy_mapping_fn=lambda agent, *_, **__: "both")
    .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"both": RLModuleSpec(module_class=MaskedModule)}))
    .training(gamma=1.0, lr=1e-3, train_batch_size=1024, minibatch_size=256, num_epochs=4, entropy_coeff=0.01)
    .debugging(seed=1)
)
algorithm = config.build_algo()
for _ in range(iterations):
    algorithm.train()
module = algorithm.get_module("both")


def policy(boards, masks):
    observations = {"observation": torch.as_tensor(boards), "action_mask": torch.as_tensor(masks)}
    with torch.no_grad():
        logits = module.forward_inference({Columns.OBS: observations})[Columns.ACTION_DIST_INPUTS]
    return np.asarray(logits.argmax(1))


print(score_policy(policy, Rules(4)))
algorithm.stop()
ray.shutdown()
