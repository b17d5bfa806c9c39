"""The commands of `reversi experiment` and `reversi measure`: studies, measured and shown.

`experiment`: statistics of the game, and what five reports measured, measured again. `measure`: how good evaluators are, by two of
report 002's performance models, and players in solved endgames.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.job_options import given, options_from
from play.cli.options import Json, Threads, checked_parent, checked_plot, complete_spec, made_folder
from play.cli.output import ends_at_ctrl_c, print_json, progress_bar
from play.cli.usage import Application

if TYPE_CHECKING:
    from studies.sections import Section

experiment = Application(help="Repeat the experiments of docs/experiments.md.", no_args_is_help=True)
measure = Application(
    help="Measure evaluators and players: errors over whole trees, depth of search, regret.", no_args_is_help=True
)

Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure: FILE.svg, .png or .pdf.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="EVALUATOR", help="For example [b]network six-factor[/b]; default: the reports'."),
]


def add_study(app: Application, name: str, place: str, words: str, *, takes_evaluators: bool = False) -> None:
    """Add the command *name* for the study with options at *place* in `studies`; *words* are its help."""
    module, _, options = place.partition(":")

    def run(context: typer.Context, plot: Path | None, as_json: bool, **more: Any) -> None:
        one = import_module(f"studies.{module}")
        show(one.measure, one.section, getattr(one, options)(**given(context), **more), as_json, plot)

    def study(context: typer.Context, plot: Plot = None, as_json: Json = False) -> None:
        run(context, plot, as_json)

    def study_of(context: typer.Context, names: Names = None, plot: Plot = None, as_json: Json = False) -> None:
        run(context, plot, as_json, names=tuple(names or ()))

    command: Any = study_of if takes_evaluators else study
    app.command(name, help=words)(options_from(f"studies.{place}")(command))


def show(
    measure: Callable[..., dict[str, Any]],
    section: Callable[..., Section],
    options: Any,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure, then print the result as JSON or as tables, and write the figure if it is asked for."""
    from play.cli.interrupt import abandonable
    from play.machine import cpu_name
    from studies.sections import print_section, with_provenance
    from studies.study import provenance

    checked_plot(plot)
    with ends_at_ctrl_c("reversi: interrupted"), progress_bar() as progress:
        made_with = provenance(cpu_name())  # before the run: the code may change while it lasts
        found = abandonable(lambda: measure(options, progress)) | made_with
    told = with_provenance(section([found]), [found])
    if plot is not None and told.figures:
        told.figures[0].save(plot)
    if as_json:
        print_json(found)
    else:
        print_section(told)


# --- reversi experiment -------------------------------------------------------------------------------

#: The studies with a command of their own: the class of its options in `studies`, and what it shows.
STUDIES = {
    "breadth": ("breadth:BreadthOptions", "Legal moves by round in random play, and the report's figure."),
    "nodes": ("nodes:NodesOptions", "Nodes of alpha-beta at depth 2, 4, 6 and 8 by round, against b^d and b^(d/2)."),
    "winner": ("winner:WinnerOptions", "Corners, safe discs, moves and discs of the later winner by round."),
    "branching": (
        "branching:BranchingOptions",
        "Effective branching factor, with each refinement of the search added in turn.",
    ),
    "000": ("report_000:GammaOptions", "Report 000: position-stability by its weight γ, and with its two tables."),
    "001": ("report_001:LevelOptions", "Report 001: levels 1 to 4 against each other."),
    "002": (
        "report_002:GreedyOptions",
        "Report 002: greedy and greedy-invincible play, with published and with tuned weights.",
    ),
    "maximax": (
        "maximax:MaximaxOptions",
        "Report 002: Double-Alpha Maximax against alpha-beta, at equal depth and at equal time.",
    ),
    "003": ("report_003:PlyOptions", "Report 003: final score by the plies searched, in both colours."),
    "004": ("report_004:PruningOptions", "Report 004: nodes and branching factor without and with alpha-beta."),
    "tuning": ("label_tuning:LabelTuningOptions", "Every report's weights tuned against exact scores."),
    "losses": ("losses:LossesOptions", "Networks fitted with the plain and with the structural loss, side by side."),
    "networks": ("networks:NetworksOptions", "All kinds of networks fitted to the same labels, side by side."),
}


for _name, (_place, _words) in STUDIES.items():
    add_study(experiment, _name, _place, _words)


@experiment.command("all")
def everything(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for experiments.md and its figures.")] = Path("docs"),
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only this section; may be repeated. The page keeps its other sections."),
    ] = None,
) -> None:
    """Run everything and write docs/experiments.md with its figures.

    Takes 12 minutes of processor time on a Neoverse-N1. The same command
    resumes after Ctrl-C or a crash: until the page is written, results are
    cached in ~/.cache/reversi-lab/experiments, or under REVERSI_CACHE_DIR.
    """
    from play.cli.interrupt import abandonable
    from play.machine import cpu_name
    from reversi_env.errors import ReversiError
    from reversi_env.extras import require
    from studies.suite import experiments, run_all

    require("matplotlib")
    known = [one.name for one in experiments()]
    for name in only or ():
        if name not in known:
            raise ReversiError(f"experiment {name!r} is unknown: expected one of {', '.join(known)}")
    made_folder("--out", out)
    with ends_at_ctrl_c("reversi: interrupted; the same command goes on"), progress_bar() as progress:
        path = abandonable(lambda: run_all(out, machine=cpu_name(), only=only, progress=progress))
    print(path)


# --- reversi measure ----------------------------------------------------------------------------------

add_study(
    measure,
    "structural",
    "structural:StructuralOptions",
    """Performance model 3: errors against exact scores, summed over the tree below a position.

    Example: reversi measure structural network six-factor
    """,
    takes_evaluators=True,
)
add_study(
    measure,
    "depth",
    "search_depth:DepthOptions",
    """Performance model 4: depth and nodes at equal time, and plies of search gained over a baseline.

    Example: reversi measure depth network --baseline six-factor
    """,
    takes_evaluators=True,
)
add_study(
    measure,
    "levels",
    "levels:LadderOptions",
    """The ladder of levels for people: each against the next lower, greedy play, and what people played.

    Example: reversi measure levels --games 200 --workers 2
    """,
)
add_study(
    measure,
    "bridge",
    "bridge:BridgeOptions",
    """AlphaZero and alpha-beta: what each way of using a network makes of a move's time on one core.

    Example: reversi measure bridge --positions 100 --games 20 --plot bridge.svg
    """,
)


@measure.command("regret")
@options_from("train.judging.endgames:EndgameOptions")
def regret(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT", help="Players by spec; default: a ladder of them.", autocompletion=complete_spec
        ),
    ] = None,
    curve: Annotated[bool, typer.Option("--curve", help="The players are checkpoints of one training.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write all figures to FILE.csv.")] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where solved positions are kept.")] = None,
    threads: Threads = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Discs that players give away in solved endgames, and how often they find a best move.

    Example: reversi measure regret greedy six-factor:depth=1 network:depth=1 -n 6

    All players are shown the same positions, those of noisy games; the solver
    knows what every move is worth. No opponent and no luck is in the result.
    Players that solve endgames themselves give nothing away from there on.

    With --curve the players are points of one training, and the plot is drawn
    over the last number of their names: rl:run/step-100000.zip and so on.
    """
    from studies import regret as module
    from train.judging.endgames import EndgameOptions

    checked_parent("--csv", csv)
    if cache is not None:
        made_folder("--cache", cache)
    options = module.RegretMeasure(tuple(names or ()), EndgameOptions(**given(context)), curve)

    def measured(options: Any, progress: Any) -> dict[str, Any]:
        found = module.measure(options, progress, cache=cache, threads=threads)
        if csv is not None:
            csv.write_text(module.to_csv(found), "utf-8")
        return found

    show(measured, module.section, options, as_json, plot)
