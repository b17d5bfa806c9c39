"""`TensorPPO`: PPO by self-play in one file, all of it on one device – games, network, rollouts and updates are tensors.

Tens of thousands of games go on in step in a `TorchVectorEnv`; on a GPU nothing is copied to the host but a few figures an update.
Turns strictly alternate, passes included, so the next value is the other side's and γ = −1: one network learns both sides. In a
share of the games one side is a past self: a frozen network that moves in its own slice of the games. Names follow CleanRL's
ppo.py. Advantages (`gae`), the loss (`PpoLoss`), sampling (`TensorPPO._step`), and the run in its folder, which has

* ``policy.safetensors``: the policy as it is, for the agent ``rl:FOLDER/policy.safetensors``;
* ``log.csv``: one line an update; ``evaluations.csv`` and ``curve.svg``: the ladder, and solved endgames;
* ``run.json``: the options; ``checkpoint.safetensors``: where the training is.

Stopped in any way, the same call goes on after the last checkpoint, and ends as if nothing had happened.
"""

from __future__ import annotations

import copy
import time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.policy.files import SavedPolicy
from models.policy.net import PolicyValueNet, masked, turned, views
from models.residual.inference import TorchCompiled
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.errors import extra_libraries
from reversi_env.options import derive_seed
from reversi_env.storage.atomic import write_atomically
from train.arena.network_players import BatchPolicyPlayer
from train.evaluation.endgames import EndgameOptions, noisy_endgames
from train.evaluation.exact_set import ExactSet
from train.evaluation.ladder import Ladder, elo_text, flat_row
from train.fitting.fit import checked_device
from train.jobs.checkpoints import (
    State,
    check_same_device,
    games_state,
    load_checkpoint,
    network_state,
    put_games,
    restore_network,
    save_checkpoint,
)
from train.jobs.logs import write_csv
from train.jobs.run import CHECKPOINT, Run
from train.rl.maskable_ppo import training_figure
from train.rl.options import RlOptions

with extra_libraries():
    import torch
    from torch import Tensor, nn

POLICY, LOG, EVALUATIONS, CURVE = "policy.safetensors", "log.csv", "evaluations.csv", "curve.svg"
#: Seconds between two checkpoints, at least.
CHECKPOINT_SECONDS = 10.0
#: The value of a position for one side is minus that for the other, and they take turns.
GAMMA = -1.0
#: Clip range of the ratio, coefficient of the value loss, and maximum norm of a gradient.
CLIP_COEF, VF_COEF, MAX_GRAD_NORM = 0.2, 0.5, 0.5
#: Metrics of an update, as `PpoLoss` returns them: columns of the log.
METRICS = ("loss", "policy_loss", "value_loss", "entropy", "kl", "clipped")


class Rollout(NamedTuple):
    """Transitions of all environments, or a minibatch of them: tensors with equal leading axes.

    ``obs`` and ``masks``: observations and action masks of the side to move; ``actions`` and their ``log_probs``; ``values``: of
    the network; ``loss_mask``: 1 where the network has moved, 0 where a past self has, or an opening at random. ``advantages`` and
    ``returns`` are known after the rollout.
    """

    obs: Tensor
    masks: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    loss_mask: Tensor
    advantages: Tensor
    returns: Tensor

    @classmethod
    def empty(cls, num_steps: int, num_envs: int, size: int, device: torch.device) -> Rollout:
        """Memory for so many steps of so many environments."""

        def of(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((num_steps, num_envs, *shape), dtype=dtype, device=device)

        boards = of(torch.uint8, 2, size, size), of(torch.bool, size * size + 1)
        return cls(*boards, of(torch.int64), *(of(torch.float32) for _ in range(5)))


def gae(rewards: Tensor, dones: Tensor, values: Tensor, last_value: Tensor, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates, ``(num_steps, num_envs)``.

    *rewards* are those of the side that moved, *dones* 1 where its move ended the game. *values* are of the positions before the
    moves, *last_value* of those after the last, each for its side to move.
    """
    advantages, last_gae, next_value = torch.empty_like(values), torch.zeros_like(last_value), last_value
    for step in reversed(range(len(values))):
        discount = GAMMA * (1.0 - dones[step])
        last_gae = rewards[step] + discount * next_value - values[step] + gae_lambda * discount * last_gae
        advantages[step], next_value = last_gae, values[step]
    return advantages


class PpoLoss(nn.Module):
    """PPO's clipped loss of a minibatch, and its `METRICS`."""

    def __init__(self, net: PolicyValueNet, entropy_coefficient: float) -> None:
        super().__init__()
        self.net, self._entropy_coefficient = net, entropy_coefficient

    def forward(self, batch: Rollout) -> tuple[Tensor, Tensor]:
        """The mean over the transitions of the loss mask."""
        logits, new_values = self.net(batch.obs, batch.masks)
        log_probs = torch.log_softmax(masked(logits, batch.masks), 1)
        log_ratio = log_probs.gather(1, batch.actions.unsqueeze(1)).squeeze(1) - batch.log_probs
        ratio, weight = log_ratio.exp(), batch.loss_mask / batch.loss_mask.sum().clamp(min=1.0)
        surrogate = torch.minimum(
            batch.advantages * ratio, batch.advantages * ratio.clamp(1.0 - CLIP_COEF, 1.0 + CLIP_COEF)
        )
        pg_loss = -(weight * surrogate).sum()
        v_loss = (weight * (new_values - batch.returns).square()).sum()
        entropy = -(weight * (log_probs.exp() * log_probs).sum(1)).sum()
        loss = pg_loss + VF_COEF * v_loss - self._entropy_coefficient * entropy
        approx_kl = (weight * (ratio - 1.0 - log_ratio)).sum()
        clipfrac = (weight * ((ratio - 1.0).abs() > CLIP_COEF)).sum()
        return loss, torch.stack([loss, pg_loss, v_loss, entropy, approx_kl, clipfrac]).detach()


class TensorPPO:
    """A run in *folder* on *device*, ``cpu`` or ``cuda``. The folder remembers the options; others raise a `TrainError`.

    *compiled*: let torch compile network and loss; by default on a GPU.
    """

    def __init__(
        self,
        folder: Path,
        options: RlOptions,
        *,
        device: str = "cpu",
        threads: int = 1,
        regret: bool = True,
        compiled: bool | None = None,
        command: str = "",
        progress: Any = lambda doing, steps, total, note: None,
    ) -> None:
        self.folder, self.options, self.rules, self.policy = folder, options, options.rules, folder / POLICY
        self.device, self.threads, self.command, self.progress = checked_device(device), threads, command, progress
        self._regret, self._is_gpu = regret, self.device.type == "cuda"
        self._compiled = self._is_gpu if compiled is None else compiled
        self.steps, self.seconds, self.learning_seconds = 0, 0.0, 0.0
        self.evaluations: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self._began = self._saved_at = time.perf_counter()

    def run(self) -> None:
        """Train to the end; nothing where nothing is left to do."""
        torch.set_num_threads(self.threads)
        before = torch.backends.cudnn.deterministic
        torch.backends.cudnn.deterministic = True  # the same seed, the same run
        try:
            with Run(self.folder, self.options, changeable=("steps",)):
                self._began = self._saved_at = time.perf_counter()
                self.set_up()
                resumed = self._resume()
                if not resumed:
                    self._evaluate()
                while self.steps < self.options.steps:
                    self._iteration()
        finally:
            torch.backends.cudnn.deterministic = before

    # --- the games --------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Games, network and optimiser as they begin, and memory for a rollout."""
        options, device = self.options, self.device
        self._tell("compiling")
        self._env = TorchVectorEnv(options.num_envs, device=device, size=options.size, variant=options.variant)
        self._env.reset(seed=derive_seed(options.seed))  # game i has the number i added to it
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = PolicyValueNet(options.size, options.architecture)
        net.trunk.half_precision = options.precision == "bfloat16"
        self._net = net.to(device)
        self._adam = torch.optim.Adam(self._net.parameters(), options.learning_rate, eps=1e-5, fused=self._is_gpu)
        self._generator = torch.Generator(device).manual_seed(options.seed)
        self._rng = np.random.default_rng([options.seed, 1])
        self._past: list[PolicyValueNet] = []  # the oldest first
        self._joined = 0  # past selves so far, those that are gone among them
        # a game is always seen under the same symmetry, and its past self, if it has one, always has the same colour
        indices = torch.arange(options.num_envs, device=device)
        self._views = torch.from_numpy(views(self.rules)).to(device)[indices % 8 if options.symmetric else indices * 0]
        self._past_colour = (indices // 8 % 2).to(torch.uint8)
        self._random_plies = self._drawn_plies()
        self._rollout = Rollout.empty(options.num_steps, options.num_envs, options.size, device)
        self._rewards, self._dones = (torch.zeros_like(self._rollout.values) for _ in range(2))
        loss = PpoLoss(self._net, options.ent_coef)
        self._logits_and_values: Any = TorchCompiled(self._net, deterministic=True) if self._compiled else self._net
        self._loss: Any = TorchCompiled(loss, deterministic=True) if self._compiled else loss

    def _drawn_plies(self) -> Tensor:
        """How many random plies a game begins with, for each game."""
        most, games = self.options.plies + 1, (self.options.num_envs,)
        return torch.randint(most, games, generator=self._generator, device=self.device)

    @torch.no_grad()
    def collect_rollout(self) -> None:
        """Play so many steps in every environment, into `_rollout`. Nothing waits for the device."""
        for step in range(self.options.num_steps):
            self._step(step)
        rollout, next_obs = self._rollout, turned(self._env.observations, self._env.infos["action_mask"], self._views)
        last_value = self._logits_and_values(*next_obs)[1]
        advantages = gae(self._rewards, self._dones, rollout.values, last_value, self.options.gae_lambda)
        rollout.returns.copy_(rollout.values + advantages)
        total = rollout.loss_mask.sum().clamp(min=1.0)
        mean = (rollout.loss_mask * advantages).sum() / total
        std = ((rollout.loss_mask * (advantages - mean).square()).sum() / total).sqrt()
        rollout.advantages.copy_((advantages - mean) / (std + 1e-8))

    def _step(self, step: int) -> None:
        """One move in every environment, sampled from the policy of the player to move."""
        infos, rollout = self._env.infos, self._rollout
        obs, mask = turned(self._env.observations, infos["action_mask"], self._views)
        logits, values = self._logits_and_values(obs, mask)
        own, logits = self._with_past_selves(logits, obs, mask, infos["to_move"])
        opening = self._random_plies > 0
        logits = masked(logits.masked_fill(opening.unsqueeze(1), 0.0), mask)
        log_probs = torch.log_softmax(logits, 1)
        exponential_noise = torch.empty_like(log_probs).exponential_(generator=self._generator).clamp_(min=1e-20)
        actions = (log_probs - exponential_noise.log()).argmax(
            1, keepdim=True
        )  # a sample: the largest with Gumbel noise
        rollout.obs[step], rollout.masks[step], rollout.actions[step] = obs, mask, actions.squeeze(1)
        rollout.log_probs[step], rollout.values[step] = log_probs.gather(1, actions).squeeze(1), values
        rollout.loss_mask[step] = own & ~opening
        _, self._rewards[step], done, _, _ = self._env.step(self._views.gather(1, actions).squeeze(1))
        self._dones[step] = done
        self._random_plies = torch.where(done, self._drawn_plies(), (self._random_plies - 1).clamp(min=0))

    def _with_past_selves(self, logits: Tensor, obs: Tensor, mask: Tensor, to_move: Tensor) -> tuple[Tensor, Tensor]:
        """Where the network itself moves, and the logits of all actions, with those of past selves where they move."""
        own = torch.ones_like(to_move, dtype=torch.bool)
        for index, net in enumerate(self._past):
            rows = self._slice(index)
            own[rows] = to_move[rows] != self._past_colour[rows]
            past_logits = net(obs[rows], mask[rows])[0]
            logits[rows] = torch.where(own[rows].unsqueeze(1), logits[rows], past_logits)
        return own, logits

    def _slice(self, number: int) -> slice:
        """The games of a past self, by its place in the pool."""
        each = int(self.options.num_envs * self.options.past_self_share) // self.options.pool_size
        return slice(number * each, (number + 1) * each)

    # --- learning ---------------------------------------------------------------------------------

    def _iteration(self) -> None:
        """Collect a rollout, update the network, and evaluate and save when that is due."""
        began, options = time.perf_counter(), self.options
        self.collect_rollout()
        metrics = self.update()
        self.steps += options.num_envs * options.num_steps
        told = dict(zip(METRICS, metrics.tolist(), strict=True))  # waits for the device
        seconds = time.perf_counter() - began
        self.learning_seconds += seconds
        rate = options.num_envs * options.num_steps / seconds
        self.log.append({"steps": self.steps, **told, "seconds": round(self.elapsed, 3), "steps_per_second": rate})
        if self.steps // options.snapshot_every > self._joined:
            self.add_snapshot()
        end = self.steps >= options.steps
        due = end or self.steps - self.evaluations[-1]["steps"] >= options.evaluate
        if due:
            self._evaluate()
        if end or due or time.perf_counter() - self._saved_at >= CHECKPOINT_SECONDS:
            self.save()
        self._tell("learning")

    def update(self) -> Tensor:
        """Take gradient steps on minibatches of the rollout; the means of the metrics over them."""
        options, total = self.options, torch.zeros(len(METRICS), device=self.device)
        batch = Rollout(*(column.flatten(0, 1) for column in self._rollout))
        batch_size = len(batch.actions)
        num_minibatches = max(1, batch_size // options.batch_size)
        for group in self._adam.param_groups:  # the rate falls to a tenth
            group["lr"] = options.learning_rate * (1.0 - 0.9 * min(1.0, self.steps / options.steps))
        for _ in range(options.epochs):
            indices = torch.randperm(batch_size, generator=self._generator, device=self.device)
            for rows in indices[: batch_size // num_minibatches * num_minibatches].view(num_minibatches, -1):
                loss, metrics = self._loss(Rollout(*(column[rows] for column in batch)))
                self._adam.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self._net.parameters(), MAX_GRAD_NORM)
                self._adam.step()
                total += metrics
        return total / (num_minibatches * options.epochs)

    def synchronise(self) -> None:
        """Wait until the device has done all that it was asked to."""
        if self._is_gpu:
            torch.cuda.synchronize(self.device)

    def add_snapshot(self) -> None:
        """Freeze the network as it is as a past self; if there are too many, one of the older half goes at random."""
        self._joined = self.steps // self.options.snapshot_every
        self._past.append(self._frozen())
        if len(self._past) > self.options.pool_size:
            del self._past[int(self._rng.integers((self.options.pool_size + 1) // 2))]

    def _frozen(self) -> PolicyValueNet:
        return copy.deepcopy(self._net).requires_grad_(False).eval()

    # --- how good it is ---------------------------------------------------------------------------

    def _evaluate(self) -> None:
        self._tell("evaluating")
        player = BatchPolicyPlayer(self._frozen(), symmetric=True)
        found = self._ladder.measure(player).as_dict()
        if self._regret:
            judged = self._truth.batch_regret(player).overall
            found |= {"regret": round(judged.regret, 4), "optimal": round(judged.optimal, 4)}
        times = {"seconds": round(self.elapsed, 1), "learning_seconds": round(self.learning_seconds, 1)}
        self.evaluations.append({"steps": self.steps, **times, "steps_per_second": round(self.rate), **found})
        if len(self.evaluations) > 1:
            game = f"{self.rules.size}×{self.rules.size} {self.rules.variant}, PPO on tensors"
            training_figure(self.evaluations, game).save(self.folder / CURVE, optional=True)

    @cached_property
    def _ladder(self) -> Ladder:
        return Ladder(self.rules, self.options.games, self.options.seed)

    @cached_property
    def _truth(self) -> ExactSet:
        return noisy_endgames(EndgameOptions(size=self.rules.size, variant=self.rules.variant))

    @property
    def elapsed(self) -> float:
        """Seconds of this run, all its parts together."""
        return self.seconds + time.perf_counter() - self._began

    @property
    def rate(self) -> float:
        """Environment steps (plies in all games) a second of playing and learning, evaluations left out."""
        return self.steps / self.learning_seconds if self.learning_seconds else 0.0

    def _tell(self, doing: str) -> None:
        elo = f"{elo_text(self.evaluations[-1])}, " if self.evaluations else ""
        rate = f"{elo}{self.rate:,.0f} steps/s" if self.steps else ""
        self.progress(doing, self.steps, self.options.whole_steps, rate)

    # --- files ------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write everything, the checkpoint last; what a reader finds is always whole."""
        record = {
            "training": self.options.algorithm,
            "command": self.command,
            "options": self.options.as_dict(),
            "steps": self.steps,
            "seconds": round(self.elapsed, 1),
            "device": self.device.type,
            "standing": self.evaluations[-1] if self.evaluations else None,
        }
        write_atomically(self.policy, SavedPolicy(self.rules, self._net, record).to_bytes())
        write_csv(self.folder / LOG, self.log)
        write_csv(self.folder / EVALUATIONS, [flat_row(row) for row in self.evaluations])
        save_checkpoint(self.folder / CHECKPOINT, self._state())
        self._saved_at = time.perf_counter()

    def _state(self) -> dict[str, State]:
        told: State = {
            "device": self.device.type,
            "steps": self.steps,
            "seconds": self.elapsed,
            "learning_seconds": self.learning_seconds,
            "evaluations": self.evaluations,
            "log": self.log,
            "joined": self._joined,
            "past": len(self._past),
            "lots": self._rng.bit_generator.state,
            "generator": self._generator.get_state().numpy(),
            "random_plies": self._random_plies.cpu().numpy(),
        }
        past = {
            f"past{number}": {name: value.cpu().numpy() for name, value in net.state_dict().items()}
            for number, net in enumerate(self._past)
        }
        games = games_state(self._env.get_state())
        return {**network_state(self._net, self._adam), **past, "games": games, "run": told}

    def _resume(self) -> bool:
        """Go to the last checkpoint; whether there is one."""
        parts = load_checkpoint(self.folder / CHECKPOINT)
        if parts is None:
            return False
        told = parts["run"]
        check_same_device(self.folder, told["device"], self.device.type)
        restore_network(parts, self._net, self._adam)
        for number in range(told["past"]):
            self._past.append(self._frozen())
            weights = {name: torch.from_numpy(array) for name, array in parts[f"past{number}"].items()}
            self._past[-1].load_state_dict(weights)
        self._env.set_state(put_games(parts["games"], self._env.get_state()))
        self._random_plies = torch.from_numpy(told["random_plies"]).to(self.device)
        self._generator.set_state(torch.from_numpy(told["generator"]))
        self._rng.bit_generator.state = told["lots"]
        self.steps, self.seconds, self.learning_seconds = told["steps"], told["seconds"], told["learning_seconds"]
        self.evaluations, self.log, self._joined = told["evaluations"], told["log"], told["joined"]
        return True
