"""Breadth of the game tree by round in random play: report 002, section 4.1.1."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules
from studies.figures import DOTS, Panel, Series, figure
from studies.game_tree.kernels import ROUNDS, count_breadths
from studies.options import GAME_GROUPS, BreadthOptions
from studies.sections import Block, Cell, Results, Row, error_cell, game_name, report, table
from train.jobs.logs import Progress, no_progress

#: Rounds that report 002 calls the middle of the 8x8 game.
MIDDLE = (25, 52)
#: Report 002: the means over rounds 4-63 and 25-52, and by round from 4 to 63, of 40 games.
PUBLISHED_ALL, PUBLISHED_MIDDLE = 8.9495, 11.0839
PUBLISHED = (
    *(4, 3, 4.625, 5.05, 5.75, 6.075, 7.125, 7.45, 8.05, 8.125, 8.975, 8.925, 9.1, 9.975, 9.725, 10.35, 11, 10.575),
    *(11.525, 11.275, 11.4, 12.15, 11.525, 11.85, 12.275, 11.975, 12.425, 11.725, 12.9, 12.25, 12.975, 12.375, 12.75),
    *(11.725, 12.175, 11.575, 12.075, 11.125, 11.6, 10.85, 10.75, 10.125, 10.5, 9.05, 9.5, 8.5, 8.475),
    *(7.65, 7.5, 6.675, 6.95, 5.55, 5.3, 4.46341463, 4.15, 3.475, 2.825, 2.11904762, 1.43478261, 0.70175439),
)


def middle_rounds(rules: Rules) -> tuple[int, int]:
    """Return the first and last round of the middle game, scaled to the board's size."""
    low, high = (round_ * rules.square_count // 64 for round_ in MIDDLE)
    return low, high


def measure(options: BreadthOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return mean breadth by round, over all and over the middle rounds, with standard errors, and under the mistake."""
    progress("random games", 0, 2)
    counted = _count(options, one_line=False)
    progress("random games, mistaken rules", 1, 2)
    mistaken = _count(options, one_line=True)
    progress("random games", 2, 2)
    shared = ("mean_all", "mean_all_standard_error", "mean_middle", "mean_middle_standard_error", "by_round")
    figures = counted | {"one_line": {key: mistaken[key] for key in shared}}
    return options.measured(games=options.games, seed=options.seed, **figures)


def _count(options: BreadthOptions, *, one_line: bool) -> dict[str, Any]:
    rules = options.rules
    moves, visits = (np.zeros((GAME_GROUPS, ROUNDS), np.int64) for _ in range(2))
    lengths = np.zeros(GAME_GROUPS, np.int64)
    own, opp = (np.uint64(board) for board in rules.start_boards)
    drawn = (options.games // GAME_GROUPS, np.uint64(options.seed), one_line)
    count_breadths(GAME_GROUPS, own, opp, np.uint64(rules.playable), *drawn, moves, visits, lengths)
    rounds = np.arange(4, rules.square_count)
    low, high = middle_rounds(rules)
    breadth, error = _jackknife(moves[:, rounds], visits[:, rounds])
    means: dict[str, float] = {}
    for name, some in (("all", rounds), ("middle", np.arange(low, high + 1))):
        mean = _jackknife(moves[:, some], visits[:, some], lambda by_round: by_round.mean(axis=-1))
        means |= dict(zip((f"mean_{name}", f"mean_{name}_standard_error"), map(float, mean), strict=True))
    return {
        **means,
        "rounds": [4, rules.square_count - 1],
        "middle_rounds": [low, high],
        "peak": float(breadth.max()),
        "peak_round": int(rounds[breadth.argmax()]),
        "moves_per_game": float(lengths.sum() / options.games),
        "by_round": [
            {"round": int(r), "breadth": float(b), "standard_error": float(e), "visits": int(v)}
            for r, b, e, v in zip(rounds, breadth, error, visits[:, rounds].sum(axis=0), strict=True)
        ],
    }


def _jackknife(
    moves: NDArray[np.int64],
    visits: NDArray[np.int64],
    statistic: Callable[[NDArray[np.float64]], Any] = lambda by_round: by_round,
) -> tuple[Any, Any]:
    """Return a statistic of the moves per visit by round, and its standard error from leaving out one group at a time."""

    def of_ratio(moves: NDArray[np.int64], visits: NDArray[np.int64]) -> Any:
        return statistic(moves / np.maximum(visits, 1))

    left_out = of_ratio(moves.sum(axis=0) - moves, visits.sum(axis=0) - visits)
    spread = left_out - left_out.mean(axis=0)
    error = np.sqrt((len(moves) - 1) / len(moves) * (spread**2).sum(axis=0))
    return of_ratio(moves.sum(axis=0), visits.sum(axis=0)), error


@report("breadth")
def section(results: Results) -> Iterator[Block]:
    """Breadth by round."""
    largest = next((one for one in results if one["size"] == 8), results[0])
    columns: dict[str, Cell] = {
        "game": game_name,
        "all rounds": error_cell("mean_all"),
        "middle rounds": error_cell("mean_middle"),
        "peak (round)": "{peak:.3f} ({peak_round})",
        "moves per game": "{moves_per_game:.2f}",
        "one line turned: all": "{one_line[mean_all]:.3f}",
        "middle": "{one_line[mean_middle]:.3f}",
    }
    published = [
        "report 002 (8×8 reversed, 40 games)",
        f"{PUBLISHED_ALL:.4f}",
        f"{PUBLISHED_MIDDLE:.4f}",
        "12.975 (34)",
    ]
    title = f"Mean breadth, {largest['games']:,} random games each ± 95 % interval"
    yield table(title, results, columns, published if largest["size"] == 8 else ())
    rules = [_curve("all lines turn", largest), _curve("one line turns", largest["one_line"])]
    if largest["size"] == 8:
        rules.append(Series("report 002, 40 games", range(4, 64), PUBLISHED, style=DOTS | {"markersize": 2}))
    sizes = {one["size"]: _curve(f"{one['size']}×{one['size']}", one) for one in results}
    axis = {"xlabel": "round (discs on the board)", "ylim": (0, 14), "xticks": range(0, 65, 16)}
    panels = (
        Panel("the rules, and one mistake", rules, axis | {"ylabel": "legal moves"}),
        Panel("by size of the board", [sizes[size] for size in sorted(sizes)], axis),
    )
    yield figure("breadth", "Mean number of legal moves by round in random play.", panels)


def _curve(label: str, one: Row) -> Series:
    by_round = one["by_round"]
    return Series(label, [at["round"] for at in by_round], [at["breadth"] for at in by_round], style={"marker": ""})
