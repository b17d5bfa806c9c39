"""Regret of players in solved endgames, in discs, and the share of best moves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from reversi_env.errors import TrainError
from search import agents
from studies.figures import Panel, Series, figure
from studies.sections import Block, Cell, Results, Row, game_name, interval_cell, report, table
from train.charts import Figure
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import Judgement
from train.evaluation.options import EndgameOptions
from train.evaluation.regret_curve import COLUMNS, csv_row, curve_figure
from train.jobs.logs import Progress, csv_text, no_progress

#: Players by default.
LADDER = ("random", "greedy", "cell-utility:depth=1", "six-factor:depth=1", "network:depth=1")
#: The last number of a checkpoint's name, such as runs/ppo/step-120000.safetensors.
_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True)
class RegretMeasure:
    """Players and positions; with ``curve``, the players are checkpoints of one training, in this order."""

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
            agents.make_agent(spec).close()  # raises errors before the solving, not after it

    @property
    def command(self) -> str:
        chosen, (low, high) = self.positions, self.positions.span
        words = " ".join(f"'{spec}'" if " " in spec else spec for spec in self.agents)
        return (
            f"reversi measure regret {words} --size {chosen.size} --variant {chosen.variant} --positions "
            f"{chosen.positions} --empties {low}-{high} --seed {chosen.seed}{' --curve' if self.curve else ''}"
        )


def measure(
    options: RegretMeasure, progress: Progress = no_progress, *, cache: Path | None = None, threads: int | None = None
) -> dict[str, Any]:
    """Return the results of every player and of random play, for JSON."""
    positions = noisy_endgames(options.positions, cache, threads=threads, progress=progress)
    players = []
    for number, spec in enumerate(options.agents):
        began, agent = perf_counter(), agents.make_agent(spec)
        try:
            judged = positions.regret(agent, lambda done, total, spec=spec: progress(spec, done, total))  # type: ignore[misc]
        finally:
            agent.close()
        step = step_of(spec, number) if options.curve else None
        players.append({"agent": spec, "step": step, **judged.as_dict(), "seconds": perf_counter() - began})
    return {
        "size": options.positions.size,
        "variant": options.positions.variant,
        "set": positions.digest,
        "positions": len(positions),
        "mean_absolute_score": float(np.abs(positions.scores).mean()),
        "agents": players,
        "chance": positions.random_play().as_dict(),
        "curve": options.curve,
        "command": options.command,
    }


def step_of(spec: str, number: int) -> int:
    """Return the step in a checkpoint's name, ``…/step-120000.safetensors``; without a number its place in the list."""
    digits = _LAST_NUMBER.search(spec.rpartition("/")[2])
    return int(digits[1]) if digits else number


def to_csv(result: Row) -> str:
    """Return the results of `measure` with a line per player and number of empties, and one for all ("all")."""
    rows = [
        {**csv_row(row), "agent": entry["agent"], "set": result["set"]}
        for entry in _with_chance(result)
        for row in (entry, *entry["by_empties"])
    ]
    return csv_text(rows, ["agent", *(name for name in COLUMNS if name != "step")])


@report("regret")
def section(results: Results) -> Iterator[Block]:
    """Regret in solved endgames."""
    for one in results:
        columns: dict[str, Cell] = {
            "player": "{agent}",
            "regret, discs per move": interval_cell("regret", 2),
            "best moves, %": interval_cell("optimal", 1, 100),
            "results changed, %": interval_cell("spoilt", 1, 100),
            "ms/move": lambda row, n=one["positions"]: f"{1000 * row['seconds'] / n:.1f}" if "seconds" in row else "",  # type: ignore[misc]
        }
        title = f"{game_name(one)}: {one['positions']} endgames with a choice (set {one['set']}), judged by the solver"
        yield table(f"{title}; in brackets 95 % intervals", _with_chance(one), columns)
        empties = [str(part["empties"]) for part in one["chance"]["by_empties"]]
        columns = {"empties": "{agent}"}
        columns |= {name: f"{{by_empties[{place}][regret]:.1f}}" for place, name in enumerate(empties)}
        yield table("regret in discs per move, by empty squares", _with_chance(one), columns)
        yield _figure(one)


def _with_chance(one: Row) -> list[dict[str, Any]]:
    return [*one["agents"], {"agent": "random play", **one["chance"]}]


def _figure(one: Row) -> Figure:
    if one["curve"]:
        ordered = sorted(one["agents"], key=lambda entry: entry["step"])
        judgements = [Judgement.from_dict(entry) for entry in ordered]
        return curve_figure([entry["step"] for entry in ordered], judgements, Judgement.from_dict(one["chance"]))
    panels = []
    for title, key, factor in (("regret, discs per move", "regret", 1), ("best moves, per cent", "optimal", 100)):
        series = []
        for entry in _with_chance(one):
            parts = entry["by_empties"]
            values = [factor * part[key] for part in parts]
            series.append(Series(entry["agent"], [part["empties"] for part in parts], values))
        panels.append(Panel(title, series, {"xlabel": "empty squares", "ylim": (0, None)}))
    return figure("regret", "Endgame regret by empty squares, judged by the exact solver.", panels, height=3.4)
