"""`reversi train probcut`: the parameters of selective search for a weight file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from play.cli.options import Json, Out, Seed, Threads
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar


def probcut(
    weights: Annotated[Path, Parameter(help="Weight file of a network.")],
    /,
    *,
    out: Out,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Fit the ProbCut parameters of a weight file.

    Example: reversi train probcut runs/first/8x8-normal-….safetensors --out runs/probcut

    ProbCut skips a subtree if a shallow search predicts that the deep search
    fails high or low. This command measures how well shallow searches predict
    deep ones, and writes a copy of the weight file with these parameters. A
    search with a time limit that uses the copy prunes by ProbCut.
    """
    from train.fitting.probcut import add_probcut

    with exit_on_interrupt("reversi: stopped; nothing was written"), progress_bar() as show:
        path, cuts = add_probcut(
            weights, out, seed=seed, threads=threads, progress=lambda *done: show("searching, positions", *done)
        )
    if as_json:
        from search.engine.probcut import as_table

        print_json({"weights": str(path), **as_table(cuts)})
        return
    empties = (cuts.empties[0], sum(cuts.empties) // 2, cuts.empties[1])
    headings = ("deep", "predicted by", "slope", "shift", *(f"SD at {count}" for count in empties))
    rows = []
    for pair in cuts.pairs:
        deviations = (f"{cuts.deviation(pair, count):.2f}" for count in empties)
        rows.append((pair.deep, pair.shallow, f"{pair.slope:.2f}", f"{pair.shift:+.2f}", *deviations))
    print_table(headings, rows, words=0)
    print("shift, and SD, the standard deviation at a number of empty squares, in discs")
    print(f"weights: {path}")
