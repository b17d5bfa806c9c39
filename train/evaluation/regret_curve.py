"""`RegretCurve`: regret in discs and share of best moves of a player in training, in endgames with exact scores."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError
from train import charts
from train.evaluation.exact_set import ExactSet, Judgement
from train.jobs.logs import read_csv, write_csv

#: Files of a curve.
CURVE, PLOT = "regret.csv", "regret.svg"
#: Number of ranges of empties that have a line in the plot.
BANDS = 3
#: Columns of the file: at each step, a line for all empties together ("all") and one per number of empties. ``…_low`` and
#: ``…_high`` are the ends of 95 % confidence intervals.
COLUMNS = (
    *("step", "empties", "positions", "regret", "regret_standard_error", "regret_low", "regret_high"),
    *("optimal", "optimal_standard_error", "optimal_low", "optimal_high", "spoilt", "spoilt_low", "spoilt_high", "set"),
)


class RegretCurve:
    """The judgements of one player in training, by step, in a CSV file.

    An existing file is continued; its steps from *resumed_at* on are dropped, since the training repeats them.
    """

    def __init__(self, path: Path, positions: ExactSet, *, resumed_at: int | None = None) -> None:
        self.path, self.positions = path, positions
        self.points: dict[int, Judgement] = {}
        for step, judgement in self._read().items():
            if resumed_at is None or step < resumed_at:
                self.points[step] = judgement

    def add(self, step: int, judgement: Judgement) -> None:
        """Add the judgement at *step* and write the file."""
        self.points[step] = judgement
        rows = [
            {"step": at, **csv_row(statistics), "set": self.positions.digest}
            for at, overall in ((at, judgement.as_dict()) for at, judgement in sorted(self.points.items()))
            for statistics in (overall, *overall["by_empties"])
        ]
        write_csv(self.path, rows, COLUMNS)

    def figure(self) -> charts.Figure:
        steps = sorted(self.points)
        return curve_figure(steps, [self.points[step] for step in steps], self.positions.random_play())

    def _read(self) -> dict[int, Judgement]:
        try:
            rows = read_csv(self.path)
            by_step: dict[int, dict[str, Any]] = {}
            others = {row["set"] for row in rows} - {self.positions.digest}
            for row in rows:
                statistics, step = _statistics_of(row), int(row["step"])
                if statistics["empties"] is None:
                    by_step[step] = statistics | {"by_empties": []}
                else:
                    by_step[step]["by_empties"].append(statistics)
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise TrainError(
                f"{str(self.path)!r} cannot be read ({error!r}): expected the file of a regret curve; delete it to start again"
            ) from None
        if others:
            raise TrainError(f"{str(self.path)!r} is of other positions: expected the same, or another file")
        return {step: Judgement.from_dict(statistics) for step, statistics in by_step.items()}


def csv_row(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of `Judgement.as_dict`, all or those of one number of empties, as columns of a table."""
    row = {name: value for name, value in statistics.items() if not name.endswith("_interval")}
    for name in ("regret", "optimal", "spoilt"):
        row[f"{name}_low"], row[f"{name}_high"] = statistics[f"{name}_interval"] or ("", "")
    return row | {"empties": statistics["empties"] or "all"}


def _statistics_of(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {name: float(row[name]) if row[name] else None for name in COLUMNS[3:-1]}
    for name in ("regret", "optimal", "spoilt"):
        low, high = numbers.pop(f"{name}_low"), numbers.pop(f"{name}_high")
        numbers[f"{name}_interval"] = None if low is None else (low, high)  # type: ignore[assignment]
    return {
        **numbers,
        "empties": None if row["empties"] == "all" else int(row["empties"]),
        "positions": int(row["positions"]),
    }


def curve_figure(steps: Sequence[int], judgements: Sequence[Judgement], chance: Judgement) -> charts.Figure:
    """Return a plot of regret and share of best moves by step: all positions, ranges of empties, and random play."""

    def band_mean(judgement: Judgement, band: tuple[int, int], name: str) -> float:
        low, high = band
        return float(np.mean([getattr(p, name) for p in judgement.by_empties if low <= (p.empties or 0) <= high]))

    def draw(figure: Any) -> None:
        empties = np.array([part.empties for part in chance.by_empties])
        ranges = [(part[0], part[-1]) for part in np.array_split(empties, min(BANDS, len(empties)))]
        axes = charts.panels(figure, 2, ("regret, discs per move", "best moves, per cent"))
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
            axis.set(xlabel="steps", ylim=(0, 100 if factor == 100 else None))
        axes[1].legend(loc="lower right")

    return charts.Figure("regret-curve", "Endgame regret over training, judged by the exact solver.", draw)
