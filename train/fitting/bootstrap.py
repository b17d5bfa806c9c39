"""The whole loop from nothing to an evaluator: solved endgames first, then back to the opening, stage by stage.

Perfect play is a fixed point of search: the value of a position is the best of its successors' negated values. So truth
is carried backwards: a stage labels positions a few plies before those already learnt by a search that ends in them, and
learns them. No game of anyone else is used. Every stage leaves its labels and its weights in the run's folder and is skipped
when they are there, and a fit goes on after its last epoch: a run that was stopped in any way goes on where it was, and ends
with the same weights.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import models.evaluator  # noqa: F401 - registers the evaluator `network`
from models.patterns import read_weights
from models.patterns.trainable import Trainable
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

#: Who plays the games of the first stage, when there is no network yet.
FIRST_PLAYER = "six-factor"
#: Phases this many empties below a stage take part in its fit.
OVERLAP = 4
#: Positions of the player's games.
GAMES_FILE = "games.npz"
LOG = "log.csv"
#: How the names of a stage's files end.
WEIGHTS, LABELS, CHECKPOINT = ".safetensors", "-labels.npz", "-fit.safetensors"
#: Wall times of a stage. They are in the log alone: weights, and with them the names of their files, do not depend on them.
TIMES = ("label_seconds", "fit_seconds")
#: What is known of a finished stage, in the order of the log's columns.
FIGURES = ["stage", "positions", *TIMES, "epochs", "validation_error", "error_by_empties"]


class Bootstrap:
    """One run in one folder.

    *device* is where labels are solved and the network is fitted (``cpu`` or ``cuda``); searches run on *threads* cores. The
    folder remembers the options; others raise a `TrainError`.
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
        checked_device(device)  # what cannot be used is said now, not after the first stage's labels
        self.folder, self.options, self.rules = folder, options, options.rules
        self.stages, self.seed = options.stages or (), options.seed
        self.device, self.threads, self.progress = device, threads, progress
        self.net = Trainable(options.network, options.size)

    def _player(self) -> dict[str, str]:
        """Which weights play: a name such as network may mean others one day."""
        player = self.options.player
        return {"player_sha256": evaluators.get_evaluator(player).sha256(self.rules)} if player else {}

    def run(self) -> Path:
        """All stages that are not done yet; the last stage's weights."""
        if "," in str(self.folder):  # an agent's options end there, and each stage's weights are one of the next
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
                self.net = Trainable.of(read_weights(path))  # rounded, as a run that was stopped here would go on
                self._write_log(times)
                self._path(number, CHECKPOINT).unlink(missing_ok=True)
        return path

    def _stage(self, number: int, stage: Stage) -> dict[str, Any]:
        """Label, fit and save; the seconds that it took."""
        began = time.perf_counter()
        labels = self._labels(number, stage)
        labelled = time.perf_counter()
        report = self._fit(number, stage, labels)
        self._save(number, {"stage": stage.name, "positions": len(labels), **report.metrics()})
        seconds = (labelled - began, time.perf_counter() - labelled)
        return {name: round(spent, 1) for name, spent in zip(TIMES, seconds, strict=True)}

    def metrics(self) -> list[dict[str, Any]]:
        """What was logged of each finished stage, in order."""
        paths = map(self._path, range(len(self.stages)))
        return [read_weights(path).record["figures"][-1] for path in paths if path.exists()]

    # --- labels -----------------------------------------------------------------------------------

    def _labels(self, number: int, stage: Stage) -> Labels:
        path = self._path(number, LABELS)
        if path.exists():
            return Labels(self.rules, *load_arrays(path, COLUMNS))
        options = self._label_options(number, stage)
        own, opp = self._positions(number, stage, options)
        tell = self._progress_reporter(number, stage, "labelling", stage.count)
        labels = label_positions(own, opp, options, device=self.device, threads=self.threads, progress=tell)
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
        """The boards that a stage labels: of games of its own, or its share of those that the player has played."""
        if not self._uses_shared_games(stage):
            tell = self._progress_reporter(number, stage, "sampling", stage.count)
            return sample_block(options, 0, threads=self.threads, fewer=True, progress=tell)
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
        """Whether a stage takes its positions from the same games as the first: none does if every stage has another player."""
        return self.options.player is not None and stage.games == self.stages[0].games

    def _games(self, number: int, stage: Stage) -> tuple[np.ndarray, np.ndarray]:
        """The positions of all games, played once, as the first stage has it, and kept; whichever stage needs them."""
        path = self.folder / GAMES_FILE
        if not path.exists():
            sharing = [stage for stage in self.stages if self._uses_shared_games(stage)]
            low, high = min(s.low for s in sharing), max(s.high for s in sharing)
            most = np.array([sum(_count_at(s, empties) for s in sharing) for empties in range(low, high + 1)])
            count = int(most.max()) * len(most)
            options = self._label_options(0, self.stages[0])
            whole = replace(options, count=count, empties=(low, high), shard_rows=count, block_rows=count)
            tell = self._progress_reporter(number, stage, "sampling", int(most.sum()))
            own, opp = sample_block(whole, 0, threads=self.threads, fewer=True, most=most, progress=tell)
            save_arrays(path, {"own": own, "opp": opp})
        own, opp = load_arrays(path, ("own", "opp"))
        return own, opp

    # --- weights ----------------------------------------------------------------------------------

    def _fit(self, number: int, stage: Stage, labels: Labels) -> FitReport:
        """Fit all phases, in a joint stage, to all labels so far; else those from the stage's lowest on, to all near it.

        Phases below the lowest stay as they are, those above the highest follow it.
        """
        span, tell = self.net.span, self._progress_reporter(number, stage, "fitting", stage.fit.epochs)
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
            progress=lambda epoch: tell(epoch.number),
        )
        if stage.joint:
            return report
        for part, kept in zip(self.net.by_phase(), before, strict=True):
            part[:first] = kept.to(part.device)
            part[last + 1 :] = part[last]
        by_empties = self.net.by_empties()
        by_empties[: first * span] = by_empties_before.to(by_empties.device)
        for empties in range(int(labels.empties.max()) + 1, len(by_empties)):
            by_empties[empties] = by_empties[empties - 2]  # of the same parity
        return report

    def _save(self, number: int, figures: dict[str, Any]) -> None:
        earlier = read_weights(self._path(number - 1)).record["figures"] if number else []
        record: dict[str, Any] = {
            "training": "bootstrap",
            "options": self.options.as_dict(),
            "device": self.device,
            "figures": [*earlier, figures],
            **self._player(),
        }
        write_atomically(self._path(number), self.net.cpu().to_network(self.rules, record).to_bytes())

    def _write_log(self, times: dict[str, dict[str, Any]]) -> None:
        """The figures of all finished stages, a line each."""
        rows = [
            {**row, **times.get(row["stage"], {}), "error_by_empties": json.dumps(row["error_by_empties"])}
            for row in self.metrics()
        ]
        write_csv(self.folder / LOG, rows, FIGURES)

    def _path(self, number: int, what: str = WEIGHTS) -> Path:
        return self.folder / f"stage-{number:02}{what}"

    def _progress_reporter(self, number: int, stage: Stage, doing: str, total: int) -> Callable[[int], None]:
        doing = f"stage {number + 1}/{len(self.stages)} {stage.name}: {doing}"
        return lambda done: self.progress(doing, done, total)


def _count_at(stage: Stage, empties: int) -> int:
    """Positions with so many empties that a stage labels."""
    if not stage.low <= empties <= stage.high:
        return 0
    return stage.count // (stage.high - stage.low + 1)
