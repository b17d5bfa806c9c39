"""`reversi exam`: static values and one-ply moves of the network and the heuristics against exact scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from play.cli.options import Json, Seed, Size, Threads, VariantName, checked_plot, made_folder
from play.cli.output import ends_at_ctrl_c, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from reversi_env import Rules
    from search.evaluators import Evaluator
    from train.judging.exam import Exam, Mark


def exam(
    weights: Annotated[str | None, typer.Option("--weights", help="Weight file instead of the package's.")] = None,
    wthor: Annotated[
        str | None,
        typer.Option("--wthor", help="Folder with WTHOR files, instead of the package's positions; or $REVERSI_DATA."),
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option("--positions", "-p", help="Up to 14 empties, fewer above; default: all, of WTHOR 1000.", min=2),
    ] = None,
    empties: Annotated[list[int] | None, typer.Option("--empties", "-e", help="Only these; may be repeated.")] = None,
    size: Size = 8,
    variant: VariantName = "normal",
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write the errors as a chart: FILE.svg, .png or .pdf.")
    ] = None,
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder where exact scores are kept.")] = None,
    threads: Threads = None,
    annotate: Annotated[
        Path | None, typer.Option("--annotate", help="Folder for a copy of the weights with the results in its record.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Examine the network and the published heuristics on positions of real games.

    Examples: reversi exam --plot errors.svg

              reversi exam --wthor data/wthor

    For 10 to 20 empty squares: the mean absolute error of the static value
    against exact scores, its bias, and the discs that the best move one ply
    ahead gives away; with WTHOR files for 24 too, where those have exact
    scores. --weights may be a residual network's. Heuristics are first
    scaled to fit best. The package has solved positions of tournaments (8x8)
    and of games of its network (6x6, reversed). Those of WTHOR files are
    solved and kept: only the first exam takes minutes.
    --json has the 95 % intervals of these means, too.
    """
    from models.network import NetworkEvaluator
    from reversi_env import ReversiError, Rules
    from search import evaluators
    from train.judging.exam import examine, packaged_papers, recorded_papers, wthor_files

    checked_plot(plot)
    for option, folder in (("--cache", cache), ("--annotate", annotate)):
        if folder is not None:
            made_folder(option, folder)
    rules = Rules(size, variant)
    network = _judged(weights, rules)
    if annotate is not None and not isinstance(network, str):
        raise ReversiError(
            "--annotate with the weights of a residual network: expected those of a network for the search"
        )
    with ends_at_ctrl_c("reversi: interrupted; what was solved is kept for the next time"), progress_bar() as show:
        if wthor is not None or (size == 8 and os.environ.get("REVERSI_DATA")):
            papers = recorded_papers(
                wthor_files(wthor),
                rules,
                positions=positions or 1000,
                empties=empties,
                seed=seed,
                folder=cache,
                threads=threads,
                progress=lambda doing, done, total: show(f"solving, {doing}", done, total),
            )
        else:
            papers = packaged_papers(rules, positions=positions, empties=empties, seed=seed)
        result = examine((network, *evaluators.published()), rules, papers)
    if plot is not None:
        _save_plot(result, plot)
    if annotate is not None:
        _annotate(result, NetworkEvaluator(weights).file(rules), annotate)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_tables(result)


def _judged(weights: str | None, rules: Rules) -> Evaluator | str:
    """The network that is examined: the package's, that of a weight file, or a residual network."""
    if weights is None:
        return "network"
    from models.files import read_file

    if read_file(Path(weights))[0]["architecture"] != "residual":
        return f"network:weights={weights}"
    import torch

    from models.zero import ZeroAgent

    return ZeroAgent(weights).evaluator(rules, "cuda" if torch.cuda.is_available() else "cpu")


def _print_tables(result: Exam) -> None:
    """One table of errors and one of regrets for people."""

    def rows(cell: Callable[[Mark], str], *, zero: bool) -> Iterator[list[str]]:
        for name in result.names():
            yield [name, *(cell(result.mark(name, paper.empties)) for paper in result.papers)]
        if zero:
            yield ["always 0", *(f"{paper.mean_score:.2f}" for paper in result.papers)]
        yield ["positions", *(str(paper.positions) for paper in result.papers)]

    headings = ["empties", *(str(paper.empties) for paper in result.papers)]
    game = f"{result.size}x{result.size} {result.variant}"
    errors = rows(lambda mark: f"{mark.error:.2f}", zero=True)
    biases = rows(lambda mark: f"{mark.bias:+.2f}", zero=False)
    regrets = rows(lambda mark: "–" if mark.regret is None else f"{mark.regret:.2f}", zero=False)
    print_table(headings, errors, title=f"{game}: mean absolute error of the static value, in discs")
    print_table(headings, biases, title=f"{game}: its bias for the side to move, in discs")
    print_table(headings, regrets, title=f"{game}: discs that the best move one ply ahead gives away")


def _annotate(result: Exam, weights: Path, folder: Path) -> None:
    """Write the weights again into *folder*, with the whole exam in their record, and say where."""
    from models.networks import annotate

    facts = result.as_dict()
    for mark in facts["marks"]:
        if mark["evaluator"] == result.names()[0]:
            mark["evaluator"] = "network"  # and not the place where the file happened to lie
    print(f"reversi: {annotate(weights, folder, exam=facts)}", file=sys.stderr)


def _save_plot(result: Exam, path: Path) -> None:
    from train.charts import line_chart

    xs = [paper.empties for paper in result.papers]
    series = {name: [result.mark(name, x).error for x in xs] for name in result.names()}
    title = f"Mean absolute error of the static value, {result.size}x{result.size} {result.variant}"
    line_chart(title, "empty squares", "discs", xs, series).save(path)
