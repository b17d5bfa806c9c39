"""`Learner`: the network that is taught, a calmer one that plays, and the steps that it takes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from models.bitboards import board_planes, legal_moves, transformed
from models.mcts.tree import ILLEGAL_LOGIT
from models.residual.inference import InferenceNetwork, TorchCompiled
from models.residual.net import PolicyValueFunction, ResidualNet, square_images
from reversi_env.errors import extra_libraries
from train.alphazero.options import SelfPlayOptions
from train.alphazero.self_play import ONE, Positions
from train.jobs.checkpoints import State, network_state, restore_network

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional

#: Discs beyond which errors count linearly, and discs that count as 1 in the loss.
HUBER_DELTA, LOSS_DISCS = 12.0, 16.0
#: How much the policy's entropy, in nats, counts beside the value's error.
POLICY_WEIGHT = 0.5
#: Decoupled weight decay, the longest gradient that is followed as it is, and steps until the rate is whole.
DECAY, LONGEST, WARM_UP = 0.01, 1.0, 200
#: Share of the new weights in the mean over the last steps, which plays and is kept.
MEAN_SHARE = 0.01
#: Steps between two reports.
REPORT = 50


class Losses(NamedTuple):
    """Means over some steps: the value's error in discs, and the policy's cross entropy in nats."""

    error: float
    policy: float


class Learner:
    """One network on one device; ``mean`` is the mean of its weights over the last steps.

    *compiled*: let torch compile the loss; by default on a GPU.
    """

    def __init__(self, options: SelfPlayOptions, device: torch.device, *, compiled: bool | None = None) -> None:
        self.options, self.rules, self.device = options, options.rules, device
        self.is_gpu = device.type == "cuda"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = ResidualNet(options.size, channels=options.channels, blocks=options.blocks)
        self.net = net.to(device)
        self.mean = copy.deepcopy(self.net).requires_grad_(False)
        self._player = InferenceNetwork(self.mean)
        self.optimiser = torch.optim.AdamW(
            self.net.parameters(), options.learning_rate, betas=(0.9, 0.99), weight_decay=DECAY, fused=self.is_gpu
        )
        self._images = square_images(self.rules).to(device)
        compiles = self.is_gpu if compiled is None else compiled
        self._loss: Callable[..., Any] = TorchCompiled(self._losses) if compiles else self._losses

    @property
    def logits_and_values(self) -> PolicyValueFunction:
        """Numbers of all squares and values, by the mean weights."""
        return self._player.logits_and_values

    # --- learning ---------------------------------------------------------------------------------

    def learn(
        self,
        positions: Positions,
        steps: int,
        rate: Callable[[int], float],
        seed: int,
        tell: Callable[[int], None] = lambda done: None,
    ) -> Losses:
        """Take *steps* on batches drawn from the positions, each seen under one of the eight symmetries.

        ``rate(step)`` is what the learning rate is multiplied with.
        """
        generator = torch.Generator(self.device).manual_seed(seed)
        total = torch.zeros(2, device=self.device)
        size = (self.options.batch_size,)
        for step in range(steps):
            rows = torch.randint(len(positions.own), size, generator=generator, device=self.device)
            symmetries = torch.randint(8, size, generator=generator, device=self.device)
            for group in self.optimiser.param_groups:
                group["lr"] = self.options.learning_rate * rate(step)
            total += self._step(Positions(*(column[rows] for column in positions)), symmetries)
            if step % REPORT == 0:
                tell(step)
        self._player.load_weights(self.mean)
        return Losses(*(total / max(1, steps)).tolist())

    def _step(self, batch: Positions, symmetries: Tensor) -> Tensor:
        loss, told = self._loss(*batch, symmetries)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), LONGEST)
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.mean.parameters()), list(self.net.parameters()), MEAN_SHARE)
        return told

    def _losses(
        self, own: Tensor, opp: Tensor, score: Tensor, policy: Tensor, symmetries: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and the two figures of `Losses`."""
        own, opp = transformed(own, symmetries), transformed(opp, symmetries)
        target = policy.gather(1, self._images[symmetries]).float() / ONE
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_gpu):
            numbers, values = self.net(own, opp)
        error = functional.huber_loss(values / LOSS_DISCS, score / LOSS_DISCS, delta=HUBER_DELTA / LOSS_DISCS)
        legal = board_planes(legal_moves(own, opp, self.rules.playable), self.rules.size).flatten(1)
        likely = torch.log_softmax(torch.where(legal > 0, numbers, ILLEGAL_LOGIT), 1)
        entropies = -(target * torch.where(legal > 0, likely, 0.0)).sum(1)
        entropy = entropies.sum() / (target.sum(1) > 0).sum().clamp(min=1)
        told = torch.stack([(values - score).abs().mean(), entropy]).detach()
        return error + POLICY_WEIGHT * entropy, told

    # --- files ------------------------------------------------------------------------------------

    def state(self) -> dict[str, State]:
        """All that a later learner with the same options needs to go on."""
        mean = {name: value.cpu().numpy() for name, value in self.mean.state_dict().items()}
        return {**network_state(self.net, self.optimiser), "mean": mean}

    def load(self, parts: dict[str, Any]) -> None:
        """Go on from there."""
        restore_network(parts, self.net, self.optimiser)
        self.mean.load_state_dict({name: torch.from_numpy(array) for name, array in parts["mean"].items()})
        self._player.load_weights(self.mean)


@contextmanager
def fast_convolutions(device: torch.device) -> Iterator[None]:
    """Let the GPU choose the fastest convolutions inside."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or device.type == "cuda"
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
