"""`Training`: one run of reinforcement learning in one folder, from the first step to a policy that plays.

The agent plays against baselines and past selves (`SelfPlayPool`), learns by MaskablePPO, and is measured against the ladder
and, in solved endgames, against the truth. The folder has

* ``policy.safetensors``: the policy as it is, for the agent ``rl:FOLDER/policy.safetensors``; ``model.zip``: the model for
  stable-baselines3;
* ``log.csv``: one line an update; ``evaluations.csv`` and ``curve.svg``: the ladder; ``regret.csv`` and ``regret.svg``: solved
  endgames;
* ``tensorboard/``, where tensorboard is installed;
* ``run.json``: the options; ``checkpoint.safetensors`` and ``pool/``, the past selves: where the training is.

A run that was stopped in any way goes on after its last checkpoint, and on the same machine's CPU ends with the same policy, curves
and log, but for wall times. The checkpoint is written last: when there is one, everything else is at least as new.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from models.policy.files import SavedPolicy, read_policy
from models.policy.net import PolicyValueNet
from reversi_env.errors import extra_libraries
from reversi_env.storage.atomic import write_atomically
from search import agents
from train.arena.network_players import BatchPolicy, BatchPolicyPlayer
from train.charts import BLUE, COLOURS, Figure, labels, panels
from train.evaluation.endgames import EndgameOptions, noisy_endgames
from train.evaluation.ladder import Ladder, elo_text, flat_row
from train.jobs.checkpoints import (
    State,
    check_same_device,
    load_checkpoint,
    network_state,
    restore_network,
    save_checkpoint,
)
from train.jobs.logs import write_csv
from train.jobs.run import CHECKPOINT, Run, as_hashes
from train.rl.board_policy import BoardPolicy, frozen, net_of
from train.rl.callbacks import RegretCallback
from train.rl.opponents import SelfPlayPool
from train.rl.options import RlOptions
from train.rl.training_env import TrainingEnv

with extra_libraries():
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter, Logger

POLICY, MODEL, LOG, EVALUATIONS = "policy.safetensors", "model.zip", "log.csv", "evaluations.csv"
CURVE, TENSORBOARD = "curve.svg", "tensorboard"
SELVES = "pool"
#: Minimum seconds between two checkpoints; one costs some hundredths of a second.
CHECKPOINT_SECONDS = 5.0
#: What stable-baselines3 counts from the last start, and not from the first.
ITERATIONS = "time/iterations"
#: Hears what a training is doing, its steps, of how many, and how strong it was last.
Progress = Callable[[str, int, int, str], None]


class Training(BaseCallback):
    """A run in *folder*; *device* is where the network is. The folder remembers the options; others raise a `TrainError`.

    stable-baselines3's algorithm calls it between two updates, where nothing is half done. ``policy`` is the file that it leaves.
    """

    model: Any

    def __init__(
        self,
        folder: Path,
        options: RlOptions,
        *,
        device: str = "cpu",
        threads: int = 1,
        regret: bool = True,
        command: str = "",
        progress: Progress = lambda doing, steps, total, elo: None,
    ) -> None:
        super().__init__()
        self.folder, self.options, self.rules = folder, options, options.rules
        self.device, self.threads, self.progress, self._regret = device, threads, progress, regret
        self._command, self.policy = command, folder / POLICY
        self.evaluations: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self.seconds = 0.0  # of the parts before this one
        self._began = self._saved_at = time.perf_counter()
        self._looked = -1  # steps at the last look: a checkpoint is the end of one

    def run(self) -> None:
        """Train to the end; nothing where nothing is left to do."""
        with Run(self.folder, self.options, as_hashes(self._opponents()), changeable=("steps",)):
            self._train()

    def _opponents(self) -> dict[str, str]:
        """Hashes of the weights that the opponents' specs name."""
        found = dict[str, str]()
        for spec in self.options.opponents:
            with agents.make_agent(spec) as agent:
                found |= agent.content_hashes(self.rules)
        return found

    def _train(self) -> None:
        torch.set_num_threads(self.threads)
        self._began = time.perf_counter()
        self._tell("compiling", 0)
        options, seed = self.options, self.options.seed
        self.ladder = Ladder(self.rules, options.games, seed)
        self.pool = SelfPlayPool(options.opponents, self.rules, options.baseline_share, options.pool_size, seed)
        how: dict[str, Any] = {"plies": options.plies, "symmetric": options.symmetric, "seed": seed}
        self.env = TrainingEnv(options.num_envs, self.pool, **how)
        self.model = _model(options, self.env, self.device)
        resumed = self._resume()
        # regret first: the checkpoint at the end comes after everything else
        callbacks: list[BaseCallback] = [self._regret_callback()] if self._regret else []
        left = options.steps - self.model.num_timesteps
        if left > 0:
            # resetting the steps would begin all games again
            self.model.learn(left, callback=[*callbacks, self], reset_num_timesteps=not resumed)

    @property
    def steps(self) -> int:
        """Steps done."""
        return int(self.model.num_timesteps)

    @property
    def elapsed(self) -> float:
        """Seconds of this run, all its parts together."""
        return self.seconds + time.perf_counter() - self._began

    # --- between two updates ----------------------------------------------------------------------

    def _on_rollout_start(self) -> None:
        self._look()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._look(end=True)

    def _look(self, *, end: bool = False) -> None:
        """Between two updates: let a self join, evaluate, and write a checkpoint, each when it is due."""
        self.pool.renew(self.steps)
        if end or self.steps != self._looked:  # else it was done before the checkpoint that this part goes on from
            self._do_what_is_due(end)
        self._tell("learning", self.steps)

    def _do_what_is_due(self, end: bool) -> None:
        steps, options = self.steps, self.options
        self._looked = steps
        if not end and steps // options.snapshot_every > len(self.pool.selves):
            net, path = self._frozen(), self._self_path(len(self.pool.selves))
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, SavedPolicy(self.rules, net, {"steps": steps}).to_bytes())
            self.pool.add(net)
        due = not self.evaluations or steps - self.evaluations[-1]["steps"] >= options.evaluate
        evaluated = (due or end) and not (self.evaluations and self.evaluations[-1]["steps"] == steps)
        if evaluated:
            self._evaluate()
            self._draw()
        if end or evaluated or time.perf_counter() - self._saved_at >= CHECKPOINT_SECONDS:
            self.save()

    def save(self) -> None:
        """Write everything; what a reader finds is always whole."""
        write_atomically(self.folder / MODEL, self._model())
        write_atomically(self.policy, self._saved_policy().to_bytes())
        write_csv(self.folder / LOG, self.log)
        write_csv(self.folder / EVALUATIONS, [flat_row(row) for row in self.evaluations])
        told = {"seconds": self.elapsed, "evaluations": self.evaluations, "log": self.log}
        told["device"] = self.model.device.type
        parts = {**model_state(self.model), "games": self.env.state(), "pool": self.pool.state(), "told": told}
        save_checkpoint(self.folder / CHECKPOINT, parts)
        self._saved_at = time.perf_counter()

    # --- inside -----------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        self._tell("evaluating", self.steps)
        standing = self.ladder.measure(BatchPolicyPlayer(self._frozen(), symmetric=True))
        self.evaluations.append({"steps": self.steps, "seconds": round(self.elapsed, 1), **standing.as_dict()})
        if (elo := self.evaluations[-1]["elo"]) is not None:
            self.logger.record("ladder/elo", elo)
        for name, score in standing.scores.items():
            self.logger.record(f"ladder/{name}", score.score)

    def _draw(self) -> None:
        if len(self.evaluations) > 1:
            game = f"{self.rules.size}×{self.rules.size} {self.rules.variant}, {self.options.algorithm.upper()}"
            training_figure(self.evaluations, game).save(self.folder / CURVE, optional=True)

    def _resume(self) -> bool:
        """Go to the last checkpoint; whether there is one."""
        self._saved_at = time.perf_counter()
        self.model.set_logger(Logger(None, []))
        parts = load_checkpoint(self.folder / CHECKPOINT)
        if parts is not None:
            device = self.model.device.type
            check_same_device(self.folder, parts["told"].get("device", device), device)  # older ones do not know it
            self.pool.set_state(parts["pool"], [self._self(number) for number in range(parts["pool"]["selves"])])
            self.model._last_obs = self.env.set_state(parts["games"])
            restore_model(parts, self.model)  # the generators last: whoever makes a network draws from them
            told = parts["told"]
            self.seconds, self.evaluations, self.log = told["seconds"], told["evaluations"], told["log"]
            self._looked = self.steps
        for path in (self.folder / SELVES).glob("*.safetensors"):  # written after the checkpoint: they are made again
            if path.stem.isdigit() and int(path.stem) >= len(self.pool.selves):
                path.unlink()
        self.model.logger.output_formats = self._writers()
        return parts is not None

    def _self(self, number: int) -> PolicyValueNet:
        """A past self as it was."""
        net = read_policy(self._self_path(number)).net.to(self.device).requires_grad_(False)
        net.trunk.half_precision = self.options.precision == "bfloat16"
        return net

    def _self_path(self, number: int) -> Path:
        return self.folder / SELVES / f"{number:05d}.safetensors"

    def _frozen(self) -> PolicyValueNet:
        """A copy of the network as it is."""
        return frozen(net_of(self.model.policy))

    def _model(self) -> bytes:
        """The content of the file for stable-baselines3."""
        stream = io.BytesIO()
        self.model.save(stream, exclude=["env", "logger", "rollout_buffer"])
        return stream.getvalue()

    def _saved_policy(self) -> SavedPolicy:
        """The policy with its record."""
        record = {
            "training": self.options.algorithm,
            "command": self._command,
            "options": self.options.as_dict(),
            "steps": self.steps,
            "seconds": round(self.elapsed, 1),
            "device": self.device,
            "standing": self.evaluations[-1] if self.evaluations else None,
        }
        return SavedPolicy(self.rules, self._frozen(), record)

    def _writers(self) -> list[KVWriter]:
        writers: list[KVWriter] = [_Notes(self)]
        try:
            from stable_baselines3.common.logger import TensorBoardOutputFormat
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return writers
        board = TensorBoardOutputFormat(str(self.folder / TENSORBOARD))
        board.writer.close()
        # what a part of the run that was lost has written there is not shown
        board.writer = SummaryWriter(str(self.folder / TENSORBOARD), purge_step=self.steps or None)
        return [*writers, board]

    def _regret_callback(self) -> BaseCallback:
        self._tell("solving endgames", self.steps)
        positions = noisy_endgames(EndgameOptions(size=self.rules.size, variant=self.rules.variant))
        every = self.options.evaluate
        return RegretCallback(
            positions, self.folder, every, policy=lambda *boards: BatchPolicy(self._frozen(), symmetric=True)(*boards)
        )

    def _tell(self, doing: str, steps: int) -> None:
        elo = elo_text(self.evaluations[-1]) if self.evaluations else ""
        self.progress(doing, steps, self.options.whole_steps, elo)


class _Notes(KVWriter):
    """stable-baselines3's log lines for ours."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Keep one line."""
        numbers = {
            key: float(value)
            for key, value in key_values.items()
            if key != ITERATIONS and (isinstance(value, (int, float)) or hasattr(value, "item"))
        }
        self._training.log.append({"steps": self._training.steps, **numbers})

    def close(self) -> None:
        """Nothing is open."""


def _model(options: RlOptions, env: TrainingEnv, device: str) -> Any:
    shape = {"architecture": options.architecture.as_dict(), "half_precision": options.precision == "bfloat16"}
    rate = partial(_falling, options.learning_rate)
    return MaskablePPO(
        *(BoardPolicy, env),
        learning_rate=rate,
        gamma=1.0,
        n_steps=options.num_steps,
        batch_size=options.batch_size,
        n_epochs=options.epochs,
        ent_coef=options.ent_coef,
        gae_lambda=options.gae_lambda,
        seed=options.seed,
        device=device,
        policy_kwargs=shape,
    )


def _falling(rate: float, left: float) -> float:
    """Adam's step when *left* of the training is still to come: from *rate* to a tenth of it.

    The last rollout is played to its end, beyond the steps that were asked for: less than nothing is left then.
    """
    return rate * (0.1 + 0.9 * max(0.0, left))


# --- checkpoints -----------------------------------------------------------------------------------


with extra_libraries():
    import torch

#: Counters of stable-baselines3 that a training resumes from.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "_current_progress_remaining")


def model_state(model: Any) -> dict[str, State]:
    """Return the state of a model without its environment: network, counters, pending log values, global generators."""
    log, (kind, keys, *gaussian) = model.logger, np.random.get_state()
    told = {
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "episodes": list(model.ep_info_buffer or ()),
        # what the next line of the log will have: figures of the last update, and of an evaluation since
        "noted": {name: (float(value), log.name_to_excluded[name]) for name, value in log.name_to_value.items()},
        "started": np.asarray(model._last_episode_starts, np.uint8),
        "torch": torch.get_rng_state().numpy(),
        "numpy": np.asarray(keys),
        "gaussian": [str(kind), *gaussian],
    }
    return {**network_state(model.policy, model.policy.optimizer), "model": told}


def restore_model(parts: Mapping[str, State], model: Any) -> None:
    """Put a model with its environment, and the generators, back to where they were."""
    told = parts["model"]
    restore_network(parts, model.policy, model.policy.optimizer)
    for name, value in told["counters"].items():
        setattr(model, name, value)
    model.ep_info_buffer = deque(told["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    for name, (value, excluded) in told["noted"].items():
        model.logger.record(name, value, tuple(excluded))
    model._last_episode_starts = told["started"].astype(bool)
    torch.set_rng_state(torch.from_numpy(told["torch"]))
    kind, *gaussian = told["gaussian"]
    np.random.set_state((kind, told["numpy"], *gaussian))


# --- learning curves -------------------------------------------------------------------------------


def training_figure(evaluations: Sequence[Mapping[str, Any]], game: str, over: str = "steps, millions") -> Figure:
    """Points against each rung of the ladder, and Elo, over the steps of `Training.evaluations`, or whatever *over* says."""
    steps = [row["steps"] / (1e6 if over == "steps, millions" else 1) for row in evaluations]

    def draw(figure: Any) -> None:
        scores, elo = panels(figure, 2, (f"{game}: points a game", "Elo above random, 95 % interval"))
        for axis in (scores, elo):
            axis.set_xlabel(over)
        scores.set_ylim(0, 1.02)
        ends = []
        for colour, name in zip(COLOURS, evaluations[-1]["rungs"], strict=False):
            points = [row["rungs"][name]["points"] for row in evaluations]
            scores.plot(steps, points, color=colour)
            ends.append((steps[-1], points[-1], name, colour))
        labels(scores, ends)
        # An Elo that is not determined and an open end of its interval are None, and are not drawn.
        values, low, high = (
            [nan if row[key] is None else row[key] for row in evaluations] for key in ("elo", "elo_low", "elo_high")
        )
        elo.plot(steps, values, color=BLUE)
        elo.fill_between(steps, low, high, color=BLUE, alpha=0.2, linewidth=0)

    return Figure("curve", f"{game}: points against the ladder, and Elo.", draw)
