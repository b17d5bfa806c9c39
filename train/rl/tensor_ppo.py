"""`TensorPPO`: PPO by self-play on one device; games, network, rollouts and updates are tensors.

All games, tens of thousands on a GPU, run in lockstep in a `TorchVectorEnv`. The host gets a few metrics per update. Turns strictly
alternate, passes included, so the next value is the other side's and γ = −1: one network learns both sides. A snapshot is a frozen
copy of the network. In a share of the games a snapshot plays one side; each snapshot has its own rows of the batch.

Names follow CleanRL's ppo.py: advantages (`gae`), the loss (`PpoLoss`), a rollout (`TensorPPO.collect_rollout`), and
`TensorPPO.update`. Unlike there, advantages are normalised over the rollout, and the value loss is not clipped.

An interrupted run resumes from its last checkpoint. On a CPU its result equals that of an uninterrupted run.
"""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from models.bitboards import transformed
from models.residual.inference import TorchCompiled
from models.residual.net import PolicyNet, mask_illegal, square_images
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.errors import extra_libraries
from reversi_env.options import derive_seed
from train.fitting.fit import checked_device
from train.jobs.checkpoints import State, load_checkpoint, network_state, restore_network, restoring
from train.jobs.run import CHECKPOINT, Run
from train.rl.policy_run import PolicyRun

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: The value of a position for one side is minus that for the other, and the sides alternate.
GAMMA = -1.0
#: Clip range of the ratio, coefficient of the value loss, and maximum norm of a gradient.
CLIP_COEF, VF_COEF, MAX_GRAD_NORM = 0.2, 0.5, 0.5
#: Metrics of an update, as `PpoLoss` returns them: columns of the log.
METRICS = ("loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")


class Rollout(NamedTuple):
    """Transitions of all environments, or a minibatch of them: tensors with equal leading axes.

    ``own``, ``opp`` and ``masks``: boards and action masks of the side to move; ``actions`` and their ``log_probs``; ``values``: of
    the network; ``loss_mask``: 1 where the network has moved, 0 for moves of a snapshot or of a random opening. ``advantages`` and
    ``returns`` are computed after the rollout.
    """

    own: Tensor
    opp: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    loss_mask: Tensor
    advantages: Tensor
    returns: Tensor

    @classmethod
    def empty(cls, num_steps: int, num_envs: int, size: int, device: torch.device) -> Rollout:
        """Allocate *num_steps* steps of *num_envs* environments."""

        def of(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((num_steps, num_envs, *shape), dtype=dtype, device=device)

        boards = of(torch.int64), of(torch.int64), of(torch.bool, size * size + 1)
        return cls(*boards, of(torch.int64), *(of(torch.float32) for _ in range(5)))


def gae(rewards: Tensor, dones: Tensor, values: Tensor, last_value: Tensor, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates, ``(num_steps, num_envs)``.

    At each step *values* is the value before the move, for the side to move, *rewards* the reward of that side, and *dones* 1 where
    the move ended the game. *last_value* is the value after the last move, for the next side to move.
    """
    advantages, last_gae, next_value = torch.empty_like(values), torch.zeros_like(last_value), last_value
    for step in reversed(range(len(values))):
        discount = GAMMA * (1.0 - dones[step])
        last_gae = rewards[step] + discount * next_value - values[step] + gae_lambda * discount * last_gae
        advantages[step], next_value = last_gae, values[step]
    return advantages


class PpoLoss(nn.Module):
    """Returns PPO's clipped loss of a minibatch and its `METRICS`, means over the transitions of the loss mask."""

    def __init__(self, net: PolicyNet, ent_coef: float) -> None:
        super().__init__()
        self.net, self._ent_coef = net, ent_coef

    def forward(self, batch: Rollout) -> tuple[Tensor, Tensor]:
        logits, new_values = self.net.of_actions(batch.own, batch.opp)
        log_probs = torch.log_softmax(mask_illegal(logits, batch.masks), 1)
        log_ratio = log_probs.gather(1, batch.actions.unsqueeze(1)).squeeze(1) - batch.log_probs
        ratio, weight = log_ratio.exp(), batch.loss_mask / batch.loss_mask.sum().clamp(min=1.0)
        surrogate = torch.minimum(
            batch.advantages * ratio, batch.advantages * ratio.clamp(1.0 - CLIP_COEF, 1.0 + CLIP_COEF)
        )
        pg_loss = -(weight * surrogate).sum()
        v_loss = (weight * (new_values - batch.returns).square()).sum()
        entropy = -(weight * (log_probs.exp() * log_probs).sum(1)).sum()
        loss = pg_loss + VF_COEF * v_loss - self._ent_coef * entropy
        approx_kl = (weight * (ratio - 1.0 - log_ratio)).sum()
        clipfrac = (weight * ((ratio - 1.0).abs() > CLIP_COEF)).sum()
        return loss, torch.stack([loss, pg_loss, v_loss, entropy, approx_kl, clipfrac]).detach()


class TensorPPO(PolicyRun):
    """A run in *folder*. *compiled*: let torch compile network and loss; by default on a GPU."""

    def __init__(self, *args: Any, compiled: bool | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.device = checked_device(self.options.device)
        self._is_gpu = self.device.type == "cuda"
        self._compiled = self._is_gpu if compiled is None else compiled

    def run(self) -> None:
        """Train to the end, if the run is not finished."""
        torch.set_num_threads(self.threads)
        before = torch.backends.cudnn.deterministic
        torch.backends.cudnn.deterministic = True  # the same seed gives the same run
        try:
            with Run(self.folder, self.options, changeable=("total_timesteps",)):
                self._started = self._saved_at = time.perf_counter()
                self.set_up()
                if not self._resume():
                    self.evaluate(self._net)
                while self.steps < self.options.total_timesteps:
                    self._iteration()
        finally:
            torch.backends.cudnn.deterministic = before

    def set_up(self) -> None:
        """Make environments, network, optimiser and the buffer of a rollout."""
        options, device = self.options, self.device
        self.report("compiling")
        self._env = TorchVectorEnv(options.num_envs, device=device, size=options.size, variant=options.variant)
        self._env.reset(seed=derive_seed(options.seed))  # the seed of game i is i higher
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = PolicyNet(options.size, channels=options.channels, blocks=options.blocks)
        net.half_precision = options.precision == "bfloat16"
        self._net = net.to(device)
        self._optimiser = torch.optim.Adam(self._net.parameters(), options.learning_rate, eps=1e-5, fused=self._is_gpu)
        self._generator = torch.Generator(device).manual_seed(options.seed)
        self._rng = np.random.default_rng([options.seed, 1])
        self._snapshots: list[PolicyNet] = []  # the oldest first
        self._snapshots_taken = 0
        # All positions of a game have the same symmetry, and its snapshot, if it has one, always has the same colour.
        indices = torch.arange(options.num_envs, device=device)
        self._symmetries = indices % 8
        # For each game: the action on the real board of each action on the board that the network gets.
        actions = functional.pad(square_images(self.rules), (0, 1), value=self.rules.pass_action)
        self._action_images = actions.to(device)[self._symmetries]
        self._snapshot_colour = (indices // 8 % 2).to(torch.uint8)
        self._opening_plies = self._sample_opening_plies()
        self._rollout = Rollout.empty(options.num_steps, options.num_envs, options.size, device)
        self._rewards, self._dones = (torch.zeros_like(self._rollout.values) for _ in range(2))
        loss = PpoLoss(self._net, options.ent_coef)
        network = self._net.of_actions
        self._logits_and_values: Any = TorchCompiled(network, deterministic=True) if self._compiled else network
        self._loss: Any = TorchCompiled(loss, deterministic=True) if self._compiled else loss

    def _iteration(self) -> None:
        """Collect a rollout, update the network, and evaluate and save when that is due."""
        started, options = time.perf_counter(), self.options
        self.collect_rollout()
        metrics = dict(zip(METRICS, self.update().tolist(), strict=True))  # waits for the device
        self.steps += options.num_envs * options.num_steps
        seconds = time.perf_counter() - started
        self.learning_seconds += seconds
        rate = options.num_envs * options.num_steps / seconds
        self.log.append({"steps": self.steps, **metrics, "seconds": round(self.elapsed, 3), "steps_per_second": rate})
        self.tensorboard(self.steps, metrics | {"steps_per_second": rate})
        if self.steps // options.snapshot_every > self._snapshots_taken:
            self.add_snapshot()
        is_last = self.steps >= options.total_timesteps
        is_due = is_last or self.steps - self.evaluations[-1]["steps"] >= options.eval_every
        if is_due:
            self.evaluate(self._net)
        if is_due or self.checkpoint_is_due():
            self.save(self._net, self._state())
        self.report("learning")

    @torch.no_grad()
    def collect_rollout(self) -> None:
        """Play ``num_steps`` steps in every environment, into `_rollout`, without waiting for the device."""
        for step in range(self.options.num_steps):
            self._step(step)
        rollout = self._rollout
        last_value = self._logits_and_values(*self._boards())[1]
        advantages = gae(self._rewards, self._dones, rollout.values, last_value, self.options.gae_lambda)
        rollout.returns.copy_(rollout.values + advantages)
        total = rollout.loss_mask.sum().clamp(min=1.0)
        mean = (rollout.loss_mask * advantages).sum() / total
        std = ((rollout.loss_mask * (advantages - mean).square()).sum() / total).sqrt()
        rollout.advantages.copy_((advantages - mean) / (std + 1e-8))

    def _boards(self) -> tuple[Tensor, Tensor]:
        """Return own and opponent's boards of all environments, each under the symmetry of its game."""
        own, opp = (transformed(side, self._symmetries) for side in self._env.boards.unbind(1))
        return own, opp

    def _step(self, step: int) -> None:
        """Make one move in every environment, sampled from the policy of the player to move."""
        rollout, (own, opp) = self._rollout, self._boards()
        mask = self._env.infos["action_mask"].gather(1, self._action_images)
        logits, values = self._logits_and_values(own, opp)
        is_own, logits = self._with_snapshot_logits(logits, own, opp, self._env.infos["to_move"])
        is_opening = self._opening_plies > 0
        # Equal logits make the moves of an opening uniformly random.
        logits = mask_illegal(logits.masked_fill(is_opening.unsqueeze(1), 0.0), mask)
        log_probs = torch.log_softmax(logits, 1)
        exponential_noise = torch.empty_like(log_probs).exponential_(generator=self._generator).clamp_(min=1e-20)
        actions = (log_probs - exponential_noise.log()).argmax(1, keepdim=True)  # the Gumbel-max trick
        rollout.own[step], rollout.opp[step] = own, opp
        rollout.masks[step], rollout.actions[step] = mask, actions.squeeze(1)
        rollout.log_probs[step], rollout.values[step] = log_probs.gather(1, actions).squeeze(1), values
        rollout.loss_mask[step] = is_own & ~is_opening
        _, self._rewards[step], done, _, _ = self._env.step(self._action_images.gather(1, actions).squeeze(1))
        self._dones[step] = done
        self._opening_plies = torch.where(done, self._sample_opening_plies(), (self._opening_plies - 1).clamp(min=0))

    def _with_snapshot_logits(self, logits: Tensor, own: Tensor, opp: Tensor, to_move: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the network itself moves, and the logits of the network or the snapshot that is to move."""
        is_own = torch.ones_like(to_move, dtype=torch.bool)
        envs_per_snapshot = int(self.options.num_envs * self.options.snapshot_share) // self.options.pool_size
        for index, net in enumerate(self._snapshots):
            rows = slice(index * envs_per_snapshot, (index + 1) * envs_per_snapshot)
            is_own[rows] = to_move[rows] != self._snapshot_colour[rows]
            theirs = net.of_actions(own[rows], opp[rows])[0]
            logits[rows] = torch.where(is_own[rows].unsqueeze(1), logits[rows], theirs)
        return is_own, logits

    def _sample_opening_plies(self) -> Tensor:
        count, envs = self.options.opening_plies + 1, (self.options.num_envs,)
        return torch.randint(count, envs, generator=self._generator, device=self.device)

    def update(self) -> Tensor:
        """Take gradient steps on minibatches of the rollout; return the means of the metrics over them."""
        options, total = self.options, torch.zeros(len(METRICS), device=self.device)
        batch = Rollout(*(column.flatten(0, 1) for column in self._rollout))
        batch_size = len(batch.actions)
        num_minibatches = max(1, batch_size // options.batch_size)
        for group in self._optimiser.param_groups:  # linear decay to a tenth
            group["lr"] = options.learning_rate * (1.0 - 0.9 * min(1.0, self.steps / options.total_timesteps))
        for _ in range(options.n_epochs):
            indices = torch.randperm(batch_size, generator=self._generator, device=self.device)
            for rows in indices[: batch_size // num_minibatches * num_minibatches].view(num_minibatches, -1):
                loss, metrics = self._loss(Rollout(*(column[rows] for column in batch)))
                self._optimiser.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self._net.parameters(), MAX_GRAD_NORM)
                self._optimiser.step()
                total += metrics
        return total / (num_minibatches * options.n_epochs)

    def add_snapshot(self) -> None:
        """Add a snapshot of the network; if there are too many, one of the older half is removed at random."""
        self._snapshots_taken = self.steps // self.options.snapshot_every
        self._snapshots.append(deepcopy(self._net).requires_grad_(False))
        if len(self._snapshots) > self.options.pool_size:
            del self._snapshots[int(self._rng.integers((self.options.pool_size + 1) // 2))]

    def _state(self) -> dict[str, State]:
        run_state = self.run_state() | {
            "snapshots_taken": self._snapshots_taken,
            "snapshots": len(self._snapshots),
            "rng": self._rng.bit_generator.state,
            "generator": self._generator.get_state().numpy(),
            "opening_plies": self._opening_plies.cpu().numpy(),
        }
        snapshots = {
            f"snapshot{index}": {name: value.cpu().numpy() for name, value in net.state_dict().items()}
            for index, net in enumerate(self._snapshots)
        }
        states = self._env.get_state()
        games = {name: states[name] for name in states.dtype.names or ()}
        return {**network_state(self._net, self._optimiser), **snapshots, "games": games, "run": run_state}

    def _resume(self) -> bool:
        """Load the last checkpoint; return whether there is one."""
        parts = load_checkpoint(self.folder / CHECKPOINT)
        if parts is None:
            return False
        with restoring(self.folder / CHECKPOINT):
            run_state = parts["run"]
            self.set_run_state(run_state)
            restore_network(parts, self._net, self._optimiser)
            for index in range(run_state["snapshots"]):
                self._snapshots.append(deepcopy(self._net).requires_grad_(False))
                weights = {name: torch.from_numpy(array) for name, array in parts[f"snapshot{index}"].items()}
                self._snapshots[-1].load_state_dict(weights)
            states = self._env.get_state()
            for name in states.dtype.names or ():
                states[name] = parts["games"][name]
            self._env.set_state(states)
            self._opening_plies = torch.from_numpy(run_state["opening_plies"]).to(self.device)
            self._generator.set_state(torch.from_numpy(run_state["generator"]))
            self._rng.bit_generator.state = run_state["rng"]
            self._snapshots_taken = run_state["snapshots_taken"]
        return True
