"""All experiments of ``docs/lab/experiments.md``: their settings, and the update of their results in the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reversi_env.rules import Variant
from reversi_env.storage.atomic import write_atomically
from studies.evaluators import depth
from studies.game_tree import breadth
from studies.reports import report_000, report_001, report_002, report_003, report_004, tuning
from studies.sections import Section, provenance
from train.jobs.logs import Progress, no_progress

FIGURES = "experiments"
#: The lines around the results of a study; `update_page` writes what is between them.
BEGIN, END = "<!-- results: {} -->\n", "<!-- end -->"


@dataclass(frozen=True)
class Experiment:
    """A study with functions ``measure`` and ``section``, and the options of its runs."""

    name: str
    study: Any
    runs: tuple[Any, ...]


VARIANTS: tuple[Variant, ...] = ("normal", "reversed")
GAMES = tuple((size, variant) for size in (8, 6, 4) for variant in VARIANTS)
PLAYING = ("network", "six-factor", "position-stability", "ten-weight", "sixteen-weight", "four-attribute")


def experiments() -> tuple[Experiment, ...]:
    runs: dict[str, tuple[Any, list[Any]]] = {
        "breadth": (breadth, [breadth.BreadthOptions(*game) for game in GAMES]),
        "000": (report_000, [report_000.GammaOptions(games=200)]),
        "001": (report_001, [report_001.LevelOptions(8, v, 400) for v in VARIANTS]),
        "002": (report_002, [report_002.GreedyOptions()]),
        "003": (report_003, [report_003.PlyOptions(8, v) for v in VARIANTS]),
        "004": (report_004, [report_004.PruningOptions(8, v) for v in VARIANTS]),
        "tuning": (tuning, [tuning.LabelTuningOptions(8, v) for v in VARIANTS]),
        "depth": (depth, [depth.DepthOptions(8, v, PLAYING) for v in VARIANTS]),
    }
    return tuple(Experiment(name, study, tuple(options)) for name, (study, options) in runs.items())


def run_all(
    out: Path, *, machine: str = "", only: Sequence[str] | None = None, progress: Progress = no_progress
) -> Path:
    """Measure all experiments, or *only* some; each one is written into the page in *out* when it is done."""
    chosen = [one for one in experiments() if only is None or one.name in only]
    path = out / "experiments.md"
    for number, experiment in enumerate(chosen, 1):
        shown = partial(_show_within, progress, f"{experiment.name} ({number} of {len(chosen)})")
        results = []
        for options in experiment.runs:
            origin = provenance(machine)  # before the run: the code may change while it lasts
            results.append(experiment.study.measure(options, shown) | origin)
        update_page(path, experiment.study.section(results))
    return path


def _show_within(progress: Progress, name: str, task: str, done: int, total: int) -> None:
    progress(f"{name}: {task}", done, total)


def update_page(path: Path, section: Section) -> None:
    """Write the results of a study between its two lines of the page, and write its figures."""
    figures = path.parent / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for figure in section.figures:
        figure.save(figures / f"{figure.name}.svg")
    text, begin = path.read_text("utf-8") if path.exists() else "# Experiments\n", BEGIN.format(section.name)
    if begin not in text:
        text += f"\n## {section.title}\n\n{begin}{END}\n"
    before, _, rest = text.partition(begin)
    after = rest.partition(END)[2]
    write_atomically(path, f"{before}{begin}\n{section.markdown(FIGURES)}\n\n{END}{after}".encode())
