"""The commands of `reversi experiment` and `reversi measure`: studies, measured and shown.

`experiment` repeats the measurements of five reports; `measure` measures evaluators by the search depth that they allow, and
players in solved endgames. A study is imported when its command runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from play.cli.options import (
    NOTHING,
    Cache,
    Json,
    Plot,
    Threads,
    checked_parent,
    checked_plot,
    flag,
    make_folder,
    options_of,
    text,
)
from play.cli.output import exit_on_interrupt, print_json, progress_bar
from studies import options
from train.evaluation.options import EndgameOptions

if TYPE_CHECKING:
    from studies.sections import Section

experiment = App(
    name="experiment",
    help="Repeat the experiments of docs/lab/experiments.md.\n\n"
    "Reports 000 to 004 are five student reports on Reversi programs (docs/lab/reports.md).",
)
measure = App(
    name="measure",
    help="Measure evaluators and players: search depth, regret.\n\n"
    "Report 002 is one of five student reports on Reversi programs (docs/lab/reports.md).",
)
RegretChoice: Any = options_of(EndgameOptions)

DepthChoice: Any = options_of(options.DepthOptions)

#: Every experiment by its name: its options, its module in `studies`, and its help.
EXPERIMENTS: dict[str, tuple[type[options.StudyOptions], str, str]] = {
    "breadth": (options.BreadthOptions, "game_tree.breadth", "Legal moves by round in random play."),
    "000": (options.GammaOptions, "reports.report_000", "Report 000: weight γ of position-stability, and two tables."),
    "001": (options.LevelOptions, "reports.report_001", "Report 001: levels 1 to 4 against each other."),
    "002": (options.GreedyOptions, "reports.report_002", "Report 002: one-ply play, published and tuned weights."),
    "003": (options.PlyOptions, "reports.report_003", "Report 003: final score by the plies searched."),
    "004": (options.PruningOptions, "reports.report_004", "Report 004: nodes without and with alpha-beta."),
    "tuning": (options.LabelTuningOptions, "reports.tuning", "Every report's weights tuned against exact scores."),
}


def _experiment(name: str) -> Callable[..., None]:
    """Return the command of an experiment, whose module is imported when the command runs."""
    kind, module, _ = EXPERIMENTS[name]

    def command(*, chosen: Any = NOTHING, plot: Plot = None, as_json: Json = False) -> None:
        study = import_module(f"studies.{module}")
        show(study.measure, study.section, kind(**chosen), as_json, plot)

    command.__annotations__["chosen"] = options_of(kind)
    return command


for _name in EXPERIMENTS:
    experiment.command(_experiment(_name), name=_name, help=EXPERIMENTS[_name][2])


def show(
    measure: Callable[..., dict[str, Any]],
    section: Callable[..., Section],
    chosen: Any,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure, then print the result as JSON or as tables, and write the plot if requested."""
    from play.interrupt import abandonable
    from studies.sections import provenance
    from train.jobs.provenance import cpu_name

    checked_plot(plot)
    with exit_on_interrupt("reversi: interrupted"), progress_bar() as progress:
        origin = provenance(cpu_name())  # before the run: the code may change while it lasts
        result = abandonable(lambda: measure(chosen, progress)) | origin
    report = section([result])
    if plot is not None and report.figures:
        report.figures[0].save(plot)
    if as_json:
        print_json(result)
    else:
        report.show()


@experiment.command(name="all")
def everything(
    *,
    out: Annotated[Path, text("Folder for experiments.md and its figures.", "--out", metavar="DIR")] = Path("docs/lab"),
    only: Annotated[list[str] | None, text("Only this experiment; repeat for more.", metavar="NAME")] = None,
) -> None:
    """Measure everything and write the results into docs/lab/experiments.md.

    Takes some minutes. The results of each experiment are written when it is
    done; --only repeats some experiments.
    """
    from play.interrupt import abandonable
    from reversi_env.errors import ReversiError, require
    from studies.page import experiments, run_all
    from train.jobs.provenance import cpu_name

    require("matplotlib")
    names = [one.name for one in experiments()]
    for name in only or ():
        if name not in names:
            raise ReversiError(f"experiment {name!r} is unknown: expected one of {', '.join(names)}")
    make_folder("--out", out)
    with exit_on_interrupt("reversi: interrupted; --only measures what is missing"), progress_bar() as progress:
        path = abandonable(lambda: run_all(out, machine=cpu_name(), only=only, progress=progress))
    print(path)


@measure.command(name="depth")
def depth(
    *names: Annotated[
        str, Parameter(name="EVALUATOR", help="For example network six-factor (default: those of the reports).")
    ],
    chosen: DepthChoice = NOTHING,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Measure depth and nodes at equal time, and plies of search gained over a baseline (model 4 of report 002).

    Example: reversi measure depth network --baseline six-factor
    """
    from studies.evaluators import depth as module

    show(module.measure, module.section, options.DepthOptions(names=names, **chosen), as_json, plot)


@measure.command(name="regret")
def regret(
    *names: Annotated[
        str, Parameter(name="AGENT", help="Agent specs (default: five, from random to network:depth=1).")
    ],
    chosen: RegretChoice = NOTHING,
    curve: Annotated[bool, flag("The agents are checkpoints of one training.")] = False,
    csv: Annotated[Path | None, text("Write all results to FILE.csv.", metavar="FILE")] = None,
    cache: Cache = None,
    threads: Threads = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Measure regret, the discs lost per move, of players in solved endgames.

    Example: reversi measure regret greedy six-factor:depth=1 network:depth=1 -n 6

    All players get the same positions, from games with some random moves. The
    solver has the value of every move. Players that solve endgames themselves
    have no regret from there on.

    With --curve the players are checkpoints of one training, and the plot is
    drawn over the last number in their names, as in rl:step-100000.safetensors.
    """
    from studies.evaluators import regret as module

    checked_parent("--csv", csv)
    if cache is not None:
        make_folder("--cache", cache)
    wanted = module.RegretMeasure(names, EndgameOptions(**chosen), curve)

    def measured(wanted: Any, progress: Any) -> dict[str, Any]:
        result = module.measure(wanted, progress, cache=cache, threads=threads)
        if csv is not None:
            csv.write_text(module.to_csv(result), "utf-8")
        return result

    show(measured, module.section, wanted, as_json, plot)
