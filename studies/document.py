"""All experiments in one document: ``docs/lab/experiments.md`` and its figures, measured, not typed.

What is measured is kept as JSON while the run lasts. Interrupted in any way, the same call goes on with the experiment that it
was at; when the document is written, what was kept is removed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reversi_env.rules import Variant
from reversi_env.storage.atomic import write_atomically
from reversi_env.storage.user_cache import cache_folder
from studies.evaluators import depth as search_depth
from studies.evaluators import structural
from studies.game_tree import branching, breadth, nodes, winner
from studies.reports import maximax, report_000, report_001, report_002, report_003, report_004
from studies.reports import tuning as label_tuning
from studies.sections import provenance, with_provenance
from train.jobs.logs import Progress, no_progress
from train.jobs.run import Run
from train.jobs.shipping import build_id

FIGURES = "experiments"


@dataclass(frozen=True)
class Experiment:
    """A study, whose module measures and tells, and the options it is run with for the document."""

    name: str
    study: Any
    runs: tuple[Any, ...]


VARIANTS: tuple[Variant, ...] = ("normal", "reversed")
GAMES = tuple((size, variant) for size in (8, 6, 4) for variant in VARIANTS)
_JUDGED = (
    "network",
    "six-factor",
    "position-stability",
    "ten-weight",
    "sixteen-weight",
    "four-attribute",
    "cell-utility",
    "discs",
    "mobility",
)
_PLAYING = ("network", "six-factor", "position-stability", "ten-weight", "sixteen-weight", "four-attribute")


def experiments() -> tuple[Experiment, ...]:
    evaluator: dict[Variant, str] = {"normal": "six-factor", "reversed": "sixteen-weight"}
    player: dict[Variant, str] = {"normal": "six-factor", "reversed": "ten-weight"}
    depths = {8: 8, 6: 8, 4: 6}
    runs: dict[str, tuple[Any, list[Any]]] = {
        "breadth": (breadth, [breadth.BreadthOptions(*game) for game in GAMES]),
        "nodes": (nodes, [nodes.NodesOptions(*game, evaluator[game[1]]) for game in sorted(GAMES, reverse=True)]),
        "winner": (
            winner,
            [winner.WinnerOptions(*game) for game in GAMES]
            + [winner.WinnerOptions(8, v, player[v], depth=2, games=4000) for v in VARIANTS],
        ),
        "branching": (branching, [branching.BranchingOptions(*game, depth=depths[game[0]]) for game in GAMES]),
        "000": (report_000, [report_000.GammaOptions(games=200)]),
        "001": (report_001, [report_001.LevelOptions(8, v, 400) for v in VARIANTS]),
        "002": (report_002, [report_002.GreedyOptions()]),
        "maximax": (maximax, [maximax.MaximaxOptions(8, v) for v in VARIANTS]),
        "003": (report_003, [report_003.PlyOptions(8, v) for v in VARIANTS]),
        "004": (report_004, [report_004.PruningOptions(8, v) for v in VARIANTS]),
        "tuning": (label_tuning, [label_tuning.LabelTuningOptions(8, v) for v in VARIANTS]),
        "structural": (structural, [structural.StructuralOptions(8, v, _JUDGED) for v in VARIANTS]),
        "depth": (search_depth, [search_depth.DepthOptions(8, v, _PLAYING) for v in VARIANTS]),
    }
    return tuple(Experiment(name, study, tuple(options)) for name, (study, options) in runs.items())


#: The line above a section of the document.
_MARKER = re.compile(r"^<!-- section: (\w+) -->\n", re.M)

# --- the document ---------------------------------------------------------------------------------

_PREFACE = """# Experiments

This page repeats the experiments of five student reports on Reversi programs under the correct rules, with error bars,
and adds statistics of the game. `reversi experiment all --out docs/lab/` writes every table and figure here. With
`--only NAME` it replaces one section. Each section names the machine, the date and the commit of its runs, and the
commands above it repeat it alone (`--json`: for programs). “±” is a 95 % interval. Games between deterministic players
begin with random plies, and each opening is played with both colours. Until the page is written, results are cached in
`~/.cache/reversi-lab/experiments`, or under `REVERSI_CACHE_DIR`. The same command resumes from them if the code has not
changed.

Results follow from the seeds, with two exceptions. Seconds, and the depth and nodes of searches with a time limit,
depend on the machine and its load. Tunings by CMA-ES depend on the processor: its linear algebra rounds differently
there. The candidates of later generations then differ, and so do the resulting weights.

The reports: **000** Reverse-Reversi (CS303), **001** Reversi with a client (CS621), **002** A superb AI for Reversed
Reversi (CS303), **003** Negamax (Comp 6721), **004** Reversi (CS323). Their heuristics are
[evaluators](../reference/evaluators.md) here.
"""


def run_all(
    out: Path,
    *,
    machine: str = "",
    only: Sequence[str] | None = None,
    progress: Progress = no_progress,
    kept_in: Path | None = None,
) -> Path:
    """Measure all experiments, or *only* some, and write their sections and figures into *out*; the document's path."""
    chosen = [one for one in experiments() if only is None or one.name in only]
    kept = (kept_in or cache_folder("experiments")) / _fingerprint(chosen)
    with Run(kept):
        by_name: dict[str, list[dict[str, Any]]] = {}
        for number, experiment in enumerate(chosen):
            by_name[experiment.name] = [
                _measured(experiment, options, kept, machine, _within(progress, experiment.name, number, len(chosen)))
                for options in experiment.runs
            ]
        path = write_document(out, chosen, by_name)
        shutil.rmtree(kept)
    return path


def write_document(out: Path, chosen: Sequence[Experiment], by_name: Mapping[str, Sequence[dict[str, Any]]]) -> Path:
    """The document and its figures from what was measured; a document that exists keeps its other sections."""
    figures, path = out / FIGURES, out / "experiments.md"
    figures.mkdir(parents=True, exist_ok=True)
    _, *old = _MARKER.split(path.read_text("utf-8")) if path.exists() else [""]
    sections = dict(zip(old[::2], old[1::2], strict=True))
    for experiment in chosen:
        results = by_name[experiment.name]
        section = with_provenance(experiment.study.section(results), results)
        sections[experiment.name] = section.markdown(FIGURES)
        for figure in section.figures:
            figure.save(figures / f"{figure.name}.svg")
    names = [one.name for one in experiments() if one.name in sections]
    parts = [f"<!-- section: {name} -->\n{sections[name].strip()}\n" for name in names]
    write_atomically(path, "\n".join([_PREFACE, *parts]).encode())
    return path


def _measured(experiment: Experiment, options: Any, kept: Path, machine: str, progress: Progress) -> dict[str, Any]:
    path = kept / f"{experiment.name}-{_digest(options.as_dict())}.json"
    if path.exists():
        return json.loads(path.read_text())
    made_with = provenance(machine)  # before the run: the code may change while it lasts
    result = experiment.study.measure(options, progress) | made_with
    write_atomically(path, json.dumps(result).encode())
    return json.loads(json.dumps(result))  # as the next call would read it


def _within(progress: Progress, name: str, number: int, total: int) -> Progress:
    def report(task: str, done: int, steps: int) -> None:
        progress(f"{name} ({number + 1} of {total}): {task}", done, steps)

    return report


def _fingerprint(chosen: Sequence[Experiment]) -> str:
    """What results may be put together: those of the same options, code and weights."""
    runs = {one.name: [options.as_dict() for options in one.runs] for one in chosen}
    return _digest(runs | {"build": build_id("studies")})


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
