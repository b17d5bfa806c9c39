"""`RegretCurve`: what a player in training gives away in endgames, in discs, and how often it finds a best move.

The judge is exact (`train.evaluation.exact_set`): no opponent, no luck and no rating is in these figures. Nothing here imports
torch; a policy in training is judged by `train.rl.callbacks`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError
from train import charts
from train.evaluation.exact_set import ExactSet, Judgement
from train.jobs.logs import read_csv, write_csv

#: Lines of a curve besides that of all positions: so many ranges of empties.
BANDS = 3
#: Columns of a curve's file: a line for all empties together ("all") and for each number of them, at each step.
#: ``…_low`` and ``…_high`` are the ends of 95 % confidence intervals.
COLUMNS = (
    *("step", "empties", "positions", "regret", "regret_standard_error", "regret_low", "regret_high"),
    *("optimal", "optimal_standard_error", "optimal_low", "optimal_high", "spoilt", "spoilt_low", "spoilt_high", "set"),
)


class RegretCurve:
    """The judgements of one player in training, by step, kept in a CSV file that is whole at any moment.

    A file that is there is gone on with; what it has from *resumed_at* on is forgotten, since the training does it again.
    """

    def __init__(self, path: Path, positions: ExactSet, *, resumed_at: int | None = None) -> None:
        self.path, self.positions = path, positions
        self.points: dict[int, Judgement] = {}
        for step, judgement in self._read().items():
            if resumed_at is None or step < resumed_at:
                self.points[step] = judgement

    def add(self, step: int, judgement: Judgement) -> None:
        """Note the figures at *step* and write the file."""
        self.points[step] = judgement
        rows = [
            {"step": at, **csv_row(figures), "set": self.positions.digest}
            for at, one in ((at, judgement.as_dict()) for at, judgement in sorted(self.points.items()))
            for figures in (one, *one["by_empties"])
        ]
        write_csv(self.path, rows, COLUMNS)

    def figure(self, x_label: str = "steps") -> charts.Figure:
        points = sorted(self.points.items())
        steps, judgements = [step for step, _ in points], [one for _, one in points]
        return curve_figure(steps, judgements, self.positions.random_play(), x_label)

    def _read(self) -> dict[int, Judgement]:
        try:
            rows = read_csv(self.path)
            found: dict[int, dict[str, Any]] = {}
            others = {row["set"] for row in rows} - {self.positions.digest}
            for row in rows:
                figures, step = _figures_of(row), int(row["step"])
                if figures["empties"] is None:
                    found[step] = figures | {"by_empties": []}
                else:
                    found[step]["by_empties"].append(figures)
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise TrainError(
                f"{str(self.path)!r} cannot be read ({error!r}): expected a regret curve's file; delete it to begin anew"
            ) from None
        if others:
            raise TrainError(f"{str(self.path)!r} is of other positions: expected the same, or another file")
        return {step: Judgement.from_dict(figures) for step, figures in found.items()}


def csv_row(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of `Judgement.as_dict`, all or those of one number of empties, as columns of a table."""
    row = {name: value for name, value in figures.items() if not name.endswith("_interval")}
    for name in ("regret", "optimal", "spoilt"):
        row[f"{name}_low"], row[f"{name}_high"] = figures[f"{name}_interval"] or ("", "")
    return row | {"empties": figures["empties"] or "all"}


def _figures_of(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {name: float(row[name]) if row[name] else None for name in COLUMNS[3:-1]}
    for name in ("regret", "optimal", "spoilt"):
        low, high = numbers.pop(f"{name}_low"), numbers.pop(f"{name}_high")
        numbers[f"{name}_interval"] = None if low is None else (low, high)  # type: ignore[assignment]
    return {
        **numbers,
        "empties": None if row["empties"] == "all" else int(row["empties"]),
        "positions": int(row["positions"]),
    }


def bands(empties: Sequence[int], count: int = BANDS) -> list[tuple[int, int]]:
    """Lowest and highest number of empties of up to *count* ranges of about the same length."""
    parts = np.array_split(np.array(sorted(empties)), min(count, len(empties)))
    return [(int(part[0]), int(part[-1])) for part in parts]


def curve_figure(
    steps: Sequence[int], judgements: Sequence[Judgement], chance: Judgement, x_label: str = "steps"
) -> charts.Figure:
    """Regret and share of best moves over training: all positions, ranges of empties, and random play for comparison."""

    def band_mean(judgement: Judgement, band: tuple[int, int], name: str) -> float:
        low, high = band
        return float(np.mean([getattr(p, name) for p in judgement.by_empties if low <= (p.empties or 0) <= high]))

    def draw(figure: Any) -> None:
        ranges = bands([part.empties or 0 for part in chance.by_empties])
        axes = charts.panels(figure, 2, ("discs given away", "best moves, per cent"))
        for axis, name, factor in zip(axes, ("regret", "optimal"), (1, 100), strict=True):
            for band, colour in zip(ranges, charts.COLOURS[1:], strict=False):
                ys = [factor * band_mean(one, band, name) for one in judgements]
                words = f"{band[0]}–{band[1]} empties" if band[0] < band[1] else f"{band[0]} empties"
                axis.plot(steps, ys, color=colour, linewidth=0.9, label=words)
            ys = [factor * getattr(one.overall, name) for one in judgements]
            ends = factor * np.array([getattr(one.overall, f"{name}_interval") for one in judgements]).T
            errors = np.abs(ends - ys)
            axis.errorbar(steps, ys, yerr=errors, color=charts.BLUE, marker="o", elinewidth=0.8, label="all, 95 %")
            level = factor * getattr(chance.overall, name)
            axis.axhline(level, color=charts.GREY, linewidth=0.8, linestyle="--", label="random play")
            axis.set(xlabel=x_label, ylim=(0, 100 if factor == 100 else None))
        axes[1].legend(loc="lower right")

    return charts.Figure("regret-curve", "Endgame regret over training, judged by the exact solver.", draw)
