"""Learning what the expert says: cross entropy for the policy, squared error for the value, every position from all sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from models.boards import board_tensor
from reversi_env import Rules
from reversi_env.extras import extra_libraries
from reversi_env.seeding import derive_seed
from train.rl.expert_data import ExpertLabels
from train.rl.network import PolicyValueNet, masked, net_inputs, turned, views
from train.rl.options import ExpertOptions
from train.rl.players import Counter

with extra_libraries():
    import torch
    from torch import Tensor, nn

#: Decoupled weight decay, and the longest gradient that is followed as it is.
DECAY, LONGEST = 1e-4, 1.0
#: Steps between two reports.
REPORT = 20


@dataclass(frozen=True)
class Losses:
    """Means over a round of learning: cross entropy above its least (nats), and the value's root mean squared error (discs)."""

    policy: float
    value: float


class Memory:
    """All labelled positions as tensors, from which batches are drawn."""

    def __init__(self, parts: list[ExpertLabels], rules: Rules) -> None:
        self.rules = rules
        self.own, self.opp = (
            board_tensor(np.concatenate([getattr(part, side) for part in parts])) for side in ("own", "opp")
        )
        policy = torch.from_numpy(np.concatenate([part.policy for part in parts]))
        self.policy = nn.functional.pad(policy, (0, 1))  # no position is a pass
        self.value = torch.from_numpy(np.concatenate([part.value for part in parts]) / np.float32(rules.square_count))
        self.views = torch.from_numpy(views(rules))

    def __len__(self) -> int:
        return len(self.own)

    def batch(self, rows: Tensor, symmetry: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Discs, masks, policies (with the pass) and values of *rows*, each under its own symmetry."""
        view = self.views[symmetry]
        discs, mask = turned(*net_inputs(self.own[rows], self.opp[rows], self.rules.size), view)
        return discs, mask, self.policy[rows].gather(1, view), self.value[rows]


def optimiser_of(net: PolicyValueNet, options: ExpertOptions) -> torch.optim.AdamW:
    """Adam for a network; its state goes from round to round."""
    return torch.optim.AdamW(net.parameters(), lr=options.learning_rate, weight_decay=DECAY)


def rate_at(options: ExpertOptions, done: float) -> float:
    """The learning rate after a share *done* of all rounds: a cosine down to 0."""
    return options.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def learn(
    net: PolicyValueNet,
    optimiser: torch.optim.Optimizer,
    memory: Memory,
    options: ExpertOptions,
    iteration: int,
    progress: Counter = lambda done, total: None,
) -> Losses:
    """One round of learning, decided by the network, the memory, the options and the *iteration* (from 1) alone."""
    generator = torch.Generator().manual_seed(derive_seed(options.seed, iteration))
    steps = max(1, round(options.samples / options.batch_size))
    total_policy = total_value = 0.0
    rows, at = torch.empty(0, dtype=torch.int64), 0
    net.train()
    net.trunk.half_precision = options.precision == "bfloat16"
    for step in range(steps):
        if at + options.batch_size > len(rows):  # every position once before one comes again
            rows, at = _shuffled(len(memory), options.batch_size, generator), 0
        chosen = rows[at : at + options.batch_size]
        at += options.batch_size
        symmetry = torch.randint(8, (len(chosen),), generator=generator)
        done = (iteration - 1 + step / steps) / options.iterations
        for group in optimiser.param_groups:
            group["lr"] = rate_at(options, done)
        data = memory.batch(chosen, symmetry)
        numbers, values = net(data[0], data[1])
        policy_loss, value_loss = _losses(numbers, values, data)
        optimiser.zero_grad(set_to_none=True)
        (policy_loss + options.value_weight * value_loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), LONGEST)
        optimiser.step()
        total_policy += float(policy_loss.detach())
        total_value += float(value_loss.detach())
        if (step + 1) % REPORT == 0 or step + 1 == steps:
            progress(step + 1, steps)
    net.eval()
    net.trunk.half_precision = False
    return Losses(total_policy / steps, memory.rules.square_count * math.sqrt(total_value / steps))


def _shuffled(count: int, least: int, generator: torch.Generator) -> Tensor:
    """All rows in a random order, and again if they are fewer than a batch."""
    times = -(-least // count)
    return torch.cat([torch.randperm(count, generator=generator) for _ in range(times)])


def _losses(numbers: Tensor, values: Tensor, data: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Cross entropy above its least, and squared error, of what the network says about a batch."""
    _, mask, policy, value = data
    logs = torch.log_softmax(masked(numbers, mask), dim=1)
    least = torch.special.entr(policy).sum(1)  # a policy that is itself a lottery cannot be foretold better than this
    return (-(policy * logs).sum(1) - least).mean(), (values - value).square().mean()
