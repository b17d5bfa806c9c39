"""`reversi exam`: errors of evaluators against exact scores, or the strength of a policy with and without search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from play.cli.options import (
    Cache,
    Json,
    Plot,
    Threads,
    VariantOrDefault,
    checked_plot,
    integer,
    integers,
    make_folder,
    text,
    torch_threads,
)
from play.cli.output import exit_on_interrupt, print_json, print_table, progress_bar
from reversi_env.errors import ReversiError

if TYPE_CHECKING:
    from reversi_env import Rules
    from search.evaluators.base import Evaluator
    from train.evaluation.exact_set import ExactSet
    from train.evaluation.exam import Exam, ExamResult

#: Columns that the table of a policy needs.
EXAM_WIDTH = 96


def exam(
    *subjects: Annotated[
        str,
        Parameter(
            name="EVALUATOR", help="Evaluator specs (default: network and the published heuristics), or a policy file."
        ),
    ],
    weights: Annotated[
        str | None, text("--weights", help="Weight file (default: the packaged weights).", metavar="FILE")
    ] = None,
    wthor: Annotated[
        str | None,
        text("--wthor", help="Folder with WTHOR files (default: $REVERSI_DATA, or packaged positions).", metavar="DIR"),
    ] = None,
    positions: Annotated[
        int | None,
        integer(
            "--positions",
            help="Positions per number of empties; fewer above 14 empties (default: all; 1000 with WTHOR).",
            low=2,
        ),
    ] = None,
    empties: Annotated[
        tuple[int, ...] | None,
        integers("--empties", help="Numbers of empties to test, such as 10,14 (default: all that have positions)."),
    ] = None,
    size: Annotated[int | None, integer("--size", help="Board size: 4, 6 or 8 (default: 8).")] = None,
    variant: VariantOrDefault = None,
    plot: Plot = None,
    games: Annotated[
        int | None,
        integer("--games", help="Policy: games against each baseline (even; default: 400).", low=2, even=True),
    ] = None,
    depth: Annotated[
        int | None, integer("--depth", help="Policy: search depth in plies (default: 2).", low=1, high=4)
    ] = None,
    cache: Cache = None,
    threads: Threads = None,
    seed: Annotated[
        int | None, integer("--seed", help="Random seed of the sampled positions, or of the policy's games.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the errors of evaluators, or the strength of a policy with and without search.

    Examples: reversi exam --plot errors.svg

              reversi exam --wthor data/wthor

              reversi exam runs/first/policy.safetensors

    For 10 to 20 empty squares: the mean absolute error of the value without
    search against exact scores, its bias, and the regret of the best move by
    one-ply search. The values of a heuristic are first multiplied by the factor
    that fits the scores best. The package has solved positions of tournaments
    (8x8) and of games of its network (6x6, reversed).

    --wthor reads positions from files of the WTHOR database of tournament games.
    They are solved once and cached; Ctrl-C loses no solved position. If the files
    have exact scores for 24 empty squares, these positions are measured, too.
    --json also has the 95 % intervals of these means.

    For a policy: points against fixed baselines, from random to network:depth=2,
    Elo above random, and regret in solved endgames. They are measured for the
    policy's best move, for one-ply search over its value, for alpha-beta over
    its value, and for the same searches with the evaluator network.
    """
    from reversi_env import Rules
    from search.evaluators.registry import published_names
    from train.evaluation.exam import examine

    if len(subjects) == 1 and (subjects[0].endswith(".safetensors") or Path(subjects[0]).is_file()):
        unused = {"weights": weights, "wthor": wthor, "positions": positions, "empties": empties, "size": size}
        _refuse_options("a policy: expected evaluators", **unused, variant=variant, plot=plot)
        run = {"games": games or 400, "depth": depth or 2, "cache": cache, "seed": 1 if seed is None else seed}
        table = _policy_table(subjects[0], threads, **run)
        (print_json if as_json else _show_policy)(table)
        return
    _refuse_options("evaluators: expected a policy file", games=games, depth=depth)
    if subjects and weights:
        raise ReversiError("--weights with EVALUATOR: expected network:weights=FILE, or no EVALUATOR")
    checked_plot(plot)
    make_folder("--cache", cache)
    rules = Rules(size or 8, variant or "normal")
    network = _network(weights, rules)
    sample = {"positions": positions, "empties": empties, "seed": seed or 0}
    with exit_on_interrupt("reversi: interrupted; solved positions are cached"):
        papers = _exact_sets(rules, wthor, sample, cache, threads)
        result = examine(subjects or (network, *published_names()), rules, papers)
    if plot is not None:
        _save_plot(result, plot)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_tables(result)


def _refuse_options(subject: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ReversiError(f"--{name} {value} with {subject}")


def _exact_sets(
    rules: Rules, wthor: str | None, sample: dict[str, Any], cache: Path | None, threads: int | None
) -> Iterator[ExactSet]:
    from train.evaluation.exam import packaged_sets, recorded_sets, wthor_files

    if wthor is None and not (rules.size == 8 and os.environ.get("REVERSI_DATA")):
        yield from packaged_sets(rules, **sample)
        return
    sample["positions"] = sample["positions"] or 1000
    with progress_bar() as show:

        def progress(doing: str, done: int, total: int) -> None:
            show(f"solving, {doing}", done, total)

        yield from recorded_sets(wthor_files(wthor), rules, **sample, folder=cache, threads=threads, progress=progress)


def _policy_table(policy: str, threads: int | None, **options: Any) -> dict[str, Any]:
    from reversi_env.errors import require

    require("torch")
    from train.evaluation.policy_score import examine

    with progress_bar() as show:
        options |= {"threads": torch_threads(threads), "progress": lambda *at: show("examining", at[1], at[2], at[0])}
        return examine(Path(policy), **options)


def elo_cells(entry: dict[str, Any]) -> tuple[str, str]:
    """Return Elo and its interval as texts; the interval alone if Elo is not determined."""
    from train.arena.ratings import interval_text

    interval = interval_text(entry["elo_low"], entry["elo_high"])
    return f"{entry['elo']:.0f}" if "…" in interval else "", interval


def print_elo_note(rows: Iterable[Sequence[str]]) -> None:
    """Explain the bounds of a table in which an Elo is not determined."""
    if any(cell.startswith(("≥", "≤")) for row in rows for cell in row):
        print("Elo is not determined where none is given; ≥ and ≤ are 95 % bounds")


def _show_policy(table: dict[str, Any]) -> None:
    names = list(next(iter(table["players"].values()))["rungs"])
    headings = [name.replace("-", "-\n").replace(":", ":\n") for name in names]
    rows = []
    for player, entry in table["players"].items():
        points = (f"{100 * entry['rungs'][name]['points']:.1f}" for name in names)
        rows.append((player, *points, *elo_cells(entry), f"{entry['regret']:.2f}", f"{100 * entry['optimal']:.1f}"))
    headings = ["points, %", *headings, "Elo", "95 %\ninterval", "regret,\ndiscs", "best\nmoves,\n%"]
    print_table(headings, rows, width=EXAM_WIDTH, gap=1, show_edge=False)
    print_elo_note(rows)
    where = f"{table['size']}x{table['size']} {table['variant']}, {table['policy']}"
    print(f"{where}: {table['games']} games against each, {table['positions']} solved endgames")


def _network(weights: str | None, rules: Rules) -> Evaluator | str:
    """Return the spec of the network of the package or of a weight file, or a residual network."""
    if weights is None:
        return "network"
    from models.files import read_file

    if read_file(Path(weights))[0]["architecture"] != "residual":
        return f"network:weights={weights}"
    import torch

    from models.zero import ZeroAgent

    return ZeroAgent(weights).evaluator(rules, "cuda" if torch.cuda.is_available() else "cpu")


def _print_tables(result: Exam) -> None:
    def rows(cell: Callable[[ExamResult], str], *, zero: bool) -> Iterator[list[str]]:
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
    print_table(headings, regrets, title=f"{game}: regret of the best move by one-ply search, in discs")


def _save_plot(result: Exam, path: Path) -> None:
    from train.charts import line_chart

    xs = [paper.empties for paper in result.papers]
    series = {name: [result.mark(name, x).error for x in xs] for name in result.names()}
    title = f"Mean absolute error of the static value, {result.size}x{result.size} {result.variant}"
    line_chart(title, "empty squares", "discs", xs, series).save(path)
