"""`Learner`: the network in training, the exponential moving average of its weights, which plays the games, and gradient steps."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from models.bitboards import board_planes, legal_moves, transformed
from models.residual.inference import InferenceNetwork, TorchCompiled
from models.residual.net import ILLEGAL_LOGIT, PolicyValueFunction, ResidualNet, square_images
from reversi_env.errors import extra_libraries
from train.alphazero.options import SelfPlayOptions
from train.alphazero.self_play import POLICY_SCALE, Positions
from train.jobs.checkpoints import State, network_state, restore_network

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional
    from torch.optim.swa_utils import get_ema_multi_avg_fn

#: Huber delta, and the discs that count as 1 in the value loss.
HUBER_DELTA, LOSS_SCALE = 12.0, 16.0
#: Coefficient of the policy loss, in nats.
POLICY_COEFFICIENT = 0.5
#: Decoupled weight decay, maximum norm of a gradient, and steps of the learning rate's warm-up.
WEIGHT_DECAY, MAX_GRAD_NORM, WARMUP_STEPS = 0.01, 1.0, 200
#: Share that the moving average of the weights keeps at every step.
EMA_DECAY = 0.99
update_average = get_ema_multi_avg_fn(EMA_DECAY)
#: Steps between two reports.
REPORT_INTERVAL = 50


class Losses(NamedTuple):
    """Means over some steps: the absolute error of the value in discs, and the cross entropy of the policy in nats."""

    error: float
    policy: float


class Learner:
    """One network on one device; ``ema_net`` has the moving average of its weights.

    *compiled*: let torch compile the loss; by default on a GPU.
    """

    def __init__(self, options: SelfPlayOptions, device: torch.device, *, compiled: bool | None = None) -> None:
        self.options, self.rules, self.device = options, options.rules, device
        self.is_gpu = device.type == "cuda"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = ResidualNet(options.size, channels=options.channels, blocks=options.blocks)
        self.net = net.to(device)
        self.ema_net = copy.deepcopy(self.net).requires_grad_(False)
        self._inference = InferenceNetwork(self.ema_net)
        self.optimiser = torch.optim.AdamW(
            self.net.parameters(), options.learning_rate, (0.9, 0.99), weight_decay=WEIGHT_DECAY, fused=self.is_gpu
        )
        self._images = square_images(self.rules).to(device)
        compiles = self.is_gpu if compiled is None else compiled
        self._loss: Callable[..., Any] = TorchCompiled(self._loss_and_metrics) if compiles else self._loss_and_metrics

    @property
    def logits_and_values(self) -> PolicyValueFunction:
        """Policy logits of all squares and values, by the averaged weights."""
        return self._inference.logits_and_values

    def learn(
        self,
        positions: Positions,
        steps: int,
        rate_factor: Callable[[int], float],
        seed: int,
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> Losses:
        """Take gradient *steps* on random batches of the positions, each under a random symmetry.

        ``rate_factor(step)`` multiplies the learning rate.
        """
        rng = torch.Generator(self.device).manual_seed(seed)
        total = torch.zeros(2, device=self.device)
        size = (self.options.batch_size,)
        for step in range(steps):
            rows = torch.randint(len(positions.own), size, generator=rng, device=self.device)
            symmetries = torch.randint(8, size, generator=rng, device=self.device)
            for group in self.optimiser.param_groups:
                group["lr"] = self.options.learning_rate * rate_factor(step)
            total += self._step(Positions(*(column[rows] for column in positions)), symmetries)
            if step % REPORT_INTERVAL == 0:
                on_progress(step)
        self._inference.load_weights(self.ema_net)
        return Losses(*(total / max(1, steps)).tolist())

    def _step(self, batch: Positions, symmetries: Tensor) -> Tensor:
        loss, metrics = self._loss(*batch, symmetries)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), MAX_GRAD_NORM)
        self.optimiser.step()
        with torch.no_grad():
            update_average(list(self.ema_net.parameters()), list(self.net.parameters()), 0)
        return metrics

    def _loss_and_metrics(
        self, own: Tensor, opp: Tensor, score: Tensor, policy: Tensor, symmetries: Tensor
    ) -> tuple[Tensor, Tensor]:
        own, opp = transformed(own, symmetries), transformed(opp, symmetries)
        target = policy.gather(1, self._images[symmetries]).float() / POLICY_SCALE
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_gpu):
            logits, values = self.net(own, opp)
        value_loss = functional.huber_loss(values / LOSS_SCALE, score / LOSS_SCALE, delta=HUBER_DELTA / LOSS_SCALE)
        legal = board_planes(legal_moves(own, opp, self.rules.playable), self.rules.size).flatten(1)
        log_probs = torch.log_softmax(torch.where(legal > 0, logits, ILLEGAL_LOGIT), 1)
        cross_entropies = -(target * torch.where(legal > 0, log_probs, 0.0)).sum(1)
        policy_loss = cross_entropies.sum() / (target.sum(1) > 0).sum().clamp(min=1)
        metrics = torch.stack([(values - score).abs().mean(), policy_loss]).detach()
        return value_loss + POLICY_COEFFICIENT * policy_loss, metrics

    def state(self) -> dict[str, State]:
        """Return the state from which another learner with the same options resumes."""
        mean = {name: value.cpu().numpy() for name, value in self.ema_net.state_dict().items()}
        return {**network_state(self.net, self.optimiser), "mean": mean}

    def load_state(self, parts: dict[str, Any]) -> None:
        restore_network(parts, self.net, self.optimiser)
        self.ema_net.load_state_dict({name: torch.from_numpy(array) for name, array in parts["mean"].items()})
        self._inference.load_weights(self.ema_net)


@contextmanager
def fast_convolutions(device: torch.device) -> Iterator[None]:
    """Let the GPU choose the fastest convolutions inside."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or device.type == "cuda"
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
