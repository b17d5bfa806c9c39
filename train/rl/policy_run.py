"""`PolicyRun`: the folder of a PPO run, with its options, policy, logs and evaluations."""

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from models.residual.net import PolicyNet, SavedResidual, symmetrised
from reversi_env.storage.atomic import write_atomically
from train.arena.network_players import ZeroPlayer
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ExactSet
from train.evaluation.ladder import Ladder, elo_text, flat_row, ladder_figure
from train.evaluation.options import EndgameOptions
from train.evaluation.regret_curve import CURVE as REGRET
from train.evaluation.regret_curve import PLOT, RegretCurve
from train.jobs.checkpoints import State, save_checkpoint
from train.jobs.logs import write_csv
from train.jobs.run import CHECKPOINT
from train.jobs.tensorboard import TensorBoard
from train.rl.options import PpoOptions

#: Minimum seconds between two checkpoints.
CHECKPOINT_SECONDS = 10.0
POLICY, LOG, EVALUATIONS, CURVE = "policy.safetensors", "log.csv", "evaluations.csv", "curve.svg"
TENSORBOARD = "tensorboard"
#: Attributes of a run that a checkpoint stores.
STATE = ("steps", "learning_seconds", "evaluations", "log")
#: Called with the activity, the steps done, their total, and a note for the progress line.
Progress = Callable[[str, int, int, str], None]


class PolicyRun:
    """A run in *folder*, which stores the options; different ones raise a `TrainError`. *command* is recorded in the policy.

    ``policy.safetensors`` is the current policy, for the agent ``rl:FILE``; ``log.csv`` has one line per update;
    ``evaluations.csv`` and ``curve.svg`` have the standings on the ladder, ``regret.csv`` and ``regret.svg`` the regret in solved
    endgames; ``tensorboard/`` has all metrics, if that library is installed; ``run.json`` the options; ``checkpoint.safetensors``
    the state, which is written last, so that all other files are at least as new.
    """

    def __init__(
        self,
        folder: Path,
        options: PpoOptions,
        *,
        threads: int = 1,
        regret: bool = True,
        command: str = "",
        progress: Progress = lambda doing, steps, total, note: None,
    ) -> None:
        self.folder, self.options, self.rules, self.policy = folder, options, options.rules, folder / POLICY
        self.threads, self.command, self.progress = threads, command, progress
        self.steps, self.learning_seconds = 0, 0.0
        self.seconds = 0.0  # of earlier parts of the run
        self.evaluations: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self._regret, self.tensorboard = regret, TensorBoard(folder / TENSORBOARD)
        self._started = self._saved_at = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds of all parts of the run together."""
        return self.seconds + time.perf_counter() - self._started

    @cached_property
    def ladder(self) -> Ladder:
        """The baselines that the policy is evaluated against."""
        return Ladder(self.rules, self.options.eval_games, self.options.seed)

    @cached_property
    def exact_set(self) -> ExactSet:
        """The solved endgames in which regret is measured."""
        return noisy_endgames(EndgameOptions(size=self.rules.size, variant=self.rules.variant))

    @property
    def rate(self) -> float:
        """Environment steps per second of rollouts and updates."""
        return self.steps / self.learning_seconds if self.learning_seconds else 0.0

    def evaluate(self, net: PolicyNet) -> None:
        """Play the ladder, measure the regret in solved endgames, and draw both curves."""
        self.report("evaluating")
        player = ZeroPlayer(symmetrised(net, self.rules), self.rules, net.entry.weight.device)
        times = {"seconds": round(self.elapsed, 1), "learning_seconds": round(self.learning_seconds, 1)}
        metrics = times | {"steps_per_second": round(self.rate)} | self.ladder.measure(player).as_dict()
        if self._regret:
            judgement = self.exact_set.batch_regret(player)
            curve = RegretCurve(self.folder / REGRET, self.exact_set, resumed_at=self.steps)
            curve.add(self.steps, judgement)
            curve.figure().save(self.folder / PLOT, optional=True)
            metrics |= {name: round(getattr(judgement.overall, name), 4) for name in ("regret", "optimal")}
        self.evaluations.append({"steps": self.steps, **metrics})
        self.tensorboard(self.steps, {f"evaluation/{name}": value for name, value in flat_row(metrics).items()})
        if len(self.evaluations) > 1:
            game = f"{self.rules.size}×{self.rules.size} {self.rules.variant}, PPO"
            ladder_figure(self.evaluations, game).save(self.folder / CURVE, optional=True)

    def report(self, doing: str) -> None:
        """Report progress, with the last Elo and the speed."""
        notes = [elo_text(self.evaluations[-1])] if self.evaluations else []
        notes += [f"{self.rate:,.0f} steps/s"] if self.steps else []
        self.progress(doing, self.steps, self.options.rounded_timesteps, ", ".join(notes))

    def checkpoint_is_due(self) -> bool:
        """Return whether the last checkpoint is at least `CHECKPOINT_SECONDS` old."""
        return time.perf_counter() - self._saved_at >= CHECKPOINT_SECONDS

    def save(self, net: PolicyNet, parts: dict[str, State]) -> None:
        """Write the policy, the tables and the checkpoint, each atomically."""
        record = {
            "training": "ppo",
            "command": self.command,
            "options": self.options.as_dict(),
            "steps": self.steps,
            "seconds": round(self.elapsed, 1),
            "standing": self.evaluations[-1] if self.evaluations else None,
        }
        write_atomically(self.policy, SavedResidual(self.rules, net, record).to_bytes())
        write_csv(self.folder / LOG, self.log)
        write_csv(self.folder / EVALUATIONS, [flat_row(row) for row in self.evaluations])
        save_checkpoint(self.folder / CHECKPOINT, parts)
        self._saved_at = time.perf_counter()

    def run_state(self) -> State:
        return {"seconds": self.elapsed} | {name: getattr(self, name) for name in STATE}

    def set_run_state(self, state: State) -> None:
        self.seconds = state["seconds"]
        for name in STATE:
            setattr(self, name, state[name])
