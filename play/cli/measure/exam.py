"""`reversi exam`: errors of evaluators against exact scores, the strength of a policy, or whole games against perfect play."""

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
    ProcessCount,
    RayAddress,
    Threads,
    VariantOrDefault,
    checked_plot,
    chosen_executor,
    flag,
    integer,
    integers,
    make_folder,
    text,
    torch_threads,
)
from play.cli.output import RESUME, exit_on_interrupt, print_json, print_table, progress_bar
from reversi_env.errors import ReversiError, require

if TYPE_CHECKING:
    from reversi_env import Rules
    from search.evaluators.base import Evaluator
    from train.evaluation.exact_set import ExactSet
    from train.evaluation.exam import Exam, ExamResult
    from train.evaluation.whole_games import WholeGames

#: Columns that the table of a policy needs.
EXAM_WIDTH = 96


def exam(
    *subjects: Annotated[
        str,
        Parameter(
            name="EVALUATOR",
            help="Evaluator specs (default: network and the published heuristics), or a policy file; with --whole-games "
            "agent specs.",
        ),
    ],
    whole_games: Annotated[bool, flag("Judge whole games of agents against perfect play (4x4 and 6x6).")] = False,
    weights: Annotated[str | None, text("Weight file (default: the packaged weights).", metavar="FILE")] = None,
    wthor: Annotated[
        str | None, text("Folder with WTHOR files (default: $REVERSI_DATA, or packaged positions).", metavar="DIR")
    ] = None,
    positions: Annotated[
        int | None,
        integer(
            "Positions per number of empties; fewer above 14 empties (default: all; 1000 with WTHOR).",
            "--positions",
            low=2,
        ),
    ] = None,
    empties: Annotated[
        tuple[int, ...] | None,
        integers("Numbers of empties to test, such as 10,14 (default: all that have positions).", "--empties"),
    ] = None,
    size: Annotated[int | None, integer("Board size: 4, 6 or 8 (default: 8).", "--size")] = None,
    variant: VariantOrDefault = None,
    plot: Plot = None,
    games: Annotated[
        int | None,
        integer(
            "Policy: games against each baseline (even; default: 400); whole games per agent (default: 202).",
            "--games",
            low=2,
            even=True,
        ),
    ] = None,
    depth: Annotated[
        int | None, integer("Policy: search depth in plies (default: 2).", "--depth", low=1, high=4)
    ] = None,
    cache: Cache = None,
    threads: Threads = None,
    seed: Annotated[int | None, integer("Random seed of the sampled positions, or of the policy's games.")] = None,
    out: Annotated[
        Path | None, text("Whole games: folder of a run that can be resumed.", "--out", metavar="DIR")
    ] = None,
    workers: ProcessCount = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Measure the errors of evaluators, or the strength of a policy with and without search.

    Examples: reversi exam --plot errors.svg

              reversi exam --wthor data/wthor

              reversi exam runs/first/policy.safetensors

    For 10 to 20 empty squares: the mean absolute error of the value without
    search against exact scores, its bias, and the regret of the move that
    one-ply search chooses (the discs that it loses). The values of a heuristic
    are first multiplied by the factor that fits the scores best. The package
    has solved positions of tournaments (8x8 normal) and of games of its network
    (6x6 normal; reversed on both sizes).

    --wthor reads positions from files of the WTHOR database of tournament games.
    They are solved once and cached; Ctrl-C loses no solved position. If the files
    have exact scores for 24 empty squares, these positions are measured, too.
    --json also has the 95 % intervals of these means.

    For a policy: points against fixed baselines, from random to network:depth=2,
    Elo above random, and regret in solved endgames. They are measured for the
    policy's best move, for one-ply search over its value, for alpha-beta over
    its value, and for the same searches with the evaluator network.

    --whole-games: agents (or policy files) play against a perfect player on 6x6
    or 4x4, from the start and from fixed openings, with both colours. Exact
    values judge every move: discs lost per game and per move, by phase; perfect
    moves; and games in which a win or draw was kept. Solved positions are cached
    for all runs. --out has all games and a plot by ply. The same command resumes,
    also with more --games or other agents:
    reversi exam greedy network:depth=2 --whole-games --out exams/six
    """
    from reversi_env import Rules
    from search.evaluators.registry import published_names
    from train.evaluation.exam import examine

    if whole_games:
        unused = {"weights": weights, "wthor": wthor, "positions": positions, "empties": empties, "depth": depth}
        _refuse_options("--whole-games: expected no such option", **unused, threads=threads)
        chosen = {"size": size, "variant": variant, "games": games, "seed": seed}
        given = {name: value for name, value in chosen.items() if value is not None}
        _examine_whole_games(subjects, given, out, cache, plot, (ray, workers), as_json=as_json)
        return
    _refuse_options("evaluators or a policy: expected --whole-games", out=out, workers=workers, ray=ray)
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
        exact_sets = _exact_sets(rules, wthor, sample, cache, threads)
        result = examine(subjects or (network, *published_names()), rules, exact_sets)
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
        return packaged_sets(rules, **sample)
    files = wthor_files(wthor)  # an error comes before evaluators are compiled
    sample["positions"] = sample["positions"] or 1000

    def recorded() -> Iterator[ExactSet]:
        with progress_bar() as show:

            def progress(doing: str, done: int, total: int) -> None:
                show(f"solving, {doing}", done, total)

            yield from recorded_sets(files, rules, **sample, folder=cache, threads=threads, progress=progress)

    return recorded()


def _examine_whole_games(
    subjects: Sequence[str],
    chosen: dict[str, Any],
    out: Path | None,
    cache: Path | None,
    plot: Path | None,
    places: tuple[str | None, int | None],
    *,
    as_json: bool,
) -> None:
    from train.evaluation.options import WholeGameOptions
    from train.evaluation.whole_games import play_whole_games, ply_figure

    if not subjects:
        raise ReversiError("--whole-games: expected one or more agents, such as greedy, or policy files")
    agents = tuple(f"rl:{name}" if name.endswith(".safetensors") and ":" not in name else name for name in subjects)
    options = WholeGameOptions(agents=agents, **chosen)
    checked_plot(plot)
    for option, folder in (("--out", out), ("--cache", cache)):
        make_folder(option, folder)
    saved = "solved positions are cached" if out is None else RESUME
    with (
        exit_on_interrupt(f"reversi: interrupted; {saved}"),
        progress_bar() as show,
        chosen_executor(*places) as executor,
    ):
        results = play_whole_games(
            options, out, cache=cache, executor=executor, progress=lambda *at: show("judging", at[1], at[2], at[0])
        )
    if plot is not None:
        ply_figure(results).save(plot)
    if as_json:
        print_json({"agents": [result.as_dict() for result in results]})
    elif len(results) == 1:
        print(results[0])
    else:
        _print_whole_games(results)


def _print_whole_games(results: Sequence[WholeGames]) -> None:
    rows = []
    for result in results:
        phases = (
            "–" if moves is None else f"{moves.lost.mean:.2f}" for moves in (*result.phases.values(), result.overall)
        )
        low, high = result.lost_per_game.interval
        perfect = "–" if result.overall is None else f"{100 * result.overall.perfect.mean:.1f}"
        kept = "–" if result.kept is None else f"{100 * result.kept[1].mean:.0f}"
        rows.append((result.agent, f"{result.lost_per_game.mean:.1f}", f"{low:.1f}–{high:.1f}", *phases, perfect, kept))
    headings = ["agent", "lost per\ngame", "95 %\ninterval", *results[0].phases, "all\nmoves", "perfect\nmoves, %"]
    headings.append("results\nkept, %")
    print_table(headings, rows, width=EXAM_WIDTH, gap=1, show_edge=False)
    rules = results[0].rules
    print(
        f"{rules.size}x{rules.size} {rules.variant}: {len(results[0].games)} games each; discs lost per game, and per move"
    )


def _policy_table(policy: str, threads: int | None, **options: Any) -> dict[str, Any]:
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


def _print_tables(report: Exam) -> None:
    def rows(cell: Callable[[ExamResult], str], *, zero: bool) -> Iterator[list[str]]:
        for name in report.names():
            yield [name, *(cell(report.result(name, one.empties)) for one in report.sets)]
        if zero:
            yield ["always 0", *(f"{one.mean_score:.2f}" for one in report.sets)]
        yield ["positions", *(str(one.positions) for one in report.sets)]

    headings = ["empties", *(str(one.empties) for one in report.sets)]
    game = f"{report.size}x{report.size} {report.variant}"
    errors = rows(lambda result: f"{result.error:.2f}", zero=True)
    biases = rows(lambda result: f"{result.bias:+.2f}", zero=False)
    regrets = rows(lambda result: "–" if result.regret is None else f"{result.regret:.2f}", zero=False)
    print_table(headings, errors, title=f"{game}: mean absolute error of the static value, in discs")
    print_table(headings, biases, title=f"{game}: its bias for the side to move, in discs")
    print_table(headings, regrets, title=f"{game}: regret of the move that one-ply search chooses, in discs")


def _save_plot(report: Exam, path: Path) -> None:
    from train.charts import line_chart

    xs = [one.empties for one in report.sets]
    series = {name: [report.result(name, x).error for x in xs] for name in report.names()}
    title = f"Mean absolute error of the static value, {report.size}x{report.size} {report.variant}"
    line_chart(title, "empty squares", "discs", xs, series).save(path)
