"""`reversi experiment`: statistics of the game, and what five reports measured, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from play.commands.clone import find_in_clone
from play.commands.frame import ends_at_ctrl_c, progress_bar
from play.commands.options import made_folder
from play.commands.studies import add_study, this_machine
from play.commands.usage import Application

app = Application(help="Repeat the experiments of docs/experiments.md.", no_args_is_help=True)

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
    "003": ("report_003:PlyOptions", "Report 003: final score by the plies searched, in both colours."),
    "004": ("report_004:PruningOptions", "Report 004: nodes and branching factor without and with alpha-beta."),
    "tuning": ("label_tuning:LabelTuningOptions", "Every report's weights tuned against exact scores."),
    "losses": ("losses:LossesOptions", "Networks fitted with the plain and with the structural loss, side by side."),
    "networks": ("networks:NetworksOptions", "All kinds of networks fitted to the same labels, side by side."),
}


@app.callback()
def experiment() -> None:
    """Repeat the experiments of docs/experiments.md, in a clone of the project."""
    find_in_clone("studies")


for _name, (_place, _words) in STUDIES.items():
    add_study(app, _name, _place, _words)


@app.command("all")
def everything(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for experiments.md and its figures.")] = Path("docs"),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only this one; may be repeated. The page then has nothing else.")
    ] = None,
) -> None:
    """Run everything and write docs/experiments.md with its figures.

    Takes about ten minutes on two cores. Run the same command again to go on
    after Ctrl-C, or after a crash: until the page is written, results are kept
    in ~/.cache/reversi-lab/experiments (or where REVERSI_CACHE_DIR says).
    """
    from play.commands.interruptible import abandonable
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
        path = abandonable(lambda: run_all(out, machine=this_machine(), only=only, progress=progress))
    print(path)
