"""`SelfPlayRun`: AlphaZero training in one folder, in generations of self-play and gradient steps; the same call resumes it.

A generation depends on the options, its number and the weights before it. The folder keeps the positions of the replay window and
the state of the learner. On a CPU an interrupted run ends with the same weights as an uninterrupted one.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from models.files import WeightsError
from models.mcts.search import TreeSearch
from models.residual.net import SavedResidual, ValueFromBoards, read_residual, symmetrised
from models.torch_evaluator import TorchEvaluator
from reversi_env import Rules
from reversi_env.errors import extra_libraries
from reversi_env.storage.atomic import write_atomically
from train.alphazero.jobs import GamesJob, SelfPlayWorker, cluster_worker, derived_seed, games_jobs
from train.alphazero.learner import WARMUP_STEPS, Learner, Losses, fast_convolutions
from train.alphazero.options import SelfPlayOptions
from train.alphazero.self_play import COLUMNS, Positions, make_search
from train.arena.batch import BatchPlayer
from train.arena.network_players import ZeroPlayer
from train.charts import COLOURS, GREY, Figure, labels, panels
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ExactSet
from train.evaluation.exam import packaged_sets
from train.evaluation.ladder import NETWORK, STRONGER, Ladder, default_baselines, ladder_figure
from train.evaluation.options import EndgameOptions
from train.fitting.fit import checked_device
from train.jobs.checkpoints import load_checkpoint, restoring, save_checkpoint
from train.jobs.logs import Progress, load_arrays, no_progress, save_arrays, write_csv
from train.jobs.processes import Device, Executor
from train.jobs.provenance import provenance
from train.jobs.run import Run
from train.jobs.tensorboard import TensorBoard

with extra_libraries():
    import torch

STATE, LOG, POSITIONS, TENSORBOARD = "state.safetensors", "log.csv", "positions-{:04}.npz", "tensorboard"
#: Final gradient steps between two checkpoints.
CHUNK_STEPS = 1000
#: Solved positions in which regret is measured, for each number of empties.
REGRET_POSITIONS = 100


@dataclass(frozen=True)
class RunResult:
    """The weight file of a run, and its metrics after every generation and after every chunk of the final steps."""

    weights: Path
    metrics: list[dict[str, Any]]


class SelfPlayRun:
    """A run in *folder*, which stores the options; different ones raise a `TrainError`.

    *command* is recorded in the weight file. *cache*: the folder of solved positions, by default the user's. *on_metrics* gets the
    number of a row of metrics, from 1, and its numbers by name, before the step is committed: after a kill at this moment the row
    is reported again. *executor*: the cluster that plays the games (`train.jobs.ray.RayCluster`), by default this process; *mixed*:
    use all its GPUs and CPUs, instead of only the options' device.
    """

    def __init__(
        self,
        folder: Path,
        options: SelfPlayOptions,
        *,
        threads: int | None = None,
        command: str = "",
        cache: Path | None = None,
        progress: Progress = no_progress,
        on_metrics: Callable[[int, dict[str, float]], None] = lambda number, metrics: None,
        executor: Executor | None = None,
        mixed: bool = False,
    ) -> None:
        self.folder, self.options, self.rules = folder, options, options.rules
        self.threads, self.command, self.cache, self.progress = threads, command, cache, progress
        self.executor, self.mixed = executor, mixed
        self.device = checked_device(options.device)
        self.metrics: list[dict[str, Any]] = []
        self._reports = (on_metrics, TensorBoard(folder / TENSORBOARD))
        self.steps_done = 0  # of the final steps

    def run(self) -> RunResult:
        """Run all generations that are missing, and the final steps."""
        with Run(self.folder, self.options), fast_convolutions(self.device):
            self.learner = Learner(self.options, self.device)
            for number in range(self._resume(), self.options.generations):
                self._generation(number)
            self._final_training()
            path = self._save_weights()
            draw(self.metrics, self.rules, self.folder)
        return RunResult(path, self.metrics)

    @cached_property
    def _search(self) -> TreeSearch:
        return make_search(self.learner.logits_and_values, self.options, self.device, self.threads)

    def _generation(self, number: int) -> None:
        options, started = self.options, time.perf_counter()
        name, done = f"generation {number + 1}/{options.generations}", number + 1
        self._play_generation(number, f"{name}: playing")
        played = time.perf_counter()
        warm_up = (lambda step: min(1.0, (step + 1) / WARMUP_STEPS)) if not number else (lambda step: 1.0)
        on_progress = self._progress_reporter(f"{name}: learning, steps", options.steps)
        positions = self._replay_positions(number)
        losses = self.learner.learn(positions, options.steps, warm_up, self._seed(number, 1), on_progress)
        times = {"play_seconds": played - started, "learn_seconds": time.perf_counter() - played}
        last = done == options.generations and not options.final_steps
        self._log_metrics({"generation": number}, losses, times, measured=last or done % options.eval_every == 0)
        for old in range(done - options.replay_generations(number)):
            self._path(old).unlink(missing_ok=True)
        self._save_state(done)

    def _play_generation(self, number: int, doing: str) -> None:
        """Play a generation's games, unless its positions are in the folder already."""
        if self._path(number).exists():
            return
        jobs = games_jobs(self.options, number)
        if self.executor is None:
            on_progress = partial(self.progress, f"{doing}, plies")
            worker = SelfPlayWorker(self._search, self.options, self.device, self.threads, on_progress)
            parts = [columns for _, columns in map(worker, jobs)]
        else:
            parts = self._play_on_cluster(self.executor, jobs, f"{doing}, jobs")
        save_arrays(self._path(number), {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})

    def _play_on_cluster(self, executor: Executor, jobs: list[GamesJob], doing: str) -> list[dict[str, np.ndarray]]:
        weights, threads, parts = self.learner.state()["mean"], self.threads or 1, []
        device: Device = "any" if self.mixed else self.options.device
        with executor.workers(cluster_worker, self.options, weights, threads, cpus=threads, device=device) as pool:
            for result in pool.results(iter(jobs)):
                parts.append(result)
                self.progress(doing, len(parts), len(jobs))
        return [columns for _, columns in sorted(parts, key=itemgetter(0))]

    def _replay_positions(self, number: int) -> Positions:
        """Return the positions that training samples from after a generation, on the device."""
        first = max(0, number + 1 - self.options.replay_generations(number))
        return Positions.concatenate([self._read(generation) for generation in range(first, number + 1)])

    def _read(self, number: int) -> Positions:
        arrays = load_arrays(self._path(number), COLUMNS, "start again in another folder")
        return Positions(*(torch.from_numpy(array).to(self.device) for array in arrays))

    def _final_training(self) -> None:
        """Train on the replay window while the learning rate decays to 0, in chunks of steps."""
        total, generations = self.options.final_steps, self.options.generations
        if self.steps_done >= total:
            return
        positions = self._replay_positions(generations - 1)
        while self.steps_done < total:
            started, first = time.perf_counter(), self.steps_done
            steps = min(CHUNK_STEPS, total - first)
            on_progress, seed = self._progress_reporter("last steps", total, first), self._seed(generations, first)
            losses = self.learner.learn(positions, steps, lambda step: 1 - (first + step) / total, seed, on_progress)  # noqa: B023
            self.steps_done += steps
            times = {"learn_seconds": time.perf_counter() - started}
            self._log_metrics({"last_steps": self.steps_done}, losses, times, measured=self.steps_done == total)
            self._save_state(generations)

    def _seed(self, generation: int, part: int) -> int:
        return derived_seed(self.options, generation, part)

    def _progress_reporter(self, doing: str, total: int, first: int = 0) -> Callable[[int], None]:
        return lambda done: self.progress(doing, first + done, total)

    def examine(self) -> dict[str, dict[str, Any]]:
        """Return standings of the final network: by its policy, averaged over the symmetries, and with search."""
        logits_and_values = self.learner.logits_and_values
        players = {
            "policy": ZeroPlayer(symmetrised(logits_and_values, self.rules), self.rules, self.device),
            f"{self.options.simulations} simulations": ZeroPlayer(
                logits_and_values, self.rules, self.device, self._search
            ),
        }
        standings = {}
        for number, (name, player) in enumerate(players.items()):
            self.progress("examining", number, len(players))
            standings[name] = self.ladder_standing(player)
        return standings

    def _log_metrics(self, where: dict[str, int], losses: Losses, times: dict[str, float], *, measured: bool) -> None:
        row: dict[str, Any] = {**where, "error": round(losses.error, 3), "policy": round(losses.policy, 4)}
        strength = self.measure_strength() if measured else {}
        self.metrics.append({**row, **strength, **{name: round(value, 1) for name, value in times.items()}})
        for report in self._reports:
            report(len(self.metrics), _scalars(self.metrics[-1]))

    def measure_strength(self) -> dict[str, Any]:
        """Return all metrics of the averaged network; those of its games are by the policy without search."""
        metrics: dict[str, Any] = self._value_errors()
        if self.options.eval_games:
            self.progress("playing the ladder", 0, 1)
            metrics |= self.ladder_standing(ZeroPlayer(self.learner.logits_and_values, self.rules, self.device))
        return metrics

    def _value_errors(self) -> dict[str, float]:
        """Return mean error and bias in discs by empties, on the packaged solved positions; there are none for 4x4."""
        if self.rules.size == 4:
            return {}
        value = ValueFromBoards(self.learner.ema_net)
        evaluator = TorchEvaluator(value, self.rules, inputs="boards", device=self.device)
        by_empties = {int(exact.empties[0]): exact.errors(evaluator) for exact in packaged_sets(self.rules)}
        means = {f"error_{empties}": round(errors.mean, 2) for empties, errors in by_empties.items()}
        return means | {f"bias_{empties}": round(errors.bias, 2) for empties, errors in by_empties.items()}

    def ladder_standing(self, player: BatchPlayer) -> dict[str, Any]:
        """Return points against each baseline, Elo, and mean regret in solved endgames."""
        standing, endgames = self._ladder.measure(player), self._exact_set.batch_regret(player).overall
        points = {name: round(results.score, 4) for name, results in standing.scores.items()}
        ratings = {name: value for name, value in standing.as_dict().items() if name != "rungs"}
        metrics = {name: None if value is None else round(value, 1) for name, value in ratings.items()}
        return {**metrics, "regret": round(endgames.regret, 3), "optimal": round(endgames.optimal, 4), "points": points}

    @cached_property
    def _ladder(self) -> Ladder:
        stronger = STRONGER if NETWORK in default_baselines(self.rules) else ()
        return Ladder(self.rules, self.options.eval_games, self.options.seed, stronger=stronger)

    @cached_property
    def _exact_set(self) -> ExactSet:
        positions = EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS)
        return noisy_endgames(positions, self.cache, threads=self.threads, progress=self.progress)

    def _path(self, number: int) -> Path:
        return self.folder / POSITIONS.format(number)

    def _resume(self) -> int:
        """Load the last checkpoint and return the number of the next generation."""
        parts = load_checkpoint(self.folder / STATE)
        if parts is None:
            return 0
        with restoring(self.folder / STATE):
            self.learner.load_state(parts)
            run_state = parts["run"]
            self.metrics, self.steps_done = run_state["figures"], run_state["last_steps"]
            return int(run_state["generations"])

    def _save_state(self, generations: int) -> None:
        """Write the log, then the checkpoint, which commits the step."""
        rows = [{**row, **row.get("points", {})} for row in self.metrics]
        write_csv(self.folder / LOG, [{name: value for name, value in row.items() if name != "points"} for row in rows])
        run_state = {"generations": generations, "last_steps": self.steps_done, "figures": self.metrics}
        save_checkpoint(self.folder / STATE, {**self.learner.state(), "run": run_state})

    def _save_weights(self) -> Path:
        """Write the final weights, unless the folder has them already, and return their file."""
        files = sorted(self.folder.glob("zero-*.safetensors"))
        path = next(filter(self._is_saved_in, files), None)
        if path is None:
            saved = self._network(provenance(self.command))
            data = saved.to_bytes()
            path = self.folder / saved.file_name(data)
            write_atomically(path, data)
        for other in {*files} - {path}:
            other.unlink()  # damaged, or of an earlier version
        return path

    def _is_saved_in(self, path: Path) -> bool:
        """Return whether an intact file has this network and record, made by any command and commit."""
        try:
            record = read_residual(path).record
        except WeightsError:
            return False
        made_by = {name: record.get(name) for name in ("command", "version", "commit")}
        return path.read_bytes() == self._network(made_by).to_bytes()

    def _network(self, made_by: dict[str, Any]) -> SavedResidual:
        record = {"training": "zero", "options": self.options.as_dict(), "device": self.device.type}
        # The file's name must not depend on how long the run took.
        metrics = [{k: v for k, v in row.items() if not k.endswith("_seconds")} for row in self.metrics]
        return SavedResidual(self.rules, self.learner.ema_net, {**record, "figures": metrics, **made_by})


X_LABEL = "generations, then chunks of the final steps"


def draw(metrics: Sequence[Mapping[str, Any]], rules: Rules, folder: Path) -> None:
    """Draw ``errors.svg`` and ``curve.svg`` over the generations, if matplotlib is installed."""
    game = f"{rules.size}x{rules.size} {rules.variant}"
    rows = [{**row, "steps": number} for number, row in enumerate(metrics, 1)]
    if with_errors := [row for row in rows if any(name.startswith("bias_") for name in row)]:
        errors_figure(with_errors, game).save(folder / "errors.svg", optional=True)
    if with_points := [row for row in rows if "points" in row]:
        baselines = [{name: {"points": points} for name, points in row["points"].items()} for row in with_points]
        curve = [{**row, "rungs": points} for row, points in zip(with_points, baselines, strict=True)]
        ladder_figure(curve, game, X_LABEL).save(folder / "curve.svg", optional=True)


def errors_figure(rows: Sequence[Mapping[str, Any]], game: str) -> Figure:
    """Return a plot of mean absolute error and bias on solved positions, one line per number of empties."""
    kinds = {"error": f"{game}: mean error, discs", "bias": "bias for the side to move, discs"}

    def draw(figure: Any) -> None:
        for axis, kind in zip(panels(figure, 2, tuple(kinds.values())), kinds, strict=True):
            names = [name for name in rows[0] if name.startswith(f"{kind}_")]
            steps, ends = [row["steps"] for row in rows], []
            for name, colour in zip(names, COLOURS, strict=False):
                values = [row[name] for row in rows]
                axis.plot(steps, values, color=colour)
                ends.append((steps[-1], values[-1], name.removeprefix(f"{kind}_"), colour))
            axis.axhline(0, color=GREY, linewidth=0.6, linestyle=":")
            axis.set_xlabel(X_LABEL)
            labels(axis, ends)

    return Figure("errors", f"{game}: error and bias by empty squares.", draw)


def _scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row of metrics, points against baselines as ``points/network-depth-2``; None is left out."""
    points = {f"points/{re.sub('[^0-9a-z]+', '-', name)}": value for name, value in row.get("points", {}).items()}
    return {name: value for name, value in {**row, **points}.items() if isinstance(value, (int, float))}
