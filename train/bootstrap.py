"""The whole loop from nothing to an evaluator: solve endgames, learn them, search from earlier positions into what is
learnt, learn those, and so on back to the opening.

Perfect play is a fixed point of search: the value of a position is the best of its successors' negated values. So truth
is carried backwards: a stage labels positions a few plies before those already learnt by a search that ends in them. No
game of anyone else is used. Every stage leaves its labels and its weights in the run's folder and is skipped when they
are there, so that a run that was stopped in any way goes on with the stage it was in.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import models.network  # noqa: F401 - registers the evaluator `network`
from models.compiled import quantised
from models.files import PatternWeights, read_weights, write_atomically
from models.pattern_net import PatternNet
from models.patterns import EMPTIES_A_PHASE
from reversi_env import Rules
from reversi_env.rules import Variant
from train.fit import Epoch, FitOptions, FitReport, fit
from train.labels import LabelOptions, Labels, label_positions
from train.labels.data import COLUMNS
from train.labels.sampling import sample_block

#: Who plays the games of the first stage, when there is no network yet.
FIRST_PLAYER = "six-factor"
#: How the games are played: short random beginnings, small errors, some large ones. Positions of strong play are what the
#: network will be asked about; the others are what a search meets on the way.
GAMES: dict[str, Any] = {
    "noise": (0.0, 0.0, 0.02, 0.05, 0.1),
    "heat": (0.5, 1.0, 2.0, 4.0),
    "prefixes": (4, 8, 12, 20, 40),
    "random_share": 0.03,
}
#: Phases this many empties below a stage take part in its fit.
OVERLAP = 4


@dataclass(frozen=True)
class Stage:
    """Positions with ``low`` to ``high`` empties: how many, solved (depth 0) or searched so deep, and what to fit.

    ``joint`` fits all phases to all labels so far; otherwise only the phases that the stage reaches are fitted, starting
    from the weights of the phase below.
    """

    low: int
    high: int
    count: int
    depth: int = 0
    joint: bool = False
    fit: FitOptions = FitOptions()

    @property
    def name(self) -> str:
        """Such as ``exact-1-14``."""
        kind = f"depth{self.depth}" if self.depth else "exact"
        return f"{kind}-{self.low}-{self.high}{'-joint' if self.joint else ''}"


def stages_of(size: int, scale: float = 1.0) -> tuple[Stage, ...]:
    """The stages for a board; *scale* multiplies the numbers of positions."""

    def stage(low: int, high: int, thousands: float, depth: int = 0, **more: Any) -> Stage:
        return Stage(low, high, max(100 * (high - low + 1), int(1000 * scale * thousands)), depth, **more)

    if size == 4:
        return (stage(1, 9, 2, fit=FitOptions(batch=256)),)
    exact, last = (14, 50) if size == 8 else (13, 25)
    few, joint = FitOptions(epochs=12, batch=1 << 13), FitOptions(epochs=10, rate=0.01, blur=1.0)
    backwards = [stage(low, low + 3, 1200, 4, fit=few) for low in range(exact + 1, last, 4)]
    return (
        stage(1, exact - 2, 1200),
        stage(8, exact, 5600),
        *backwards,
        stage(exact + 1, last, 360, 6, joint=True, fit=joint),
    )


@dataclass(frozen=True)
class Progress:
    """Where a run is: the stage, what it is doing, and how much of that is done."""

    stage: int
    stages: int
    name: str
    doing: str
    done: int
    total: int


class Bootstrap:
    """One run in one folder.

    *device* is where labels are solved and the network is fitted (``cpu`` or ``cuda``); searches run on *threads* cores.
    """

    def __init__(
        self,
        folder: Path,
        size: int = 8,
        variant: Variant = "normal",
        *,
        stages: Sequence[Stage] | None = None,
        device: str = "cpu",
        threads: int | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] = lambda step: None,
    ) -> None:
        self.folder, self.rules = folder, Rules(size, variant)
        self.stages = tuple(stages_of(size) if stages is None else stages)
        self.device, self.threads, self.seed, self.progress = device, threads, seed, progress
        self.net = PatternNet(size)
        folder.mkdir(parents=True, exist_ok=True)

    def run(self) -> Path:
        """All stages that are not done yet; the last stage's weights."""
        for number, stage in enumerate(self.stages):
            path = self._weights_path(number)
            if path.exists():
                self._load(path)
                continue
            began = time.perf_counter()
            labels = self._labels(number, stage)
            labelled = time.perf_counter()
            report = self._fit(number, stage, labels)
            figures = {
                "stage": stage.name,
                "positions": len(labels),
                "label_seconds": round(labelled - began, 1),
                "fit_seconds": round(time.perf_counter() - labelled, 1),
                "epochs": len(report.epochs),
                "validation_error": round(report.validation_error, 3),
                "error_by_empties": report.error_by_empties,
            }
            self._save(number, figures)
        return self._weights_path(len(self.stages) - 1)

    def figures(self) -> list[dict[str, Any]]:
        """What was logged of each finished stage, in order."""
        paths = [self._weights_path(number) for number in range(len(self.stages))]
        return [read_weights(path).record["figures"][-1] for path in paths if path.exists()]

    # --- labels -----------------------------------------------------------------------------------

    def _labels(self, number: int, stage: Stage) -> Labels:
        path = self._labels_path(number)
        if path.exists():
            return self._read_labels(number)
        previous = self._weights_path(number - 1)
        network = f"network:weights={previous}" if number else FIRST_PLAYER
        options = LabelOptions(
            size=self.rules.size,
            variant=self.rules.variant,
            count=stage.count,
            empties=(stage.low, stage.high),
            seed=self.seed + 1000 * number,
            shard_rows=stage.count,
            block_rows=stage.count,
            labeller="exact" if not stage.depth else f"network:depth={stage.depth},weights={previous}",
            player=network,
            **GAMES,
        )
        tell = self._teller(number, stage, "sampling", stage.count)
        own, opp = sample_block(options, 0, threads=self.threads, progress=tell)
        tell = self._teller(number, stage, "labelling", stage.count)
        labels = label_positions(own, opp, options, device=self.device, threads=self.threads, progress=tell)
        content = io.BytesIO()
        np.savez(content, **{name: getattr(labels, name) for name in COLUMNS})
        write_atomically(path, content.getvalue())
        return labels

    def _read_labels(self, number: int) -> Labels:
        with np.load(self._labels_path(number)) as saved:
            return Labels(self.rules, *(saved[name] for name in COLUMNS))

    # --- weights ----------------------------------------------------------------------------------

    def _fit(self, number: int, stage: Stage, labels: Labels) -> FitReport:
        tell = self._teller(number, stage, "fitting", stage.fit.epochs)

        def epoch_done(epoch: Epoch) -> None:
            tell(epoch.number)

        if stage.joint:
            parts = [self._read_labels(earlier) for earlier in range(number)]
            options = replace(stage.fit, seed=self.seed)
            return fit(self.net, Labels.concatenate([*parts, labels]), options, device=self.device, progress=epoch_done)
        if number:
            near = [self._read_labels(earlier) for earlier in range(number)]
            labels = Labels.concatenate([_above(part, stage.low - OVERLAP) for part in near] + [labels])
        return self._fit_phases(stage, labels, epoch_done)

    def _fit_phases(self, stage: Stage, labels: Labels, epoch_done: Callable[[Epoch], None]) -> FitReport:
        """Fit the phases from the stage's lowest on; those below stay as they are, those above follow the highest fitted."""
        weights = self.net.phase_weights()
        span = EMPTIES_A_PHASE[self.rules.size]
        first, last = max(0, stage.low - OVERLAP // 2) // span, stage.high // span
        before, constants_before = weights[:first].clone(), self.net.constant.weight.data[: stage.low].clone()
        report = fit(self.net, labels, replace(stage.fit, seed=self.seed), device=self.device, progress=epoch_done)
        weights = self.net.phase_weights()
        weights[:first] = before.to(weights.device)
        if stage.low > 1:
            self.net.constant.weight.data[: stage.low] = constants_before.to(weights.device)
        weights[last + 1 :] = weights[last]
        constants = self.net.constant.weight.data
        for empties in range(stage.high + 1, len(constants)):
            constants[empties] = constants[empties - 2]  # of the same parity
        return report

    def _save(self, number: int, figures: dict[str, Any]) -> None:
        earlier = read_weights(self._weights_path(number - 1)).record["figures"] if number else []
        net = self.net.cpu()
        record = {
            "training": "bootstrap",
            "seed": self.seed,
            "device": self.device,
            "stages": [asdict(stage) for stage in self.stages[: number + 1]],
            "figures": [*earlier, figures],
        }
        weights = quantised(net.phase_weights().numpy())
        saved = PatternWeights(self.rules, weights, quantised(net.constants()), record)
        write_atomically(self._weights_path(number), saved.to_bytes())
        line = json.dumps({"number": number, **figures})
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(line + "\n")

    def _load(self, path: Path) -> None:
        self.net = network_of(read_weights(path))

    def _weights_path(self, number: int) -> Path:
        return self.folder / f"stage-{number:02}.safetensors"

    def _labels_path(self, number: int) -> Path:
        return self.folder / f"stage-{number:02}-labels.npz"

    def _teller(self, number: int, stage: Stage, doing: str, total: int) -> Callable[[int], None]:
        return lambda done: self.progress(Progress(number, len(self.stages), stage.name, doing, done, total))


def network_of(saved: PatternWeights) -> PatternNet:
    """The torch module with the weights of a file."""
    import torch

    from models.core.pattern_value import UNITS

    net = PatternNet(saved.rules.size)
    net.phase_weights()[:] = torch.from_numpy(saved.weights.astype(np.float32) / UNITS)
    net.constant.weight.data[:, 0] = torch.from_numpy(saved.constants.astype(np.float32) / UNITS)
    return net


def _above(labels: Labels, empties: int) -> Labels:
    return labels.select(labels.empties >= max(empties, 0))
