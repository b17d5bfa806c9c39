"""The commands of `reversi experiment` and `reversi measure`: studies, measured and shown.

`experiment`: statistics of the game, and the measurements of five reports repeated. `measure`: evaluators by two of report
002's performance models, and players in solved endgames. A study is loaded when its command runs.
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
    help="Measure evaluators and players: errors, search depth, regret.\n\n"
    "Report 002 is one of five student reports on Reversi programs (docs/lab/reports.md).",
)
RegretChoice: Any = options_of(EndgameOptions)

#: By group and name, every study whose command is made from its options: its module in `studies`, and its help.
STUDIES = {
    "experiment": {
        "breadth": ("game_tree.breadth", "Legal moves by round in random play, and the report's figure."),
        "winner": ("game_tree.winner", "Corners, stable discs, moves and discs of the later winner by round."),
        "000": ("reports.report_000", "Report 000: weight γ of the evaluator position-stability, and its two tables."),
        "001": ("reports.report_001", "Report 001: levels 1 to 4 against each other."),
        "002": ("reports.report_002", "Report 002: greedy and greedy-invincible play, published and tuned weights."),
        "003": ("reports.report_003", "Report 003: final score by the plies searched, in both colours."),
        "004": ("reports.report_004", "Report 004: nodes and branching factor without and with alpha-beta."),
        "tuning": ("reports.tuning", "Every report's weights tuned against exact scores."),
    },
    "measure": {
        "structural": (
            "evaluators.structural",
            "Errors against exact scores, summed over the tree below a position (model 3 of report 002)."
            "\n\nExample: reversi measure structural network six-factor",
        ),
        "depth": (
            "evaluators.depth",
            "Depth and nodes at equal time, and plies of search gained over a baseline (model 4 of report 002)."
            "\n\nExample: reversi measure depth network --baseline six-factor",
        ),
    },
}
EvaluatorNames = Annotated[
    str, Parameter(name="EVALUATOR", help="For example network six-factor (default: those of the reports).")
]


def __getattr__(name: str) -> Any:
    """Return the command of a study, called by its group and name; its options are those of the study."""
    group, _, study = name.partition(" ")
    if study not in STUDIES.get(group, {}):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from studies import options as all_options

    options: Any = next(value for value in vars(all_options).values() if getattr(value, "study", None) == name)
    path = f"studies.{STUDIES[group][study][0]}"

    def command(*names: str, chosen: Any = NOTHING, plot: Plot = None, as_json: Json = False) -> None:
        module = import_module(path)
        show(module.measure, module.section, options(names=names, **chosen), as_json, plot)

    def command_without_names(*, chosen: Any = NOTHING, plot: Plot = None, as_json: Json = False) -> None:
        module = import_module(path)
        show(module.measure, module.section, options(**chosen), as_json, plot)

    result = command if issubclass(options, all_options.EvaluatorStudyOptions) else command_without_names
    result.__annotations__ |= {"chosen": options_of(options), "names": EvaluatorNames}
    return result


for _group, _app in (("experiment", experiment), ("measure", measure)):
    for _name, (_, _help) in STUDIES[_group].items():
        _app.command(f"studies.commands:{_group} {_name}", name=_name, help=_help)


def show(
    measure: Callable[..., dict[str, Any]],
    section: Callable[..., Section],
    options: Any,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure, then print the result as JSON or as tables, and write the figure if it is asked for."""
    from play.interrupt import abandonable
    from studies.sections import provenance
    from train.jobs.provenance import cpu_name

    checked_plot(plot)
    with exit_on_interrupt("reversi: interrupted"), progress_bar() as progress:
        made_with = provenance(cpu_name())  # before the run: the code may change while it lasts
        result = abandonable(lambda: measure(options, progress)) | made_with
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

    Takes some minutes. Every experiment is written when it is done; --only
    repeats one, or those that are missing.
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
    options = module.RegretMeasure(names, EndgameOptions(**chosen), curve)

    def measured(options: Any, progress: Any) -> dict[str, Any]:
        result = module.measure(options, progress, cache=cache, threads=threads)
        if csv is not None:
            csv.write_text(module.to_csv(result), "utf-8")
        return result

    show(measured, module.section, options, as_json, plot)
