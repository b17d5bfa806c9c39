"""Training from scratch: first on solved endgames, then back to the opening, stage by stage.

Perfect play is a fixed point of search: the value of a position is the maximum of the negated values of its successors. A stage
therefore labels positions a few plies before the trained ones by a search that ends in them, and fits the network to these
labels. No games of other players are used. Every stage stores its labels and weights in the run's folder, and is skipped if they
exist; a fit resumes after its last epoch. An interrupted run ends with the same weights.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import models.evaluator  # noqa: F401 - registers the evaluator `network`
from models.patterns import read_weights
from models.patterns.trainable import PatternModule
from reversi_env.errors import TrainError, quoted
from reversi_env.options import derive_seed
from reversi_env.storage.atomic import write_atomically
from search import evaluators
from search.agents.spec import AgentSpec
from search.evaluators.base import file_name
from train.fitting.fit import FitReport, checked_device, fit
from train.fitting.stages import BootstrapOptions, Stage
from train.jobs.logs import Progress, load_arrays, no_progress, read_csv, save_arrays, write_csv
from train.jobs.run import Run
from train.labels import LabelOptions, Labels, label_positions
from train.labels.dataset import COLUMNS
from train.labels.labellers import check_solvable
from train.labels.sampling import sample_block

#: The player of the first stage, when there is no network yet.
FIRST_PLAYER = "six-factor"
#: Positions of up to this many empties below a stage are part of its fit.
OVERLAP = 4
GAMES_FILE, LOG = "games.npz", "log.csv"
#: Suffixes of the files of a stage.
WEIGHTS, LABELS, CHECKPOINT = ".safetensors", "-labels.npz", "-fit.safetensors"
#: Wall times of a stage, which are in the log alone: weights and the names of their files do not depend on them.
TIMES = ("label_seconds", "fit_seconds")
#: Columns of the log.
COLUMNS_OF_LOG = ["stage", "positions", *TIMES, "epochs", "validation_error", "error_by_empties"]


class Bootstrap:
    """A run in a folder, which stores the options.

    The *device* (``cpu`` or ``cuda``) solves positions and fits the network; searches run on *threads* cores.
    """

    def __init__(
        self,
        folder: Path,
        options: BootstrapOptions,
        *,
        device: str = "cpu",
        threads: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        checked_device(device)
        self.folder, self.options, self.rules = folder, options, options.rules
        self.stages, self.seed = options.stages or (), options.seed
        self.device, self.threads, self.progress = device, threads, progress
        self.net = PatternModule(options.network, options.size)

    def _player(self) -> dict[str, str]:
        player = self.options.player
        return {"player_sha256": evaluators.get_evaluator(player).sha256(self.rules)} if player else {}

    def run(self) -> Path:
        """Run all unfinished stages and return the weight file of the last one."""
        if "," in str(self.folder):  # specs contain the path of a stage's weights, and a comma separates their options
            raise TrainError(f"folder {quoted(str(self.folder), 300)}: expected a name without a comma")
        for number, stage in enumerate(self.stages):
            options = self._label_options(number, stage)
            check_solvable(options.max_solved_empties, self.rules, options.labeller, device=self.device)
        with Run(self.folder, self.options, {"device": self.device, **self._player()}):
            times = {row["stage"]: {name: row.get(name) for name in TIMES} for row in read_csv(self.folder / LOG)}
            for number, stage in enumerate(self.stages):
                path = self._path(number)
                if not path.exists():
                    times[stage.name] = self._stage(number, stage)
                self.net = PatternModule.of(read_weights(path))  # quantised, as in a resumed run
                self._write_log(times)
                self._path(number, CHECKPOINT).unlink(missing_ok=True)
        return path

    def _stage(self, number: int, stage: Stage) -> dict[str, Any]:
        """Label, fit and save; return the wall times."""
        began = time.perf_counter()
        labels = self._labels(number, stage)
        labelled = time.perf_counter()
        report = self._fit(number, stage, labels)
        self._save(number, {"stage": stage.name, "positions": len(labels), **report.metrics()})
        seconds = (labelled - began, time.perf_counter() - labelled)
        return {name: round(spent, 1) for name, spent in zip(TIMES, seconds, strict=True)}

    def metrics(self) -> list[dict[str, Any]]:
        paths = map(self._path, range(len(self.stages)))
        return [read_weights(path).record["figures"][-1] for path in paths if path.exists()]

    def _labels(self, number: int, stage: Stage) -> Labels:
        path = self._path(number, LABELS)
        if path.exists():
            return Labels(self.rules, *load_arrays(path, COLUMNS))
        options = self._label_options(number, stage)
        own, opp = self._positions(number, stage, options)
        report_progress = self._progress_reporter(number, stage, "labelling", stage.count)
        labels = label_positions(own, opp, options, device=self.device, threads=self.threads, progress=report_progress)
        save_arrays(path, {name: getattr(labels, name) for name in COLUMNS})
        return labels

    def _label_options(self, number: int, stage: Stage) -> LabelOptions:
        previous = self._path(number - 1)
        searcher = AgentSpec("network").with_(depth=stage.depth, mean=stage.mean, weights=previous)
        return LabelOptions.from_dict(
            {
                "size": self.rules.size,
                "variant": self.rules.variant,
                "count": stage.count,
                "empties": (stage.low, stage.high),
                "seed": derive_seed(self.seed, number),
                "shard_rows": stage.count,
                "block_rows": stage.count,
                "labeller": str(searcher) if stage.depth else "exact",
                "player": self.options.player or (file_name("network", previous) if number else FIRST_PLAYER),
                **stage.games,
            }
        )

    def _positions(self, number: int, stage: Stage, options: LabelOptions) -> tuple[np.ndarray, np.ndarray]:
        """Return the boards that a stage labels: those of its own games, or its part of the player's games."""
        if not self._uses_shared_games(stage):
            report_progress = self._progress_reporter(number, stage, "sampling", stage.count)
            return sample_block(options, 0, threads=self.threads, fewer=True, progress=report_progress)
        before = [earlier for earlier in self.stages[:number] if self._uses_shared_games(earlier)]
        used = [sum(_count_at(earlier, empties) for earlier in before) for empties in range(stage.high + 1)]
        own, opp = self._games(number, stage)
        empties = self.rules.square_count - np.bitwise_count(own | opp)
        rows = [
            np.flatnonzero(empties == e)[used[e] : used[e] + _count_at(stage, e)]
            for e in range(stage.low, stage.high + 1)
        ]
        chosen = np.concatenate(rows)
        return own[chosen], opp[chosen]

    def _uses_shared_games(self, stage: Stage) -> bool:
        return self.options.player is not None and stage.games == self.stages[0].games

    def _games(self, number: int, stage: Stage) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the player's games, which are played once and stored."""
        path = self.folder / GAMES_FILE
        if not path.exists():
            sharing = [each for each in self.stages if self._uses_shared_games(each)]
            low, high = min(s.low for s in sharing), max(s.high for s in sharing)
            most = np.array([sum(_count_at(s, empties) for s in sharing) for empties in range(low, high + 1)])
            count = int(most.max()) * len(most)
            options = self._label_options(0, self.stages[0])
            whole = replace(options, count=count, empties=(low, high), shard_rows=count, block_rows=count)
            report_progress = self._progress_reporter(number, stage, "sampling", int(most.sum()))
            own, opp = sample_block(whole, 0, threads=self.threads, fewer=True, most=most, progress=report_progress)
            save_arrays(path, {"own": own, "opp": opp})
        own, opp = load_arrays(path, ("own", "opp"))
        return own, opp

    def _fit(self, number: int, stage: Stage, labels: Labels) -> FitReport:
        """Fit the network: in a joint stage all phases to all labels so far, else the phases of the stage to its and nearby labels.

        Phases below those of the stage keep their weights; those above get the weights of its highest phase.
        """
        span, report_progress = self.net.span, self._progress_reporter(number, stage, "fitting", stage.fit.epochs)
        first, last = stage.low // span, stage.high // span
        lowest = 0 if stage.joint else max(0, first * span - OVERLAP)
        earlier = [self._labels(before, self.stages[before]) for before in range(number)]
        labels = Labels.concatenate([*(part.select(part.empties >= lowest) for part in earlier), labels])
        before = [part[:first].clone() for part in self.net.by_phase()]
        by_empties_before = self.net.by_empties()[: first * span].clone()
        report = fit(
            *(self.net, labels, replace(stage.fit, seed=self.seed)),
            device=self.device,
            threads=self.threads,
            checkpoint=self._path(number, CHECKPOINT),
            progress=lambda epoch: report_progress(epoch.number),
        )
        if stage.joint:
            return report
        for part, part_before in zip(self.net.by_phase(), before, strict=True):
            part[:first] = part_before.to(part.device)
            part[last + 1 :] = part[last]
        by_empties = self.net.by_empties()
        by_empties[: first * span] = by_empties_before.to(by_empties.device)
        for empties in range(int(labels.empties.max()) + 1, len(by_empties)):
            by_empties[empties] = by_empties[empties - 2]  # the same parity
        return report

    def _save(self, number: int, metrics: dict[str, Any]) -> None:
        earlier = read_weights(self._path(number - 1)).record["figures"] if number else []
        record: dict[str, Any] = {
            "training": "bootstrap",
            "options": self.options.as_dict(),
            "device": self.device,
            "figures": [*earlier, metrics],
            **self._player(),
        }
        write_atomically(self._path(number), self.net.cpu().to_network(self.rules, record).to_bytes())

    def _write_log(self, times: dict[str, dict[str, Any]]) -> None:
        rows = [
            {**row, **times.get(row["stage"], {}), "error_by_empties": json.dumps(row["error_by_empties"])}
            for row in self.metrics()
        ]
        write_csv(self.folder / LOG, rows, COLUMNS_OF_LOG)

    def _path(self, number: int, what: str = WEIGHTS) -> Path:
        return self.folder / f"stage-{number:02}{what}"

    def _progress_reporter(self, number: int, stage: Stage, task: str, total: int) -> Callable[[int], None]:
        task = f"stage {number + 1}/{len(self.stages)} {stage.name}: {task}"
        return lambda done: self.progress(task, done, total)


def _count_at(stage: Stage, empties: int) -> int:
    """Return the number of positions with *empties* that a stage labels."""
    return stage.count // (stage.high - stage.low + 1) if stage.low <= empties <= stage.high else 0
