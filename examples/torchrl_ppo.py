"""TorchRL: its PPO loss, advantages and masked policy on the vector environment; one network plays both sides.

Argument: steps. gamma is -1. TorchRL resets games itself: autoreset_mode="DISABLED". Masks are in the observations.
"""

import sys

import gymnasium
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import MaskedOneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import reversi_env  # noqa: F401 - registers the ids
from reversi_env import Rules
from train import score_policy

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
torch.set_num_threads(1)
torch.manual_seed(1)
games, plies, squares = 64, 32, 16
env = GymWrapper(
    gymnasium.make_vec("Reversi-v0", games, size=4, opponent=None, observation="dict", autoreset_mode="DISABLED")
)


class Mlp(nn.Module):
    """A network from planes of discs to *outputs* values."""

    def __init__(self, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * squares, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.head = nn.Linear(128, outputs)

    def forward(self, observation, mask=None):
        outputs = self.head(self.layers(observation.flatten(-3).float()))
        return outputs if mask is None else (outputs, mask.bool())


network = TensorDictModule(Mlp(squares + 1), ["observation", "action_mask"], ["logits", "mask"])
actor = ProbabilisticActor(
    network,
    in_keys=["logits", "mask"],
    spec=env.action_spec,
    distribution_class=MaskedOneHotCategorical,
    return_log_prob=True,
)
critic = ValueOperator(Mlp(1), in_keys=["observation"])
advantages = GAE(gamma=-1.0, lmbda=0.95, value_network=critic, vectorized=False)
loss_module = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01)
optimiser = torch.optim.Adam(loss_module.parameters(), 1e-3)
for batch in Collector(env, actor, frames_per_batch=games * plies, total_frames=steps):
    for _ in range(3):
        with torch.no_grad():
            advantages(batch)
        rows = batch.reshape(-1)
        for part in torch.randperm(len(rows)).split(512):
            losses = loss_module(rows[part])
            optimiser.zero_grad()
            sum(losses[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
            optimiser.step()


def policy(boards, masks):
    with torch.no_grad():
        logits, legal = network.module(torch.as_tensor(boards), torch.as_tensor(masks))
    return logits.masked_fill(~legal, -torch.inf).argmax(1).numpy()


print(score_policy(policy, Rules(4)))
