"""`reversi tune`: better weights for a heuristic, by a genetic algorithm and by CMA-ES."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, Size, Threads, VariantName, integer, integer_range, options_of, text
from play.cli.output import RESUME, exit_on_interrupt, print_json, print_table, progress_bar
from train.tuning.options import TuneOptions

if TYPE_CHECKING:
    from train.tuning.objectives import Objective
    from train.tuning.run import Generation, TuningResult

Aim = Literal["win-rate", "label-error"]
TuneChoice: Any = options_of(TuneOptions, without=("formula", "optimiser"), named={"varied": "vary"})


def tune(
    formula: Annotated[str, Parameter(help="Heuristic whose weights are tuned, for example ten-weight.")],
    /,
    *,
    out: Annotated[Path, text("Folder for the log and the weights.", "--out", metavar="DIR")] = Path("tuned"),
    objective: Annotated[
        Aim,
        Parameter(
            "--objective", help="win-rate (points against the panel) or label-error (distance from exact scores)."
        ),
    ] = "win-rate",
    optimiser: Annotated[
        Literal["genetic", "cma", "both"],
        Parameter("--optimiser", help="Optimiser: genetic algorithm, CMA-ES, or both in turn."),
    ] = "both",
    chosen: TuneChoice = NOTHING,
    size: Size = 8,
    variant: VariantName = "reversed",
    panel: Annotated[
        list[str] | None, text("Opponent: random (default) or an evaluator; repeat for more.", metavar="SPEC")
    ] = None,
    games: Annotated[int, integer("Games per candidate and opponent.", "--games", low=2)] = 1000,
    depth: Annotated[int, integer("Search depth in plies.", "--depth", low=1, high=6)] = 1,
    exact: Annotated[int, integer("Candidates play perfectly from this many empties on.", high=14)] = 0,
    positions: Annotated[int, integer("With label-error: number of solved positions.", "--positions", low=10)] = 4000,
    empties: Annotated[
        tuple[int, int], integer_range("With label-error: empties of these positions, such as 8-12.", "--empties")
    ] = (8, 12),
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Tune the weights of a heuristic and save them to a file.

    Example: reversi tune ten-weight --variant reversed --out tuned

    A candidate is rated by its points against every opponent of --panel, each
    opening with both colours (--objective win-rate), or by its mean error
    against exact scores (--objective label-error). The result is validated on
    other games or positions.

    Run the same command again to resume after Ctrl-C or a crash. Every command
    accepts the weights: ten-weight:weights=tuned/ten-weight-cma.json.
    """
    from reversi_env.errors import require
    from train.tuning.objectives import LabelError, WinRate
    from train.tuning.run import tune as run

    seed = chosen.get("seed", TuneOptions.seed)
    judge: Objective
    if objective == "win-rate":
        opponents = tuple(panel or ("random",))
        judge = WinRate(size, variant, opponents, games, depth, exact, seed=seed, threads=threads)
    else:
        judge = LabelError(size, variant, positions, empties, seed, threads=threads)
    methods = ("genetic", "cma") if optimiser == "both" else (optimiser,)
    require(*("pymoo" if method == "genetic" else "cma" for method in methods))
    command = shlex.join(["reversi", *sys.argv[1:]])
    tuned_weights: list[tuple[str, TuningResult]] = []
    resume = f"reversi: interrupted; {RESUME}"
    with exit_on_interrupt(resume), progress_bar() as show:

        def show_generation(generation: Generation) -> None:
            best = f"{1 - generation.best:.1%} won" if objective == "win-rate" else f"error {generation.best:.3f}"
            rate = f"{generation.losses.size / max(generation.seconds, 1e-9):.1f} candidates/s"
            show(f"{formula}, {options.optimiser}", generation.number, options.generations, f"{best}, {rate}")

        for method in methods:
            options = TuneOptions(formula, optimiser=method, **chosen)
            tuned_weights.append((method, run(options, judge, out, command=command, progress=show_generation)))
    results = [as_dict(method, tuned, objective) for method, tuned in tuned_weights]
    if as_json:
        print_json({"formula": formula, "objective": judge.described(), "results": results})
    else:
        _print_result(formula, judge, results, objective)


def as_dict(method: str, tuned: TuningResult, aim: Aim) -> dict[str, Any]:
    """Return the result of one optimiser: win rates, or errors in discs, in the last round and on held-out ones."""
    figure: Callable[[float], float] = (lambda loss: 1 - loss) if aim == "win-rate" else (lambda loss: loss)
    return {
        "optimiser": method,
        "figure": figure(tuned.loss),
        "figure_on_others": figure(tuned.check),
        "published_on_others": figure(tuned.published_check),
        "evaluations": tuned.evaluations,
        "seconds": tuned.seconds,
        "weights": {name: tuned.evaluator.weights[name] for name in tuned.evaluator.weights},
        "file": str(tuned.file),
    }


def _print_result(formula: str, objective: Objective, results: list[dict[str, Any]], aim: Aim) -> None:
    from search import evaluators
    from search.evaluators.base import file_name

    what = "points per game" if aim == "win-rate" else "mean absolute error, discs"
    rules = objective.rules
    rows = []
    for result in results:
        figures = (f"{result[key]:.4f}" for key in ("figure", "figure_on_others", "published_on_others"))
        rows.append((result["optimiser"], *figures, result["evaluations"], f"{result['seconds']:.1f}"))
    headings = ("optimiser", "last round", "on others", "published", "candidates", "seconds")
    print_table(headings, rows, title=f"{formula}, {rules.size}x{rules.size} {rules.variant}: {what}")
    family = evaluators.get_evaluator(formula).family
    for result in results:
        print(file_name(family, result["file"]))
