"""`TensorPPO`: PPO by self-play in one file, all of it on one device – games, network, rollouts and updates are tensors.

Tens of thousands of games go on in step in a `TorchVectorEnv`; on a GPU nothing is copied to the host but a few figures an update.
Turns strictly alternate, passes included, so the next value is the other side's and γ = −1: one network learns both sides. In a
share of the games one side is a past self: a frozen network that moves in a slice of its own. What moves were worth
(`advantages`), what is learnt from them (`PpoLoss`), how a move is drawn (`TensorPPO._move`), and the run in its folder, which has

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

from models.compiling import TorchCompiled
from reversi_env.atomic_files import write_atomically
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.extras import extra_libraries
from reversi_env.seeding import derive_seed
from train.checkpoints import (
    State,
    check_same_device,
    games_state,
    load_checkpoint,
    network_state,
    put_games,
    restore_network,
    save_checkpoint,
)
from train.fitting.fit import checked_device
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import ExactSet
from train.rl.figures import training_figure
from train.rl.files import SavedPolicy
from train.rl.ladder import Ladder, elo_text, flat_row
from train.rl.network import PolicyValueNet, masked, turned, views
from train.rl.options import RlOptions
from train.rl.players import BatchPolicyPlayer
from train.run import CHECKPOINT, Run, write_csv

with extra_libraries():
    import torch
    from torch import Tensor, nn

POLICY, LOG, EVALUATIONS, CURVE = "policy.safetensors", "log.csv", "evaluations.csv", "curve.svg"
#: Seconds between two checkpoints, at least.
CHECKPOINT_SECONDS = 10.0
#: A position is worth to one side what it costs the other, and they take turns.
GAMMA = -1.0
#: How far an update may go from the policy that played, weight of the value's error, and the longest gradient followed as it is.
CLIP, VALUE_WEIGHT, LONGEST = 0.2, 0.5, 0.5
#: Figures of an update, as `PpoLoss` gives them.
FIGURES = ("loss", "policy_loss", "value_loss", "entropy", "kl", "clipped")


class Moves(NamedTuple):
    """Moves of all games, or a choice of them: tensors with equal leading axes.

    ``discs`` and ``masks``: the positions, seen by the side to move; ``actions``, and how likely they were (``likely``,
    logarithms); ``values``: what the network expected; ``counts``: 1 where the network has moved, 0 where a past self or the
    opening's lots have. After the rollout ``advantages`` (how much better than expected) and ``returns`` (what the value should
    have been) are known.
    """

    discs: Tensor
    masks: Tensor
    actions: Tensor
    likely: Tensor
    values: Tensor
    counts: Tensor
    advantages: Tensor
    returns: Tensor

    @classmethod
    def empty(cls, plies: int, games: int, size: int, device: torch.device) -> Moves:
        """Memory for so many plies of so many games."""

        def of(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((plies, games, *shape), dtype=dtype, device=device)

        boards = of(torch.uint8, 2, size, size), of(torch.bool, size * size + 1)
        return cls(*boards, of(torch.int64), *(of(torch.float32) for _ in range(5)))


def advantages(rewards: Tensor, ends: Tensor, values: Tensor, last_value: Tensor, gae_lambda: float) -> Tensor:
    """Generalised advantages, ``(plies, games)``: rewards of the side that moved, and *ends*, 1 where its move ended the game.

    *values*: of the positions before the moves, *last_value* of those after the last, each for its side to move.
    """
    found, following, worth = torch.empty_like(values), torch.zeros_like(last_value), last_value
    for ply in reversed(range(len(values))):
        goes_on = GAMMA * (1.0 - ends[ply])
        following = rewards[ply] + goes_on * worth - values[ply] + gae_lambda * goes_on * following
        found[ply], worth = following, values[ply]
    return found


class PpoLoss(nn.Module):
    """PPO's clipped loss of a batch of `Moves`, and its `FIGURES`."""

    def __init__(self, net: PolicyValueNet, entropy_coefficient: float) -> None:
        super().__init__()
        self.net, self._entropy_coefficient = net, entropy_coefficient

    def forward(self, batch: Moves) -> tuple[Tensor, Tensor]:
        """The mean over the moves that count."""
        numbers, values = self.net(batch.discs, batch.masks)
        logs = torch.log_softmax(masked(numbers, batch.masks), 1)
        change = logs.gather(1, batch.actions.unsqueeze(1)).squeeze(1) - batch.likely
        ratio, share = change.exp(), batch.counts / batch.counts.sum().clamp(min=1.0)
        gains = torch.minimum(
            batch.advantages * ratio, batch.advantages * ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
        )  # nothing is gained by going further than CLIP
        policy_loss = -(share * gains).sum()
        value_loss = (share * (values - batch.returns).square()).sum()
        entropy = -(share * (logs.exp() * logs).sum(1)).sum()
        loss = policy_loss + VALUE_WEIGHT * value_loss - self._entropy_coefficient * entropy
        kl, clipped = (share * (ratio - 1.0 - change)).sum(), (share * ((ratio - 1.0).abs() > CLIP)).sum()
        return loss, torch.stack([loss, policy_loss, value_loss, entropy, kl, clipped]).detach()


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
            with Run(self.folder, self.options, free=("steps",)):
                self._began = self._saved_at = time.perf_counter()
                self.set_up()
                resumed = self._resume()
                if not resumed:
                    self._evaluate()
                while self.steps < self.options.steps:
                    self._update()
        finally:
            torch.backends.cudnn.deterministic = before

    # --- the games --------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Games, network and optimiser as they begin, and memory for a rollout."""
        options, device = self.options, self.device
        self._tell("compiling")
        self._env = TorchVectorEnv(options.envs, device=device, size=options.size, variant=options.variant)
        self._env.reset(seed=derive_seed(options.seed))  # game i has the number i added to it
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            net = PolicyValueNet(options.size, options.architecture)
        net.trunk.half_precision = options.precision == "bfloat16"
        self._net = net.to(device)
        self._adam = torch.optim.Adam(self._net.parameters(), options.learning_rate, eps=1e-5, fused=self._is_gpu)
        self._generator = torch.Generator(device).manual_seed(options.seed)
        self._lots = np.random.default_rng([options.seed, 1])
        self._past: list[PolicyValueNet] = []  # the oldest first
        self._joined = 0  # past selves so far, those that are gone among them
        # a game is always seen under the same symmetry, and its past self, if it has one, always has the same colour
        numbers = torch.arange(options.envs, device=device)
        self._views = torch.from_numpy(views(self.rules)).to(device)[numbers % 8 if options.symmetric else numbers * 0]
        self._past_colour = (numbers // 8 % 2).to(torch.uint8)
        self._random_plies = self._drawn_plies()
        self._moves = Moves.empty(options.rollout, options.envs, options.size, device)
        self._rewards, self._ends = (torch.zeros_like(self._moves.values) for _ in range(2))
        loss = PpoLoss(self._net, options.entropy_coefficient)
        self._answers: Any = TorchCompiled(self._net, deterministic=True) if self._compiled else self._net
        self._loss: Any = TorchCompiled(loss, deterministic=True) if self._compiled else loss

    def _drawn_plies(self) -> Tensor:
        """How many random plies a game begins with, for each game."""
        most, games = self.options.plies + 1, (self.options.envs,)
        return torch.randint(most, games, generator=self._generator, device=self.device)

    @torch.no_grad()
    def play(self) -> None:
        """A rollout: so many moves in every game, into `_moves`. Nothing waits for the device."""
        for ply in range(self.options.rollout):
            self._move(ply)
        moves, seen = self._moves, turned(self._env.observations, self._env.infos["action_mask"], self._views)
        last_value = self._answers(*seen)[1]
        found = advantages(self._rewards, self._ends, moves.values, last_value, self.options.gae_lambda)
        moves.returns.copy_(moves.values + found)
        total = moves.counts.sum().clamp(min=1.0)
        mean = (moves.counts * found).sum() / total
        spread = ((moves.counts * (found - mean).square()).sum() / total).sqrt()
        moves.advantages.copy_((found - mean) / (spread + 1e-8))

    def _move(self, ply: int) -> None:
        """One move in every game, drawn from the policy of whoever is to move."""
        infos, moves = self._env.infos, self._moves
        discs, mask = turned(self._env.observations, infos["action_mask"], self._views)
        numbers, values = self._answers(discs, mask)
        own, numbers = self._with_past_selves(numbers, discs, mask, infos["to_move"])
        opening = self._random_plies > 0
        numbers = masked(numbers.masked_fill(opening.unsqueeze(1), 0.0), mask)
        logs = torch.log_softmax(numbers, 1)
        lots = torch.empty_like(logs).exponential_(generator=self._generator).clamp_(min=1e-20)
        actions = (logs - lots.log()).argmax(1, keepdim=True)  # a draw from the policy: the largest with Gumbel noise
        moves.discs[ply], moves.masks[ply], moves.actions[ply] = discs, mask, actions.squeeze(1)
        moves.likely[ply], moves.values[ply] = logs.gather(1, actions).squeeze(1), values
        moves.counts[ply] = own & ~opening
        _, self._rewards[ply], ended, _, _ = self._env.step(self._views.gather(1, actions).squeeze(1))
        self._ends[ply] = ended
        self._random_plies = torch.where(ended, self._drawn_plies(), (self._random_plies - 1).clamp(min=0))

    def _with_past_selves(self, numbers: Tensor, discs: Tensor, mask: Tensor, to_move: Tensor) -> tuple[Tensor, Tensor]:
        """Where the network itself moves, and the numbers of all actions, with those of past selves where they do."""
        own = torch.ones_like(to_move, dtype=torch.bool)
        for number, net in enumerate(self._past):
            rows = self._slice(number)
            own[rows] = to_move[rows] != self._past_colour[rows]
            theirs = net(discs[rows], mask[rows])[0]
            numbers[rows] = torch.where(own[rows].unsqueeze(1), numbers[rows], theirs)
        return own, numbers

    def _slice(self, number: int) -> slice:
        """The games of a past self, by its place in the pool."""
        each = int(self.options.envs * self.options.past_share) // self.options.pool
        return slice(number * each, (number + 1) * each)

    # --- learning ---------------------------------------------------------------------------------

    def _update(self) -> None:
        """Play, learn, and do what is due."""
        began, options = time.perf_counter(), self.options
        self.play()
        figures = self.learn()
        self.steps += options.envs * options.rollout
        told = dict(zip(FIGURES, figures.tolist(), strict=True))  # waits for the device
        seconds = time.perf_counter() - began
        self.learning_seconds += seconds
        rate = options.envs * options.rollout / seconds
        self.log.append({"steps": self.steps, **told, "seconds": round(self.elapsed, 3), "steps_per_second": rate})
        if self.steps // options.snapshot > self._joined:
            self.join()
        end = self.steps >= options.steps
        due = end or self.steps - self.evaluations[-1]["steps"] >= options.evaluate
        if due:
            self._evaluate()
        if end or due or time.perf_counter() - self._saved_at >= CHECKPOINT_SECONDS:
            self.save()
        self._tell("learning")

    def learn(self) -> Tensor:
        """Some gradients on the rollout; the means of the figures over them."""
        options, total = self.options, torch.zeros(len(FIGURES), device=self.device)
        moves = Moves(*(column.flatten(0, 1) for column in self._moves))
        count = len(moves.actions)
        parts = max(1, count // options.batch_size)
        for group in self._adam.param_groups:  # the rate falls to a tenth
            group["lr"] = options.learning_rate * (1.0 - 0.9 * min(1.0, self.steps / options.steps))
        for _ in range(options.epochs):
            order = torch.randperm(count, generator=self._generator, device=self.device)
            for rows in order[: count // parts * parts].view(parts, -1):
                loss, figures = self._loss(Moves(*(column[rows] for column in moves)))
                self._adam.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self._net.parameters(), LONGEST)
                self._adam.step()
                total += figures
        return total / (parts * options.epochs)

    def device_done(self) -> None:
        """Wait until the device has done all that it was asked to."""
        if self._is_gpu:
            torch.cuda.synchronize(self.device)

    def join(self) -> None:
        """Freeze the network as it is as a past self; if there are too many, one of the older half goes by lot."""
        self._joined = self.steps // self.options.snapshot
        self._past.append(self._frozen())
        if len(self._past) > self.options.pool:
            del self._past[int(self._lots.integers((self.options.pool + 1) // 2))]

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
            "lots": self._lots.bit_generator.state,
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
        self._lots.bit_generator.state = told["lots"]
        self.steps, self.seconds, self.learning_seconds = told["steps"], told["seconds"], told["learning_seconds"]
        self.evaluations, self.log, self._joined = told["evaluations"], told["log"], told["joined"]
        return True
