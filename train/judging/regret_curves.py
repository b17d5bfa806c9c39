"""Regret: what players give away in endgames, in discs, and how often they find a best move; side by side or over a training.

The judge is exact (`train.judging.exact`): no opponent, no luck and no rating is in these figures. Nothing here imports
torch; a policy in training is judged by `train.rl.regret_callback`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from search import agents
from train import charts
from train.charts import Figure, Section, Table, game_name, with_error
from train.errors import TrainError
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import ExactSet, Figures, Judgement
from train.progress import Progress, silent
from train.run import csv_text, read_csv, write_csv

#: Who is judged if nobody is named.
LADDER = ("random", "greedy", "cell-utility:depth=1", "six-factor:depth=1", "network:depth=1")
#: Lines of a curve besides that of all positions: so many ranges of empties.
BANDS = 3
#: How a spec ends that belongs to a point of a training: runs/ppo/step-120000.zip.
_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")


# --- over a training ------------------------------------------------------------------------------

#: Columns of a curve's file: a line for all empties together ("all") and for each number of them, at each step.
COLUMNS = ("step", "empties", "positions", "regret", "regret_error", "optimal", "optimal_error", "spoilt", "set")


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
            {"step": at, **asdict(figures), "empties": figures.empties or "all", "set": self.positions.digest}
            for at, one in sorted(self.points.items())
            for figures in (one.overall, *one.by_empties)
        ]
        write_csv(self.path, rows, COLUMNS)

    def figure(self, x_label: str = "steps") -> Figure:
        """The curve, drawn."""
        points = sorted(self.points.items())
        steps, judgements = [step for step, _ in points], [one for _, one in points]
        return curve_figure(steps, judgements, self.positions.random_play(), x_label)

    def _read(self) -> dict[int, Judgement]:
        try:
            rows = read_csv(self.path)
            found: dict[int, list[Figures]] = {}
            others = {row["set"] for row in rows} - {self.positions.digest}
            for row in rows:
                if row["empties"] != "all":
                    numbers = [float(row[name]) for name in COLUMNS[3:8]]
                    found.setdefault(int(row["step"]), []).append(
                        Figures(int(row["empties"]), int(row["positions"]), *numbers)
                    )
        except (ValueError, KeyError, TypeError, csv.Error) as error:
            raise TrainError(
                f"{str(self.path)!r} cannot be read ({error!r}): expected a regret curve's file; delete it to begin anew"
            ) from None
        if others:
            raise TrainError(f"{str(self.path)!r} is of other positions: expected the same, or another file")
        return {step: Judgement(tuple(parts)) for step, parts in found.items()}


def bands(empties: Sequence[int], count: int = BANDS) -> list[tuple[int, int]]:
    """Lowest and highest number of empties of up to *count* ranges of about the same length."""
    parts = np.array_split(np.array(sorted(empties)), min(count, len(empties)))
    return [(int(part[0]), int(part[-1])) for part in parts]


def curve_figure(
    steps: Sequence[int], judgements: Sequence[Judgement], chance: Judgement, x_label: str = "steps"
) -> Figure:
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
            errors = [factor * getattr(one.overall, f"{name}_error") for one in judgements]
            axis.errorbar(steps, ys, yerr=errors, color=charts.BLUE, marker="o", elinewidth=0.8, label="all")
            level = factor * getattr(chance.overall, name)
            axis.axhline(level, color=charts.GREY, linewidth=0.8, linestyle="--", label="random play")
            axis.set(xlabel=x_label, ylim=(0, 100 if factor == 100 else None))
        axes[1].legend(loc="lower right")

    return Figure("regret-curve", "Endgame regret over training, judged by the exact solver.", draw)


# --- players side by side -------------------------------------------------------------------------


@dataclass(frozen=True)
class RegretMeasure:
    """Which players on which positions; with ``curve``, the players are points of one training, in this order."""

    agents: tuple[str, ...] = ()
    positions: EndgameOptions = EndgameOptions()  # noqa: RUF009 - frozen
    curve: bool = False

    def __post_init__(self) -> None:
        if not self.agents:
            object.__setattr__(self, "agents", LADDER)
        if len(set(self.agents)) < len(self.agents):
            twice = next(spec for spec in self.agents if self.agents.count(spec) > 1)
            raise TrainError(f"agent {twice!r} is given twice: expected every agent once")
        for spec in self.agents:
            agents.make(spec).close()  # what is wrong is said now, not after the solving

    @property
    def command(self) -> str:
        """What repeats it."""
        chosen, (low, high) = self.positions, self.positions.span
        words = " ".join(f"'{spec}'" if " " in spec else spec for spec in self.agents)
        return (
            f"reversi measure regret {words} --size {chosen.size} --variant {chosen.variant} --positions "
            f"{chosen.positions} --empties {low}-{high} --seed {chosen.seed}{' --curve' if self.curve else ''}"
        )


def measure(
    options: RegretMeasure, progress: Progress = silent, *, cache: Path | None = None, threads: int | None = None
) -> dict[str, Any]:
    """The figures of every player, and of random play, as JSON has them."""
    positions = noisy_endgames(options.positions, cache, threads=threads, progress=progress)
    found = []
    for number, spec in enumerate(options.agents):
        began, agent = perf_counter(), agents.make(spec)
        try:
            judged = positions.regret(agent, lambda done, total, spec=spec: progress(spec, done, total))  # type: ignore[misc]
        finally:
            agent.close()
        step = step_of(spec, number) if options.curve else None
        found.append({"agent": spec, "step": step, **judged.as_dict(), "seconds": perf_counter() - began})
    told: dict[str, Any] = {
        "size": options.positions.size,
        "variant": options.positions.variant,
        "set": positions.digest,
    }
    told |= {"positions": len(positions), "mean_absolute_score": float(np.abs(positions.scores).mean())}
    return told | {
        "agents": found,
        "chance": positions.random_play().as_dict(),
        "curve": options.curve,
        "command": options.command,
    }


def step_of(spec: str, number: int) -> int:
    """The point of a training that a checkpoint's name tells, ``…/step-120000.zip``; without a number its place."""
    digits = _LAST_NUMBER.search(spec.rpartition("/")[2])
    return int(digits[1]) if digits else number


def to_csv(found: Mapping[str, Any]) -> str:
    """All figures of `measure`: a line for each player and number of empties, and one for all ("all")."""
    rows = [
        {**row, "agent": entry["agent"], "empties": row["empties"] or "all", "set": found["set"]}
        for entry in (*found["agents"], {"agent": "random play", **found["chance"]})
        for row in (entry, *entry["by_empties"])
    ]
    return csv_text(rows, ["agent", *(name for name in COLUMNS if name != "step")])


def section(found: Sequence[dict[str, Any]]) -> Section:
    """Two tables for every game, and a figure."""
    blocks: list[str | Table | Figure] = []
    for one in found:
        blocks.extend([_overview(one), _by_empties(one), _figure(one)])
    return Section("regret", "Endgame regret", [one["command"] for one in found], blocks)


def _overview(one: Mapping[str, Any]) -> Table:
    rows = []
    for entry in (*one["agents"], {"agent": "random play, expected", **one["chance"]}):
        speed = f"{1000 * entry['seconds'] / one['positions']:.1f}" if "seconds" in entry else ""
        rows.append(
            [
                entry["agent"],
                with_error(entry["regret"], entry["regret_error"], 2),
                with_error(100 * entry["optimal"], 100 * entry["optimal_error"], 1),
                f"{100 * entry['spoilt']:.1f}",
                speed,
            ]
        )
    title = f"{game_name(one)}: {one['positions']} endgames with a choice (set {one['set']}), judged by the solver"
    return Table(title, ["player", "discs given away", "best moves, %", "results spoilt, %", "ms a move"], rows)


def _by_empties(one: Mapping[str, Any]) -> Table:
    parts = one["chance"]["by_empties"]
    rows = [
        [entry["agent"], *(f"{part['regret']:.1f}" for part in entry["by_empties"])]
        for entry in (*one["agents"], {"agent": "random play", **one["chance"]})
    ]
    return Table("discs given away, by empty squares", ["empties", *(str(part["empties"]) for part in parts)], rows)


def _read_judgement(entry: Mapping[str, Any]) -> Judgement:
    return Judgement(tuple(Figures(**part) for part in entry["by_empties"]))


def _figure(one: Mapping[str, Any]) -> Figure:
    if one["curve"]:
        ordered = sorted(one["agents"], key=lambda entry: entry["step"])
        judgements = [_read_judgement(entry) for entry in ordered]
        return curve_figure([entry["step"] for entry in ordered], judgements, _read_judgement(one["chance"]))

    def draw(figure: Any) -> None:
        axes = charts.panels(figure, 2, ("discs given away", "best moves, per cent"))
        entries = [*one["agents"], {"agent": "random play", **one["chance"]}]
        for axis, name, factor in zip(axes, ("regret", "optimal"), (1, 100), strict=True):
            for number, entry in enumerate(entries):
                last = number == len(entries) - 1
                colour = charts.GREY if last else charts.COLOURS[number % len(charts.COLOURS)]
                xs = [part["empties"] for part in entry["by_empties"]]
                ys = [factor * part[name] for part in entry["by_empties"]]
                axis.plot(
                    xs,
                    ys,
                    color=colour,
                    linestyle="--" if last else "-",
                    marker=None if last else "o",
                    label=entry["agent"],
                )
            axis.set(xlabel="empty squares", ylim=(0, 101 if factor == 100 else None))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return Figure("regret", "Endgame regret by empty squares, judged by the exact solver.", draw, height=3.4)
