"""`reversi label`: training positions with their scores, in Parquet files that survive interruptions."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from play.cli.options import Json, RayAddress, Threads, Workers, chosen_executor, integer, options_of, text
from play.cli.output import RESUME, exit_on_interrupt, print_json, print_table, progress_bar
from train.labels.options import LabelOptions

if TYPE_CHECKING:
    from train.labels.labellers import LabellerPlan

LabelChoice: Any = options_of(LabelOptions, required=("count",), named={"prefixes": "opening_plies"})


def label(
    out: Annotated[str, Parameter(help="Output folder; created if missing.")],
    /,
    *,
    chosen: LabelChoice,
    depth: Annotated[
        int | None, integer("Search depth in plies, for a labeller whose spec has no depth.", "--depth")
    ] = None,
    threads: Threads = None,
    device: Annotated[
        Literal["cpu", "cuda"],
        text("Device: cpu, or cuda to solve and to evaluate zero:FILE on a GPU (use --shard-rows 1000000 then)."),
    ] = "cpu",
    workers: Workers = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Generate a dataset of labelled positions as Parquet files.

    Example: reversi label labels/10-14 --count 1000000 --empties 10-14

    Positions come from games with a random opening. Then --player samples its
    moves from a softmax over values in discs, and some moves are random. Each
    side of a game draws one of --noise and one of --temperature. Every number
    of empties gets the same number of positions, without symmetric duplicates.

    Scores are in discs for the side to move. By default positions are solved,
    which needs at most 24 empties (26 on 6x6, 16 on a GPU). --labeller
    six-factor:depth=4,exact=10 searches 4 plies and solves positions with at
    most 10 empties. network:depth=8,mean=2,probcut=1 averages the searches to
    7 and 8 plies, both with ProbCut, which prunes by shallow searches.

    Run the same command again to resume after Ctrl-C or a crash: the files are
    the same. OUT/manifest.json lists them with their SHA-256. --ray distributes
    the work over the machines of a cluster, with the same result; with --device
    cuda over all its GPUs.
    """
    from reversi_env.errors import ReversiError, count_noun
    from train.labels import generate
    from train.labels.dataset import rows_in_place

    if device != "cpu" and workers is not None:
        raise ReversiError(
            f"--device {device} with --workers: expected cpu there, or --ray to use all GPUs of a cluster"
        )
    labeller = _with_depth(chosen.get("labeller", LabelOptions.labeller), depth)
    options = LabelOptions(**{**chosen, "labeller": labeller})
    folder, began, finished = Path(out), perf_counter(), 0

    def on_resume(shards: int, rows: int) -> None:
        """Report the shards of earlier runs, once they are checked."""
        nonlocal finished
        finished = rows
        if rows:
            what = "already complete" if shards == options.shards else "resuming"
            print(
                f"{folder}: {shards} of {options.shards} shards, {count_noun(rows, 'position')}; {what}",
                file=sys.stderr,
            )

    def stopped() -> str:
        return f"stopped at {rows_in_place(folder)} of {options.count} positions; {RESUME}"

    with exit_on_interrupt(stopped), chosen_executor(ray, workers) as executor, progress_bar() as show:
        manifest = generate(
            options, folder, device=device, threads=threads, executor=executor, on_resume=on_resume, progress=show
        )
    seconds, made = perf_counter() - began, manifest.options
    by_empties = [
        {"empties": made.empties[0] + stratum, "positions": len(range(stratum, manifest.rows, made.strata))}
        for stratum in range(made.strata)
    ]
    result = {
        "folder": out,
        "positions": manifest.rows,
        "shards": len(manifest.shards),
        "resumed_from": finished,
        "seconds": seconds,
        "positions_per_second": (manifest.rows - finished) / seconds,
        "by_empties": by_empties,
    }
    if as_json:
        print_json(result)
    else:
        _print_result(options, result)


def _with_depth(labeller: str, depth: int | None) -> str:
    from reversi_env.errors import ReversiError, quoted
    from search.agents.spec import AgentSpec

    if depth is None:
        return labeller
    if labeller == "exact":
        raise ReversiError(f"--depth {depth} with --labeller exact: expected an evaluator to search with")
    spec = AgentSpec.parse(labeller)
    if "depth" in spec.options:
        raise ReversiError(f"--depth {depth} with --labeller {quoted(labeller)}: expected the depth in one place")
    return str(AgentSpec(spec.name).with_(depth=depth, **spec.options))  # first, as manifests have it


def _labels(plan: LabellerPlan, empties: int) -> str:
    if empties <= plan.solved:
        return "exact"
    return f"depth {plan.depth}" if plan.depth else "network"


def _print_result(options: LabelOptions, result: dict[str, Any]) -> None:
    from reversi_env.errors import count_noun
    from train.labels.labellers import labeller_plan

    plan = labeller_plan(options.labeller)
    print(
        f"{options.size}x{options.size} {options.variant}, {count_noun(result['positions'], 'position')} in {result['folder']}"
    )
    rows = ((row["empties"], f"{row['positions']:,}", _labels(plan, row["empties"])) for row in result["by_empties"])
    print_table(("empties", "positions", "labels"), rows, words=0)
    new = result["positions"] - result["resumed_from"]
    if new:
        print(f"{new:,} in {result['seconds']:.1f} s: {result['positions_per_second']:,.0f} positions/s")
