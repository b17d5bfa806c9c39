"""Report 004 again: nodes and branching without and with alpha-beta, and how long a game is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from studies.game_tree.counting import ALPHA_BETA, MINIMAX, count_nodes, positions_of_games
from studies.options import PruningOptions
from studies.sections import Block, Results, Table, count, game_name, report, with_error
from train import charts
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import Z_95, standard_error
from train.charts import Figure
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

NAME = "cell-utility"
PUBLISHED_LENGTH, PUBLISHED_BREADTH, PUBLISHED_PRUNED = 58, 10, 8


def measure(options: PruningOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Nodes by depth of both searches over positions of the whole game; length and breadth of games of three kinds."""
    rules = options.rules
    rounds = range(4, rules.square_count - 4)
    own, opp, games = positions_of_games(rules, options.games, rounds, options.seed)
    by_game = Sample(np.zeros(len(own)), games)
    searches = []
    for refinement, deepest in ((MINIMAX, min(5, options.depth)), (ALPHA_BETA, options.depth)):
        by_depth = []
        for depth in range(1, deepest + 1):
            progress(f"{refinement.name.removeprefix('+ ')}, depth {depth}", depth - 1, deepest)
            counts = count_nodes(own, opp, NAME, rules, depth, refinement)
            by_depth.append(
                {
                    "depth": depth,
                    "nodes": float(counts.nodes.mean()),
                    **plain({"standard_error": by_game.standard_error(counts.nodes)}),
                    "moves_per_inner": float(counts.moves.sum() / max(counts.inner.sum(), 1)),
                }
            )
        searches.append({"name": refinement.name.removeprefix("+ "), "by_depth": by_depth})
    progress("games", 0, 1)
    players: dict[str, BatchPlayer] = {"random": RandomPlayer(rules)}
    players |= {f"{NAME}, depth {depth}": EvaluatorPlayer(NAME, rules, depth) for depth in (1, 3)}
    lengths = [{"player": name, **_games(player, rules, options.seed)} for name, player in players.items()]
    return options.measured(positions=int(own.size), searches=searches, games=lengths)


def _games(player: BatchPlayer, rules: Rules, seed: int, pairs: int = 200) -> dict[str, Any]:
    """Discs placed in a game, and legal moves at each, of a player against itself; games of one opening are alike."""
    openings = Openings.random(rules, pairs, 4, seed)
    placed = np.bitwise_count(openings.own | openings.opp).astype(np.int64) - 4
    breadths: list[NDArray[np.uint8]] = []

    def record(
        games: NDArray[np.int64], own: NDArray[np.uint64], opp: NDArray[np.uint64], a_moves: NDArray[np.bool_]
    ) -> None:
        placed[games] += 1
        breadths.append(np.bitwise_count(batch.legal_moves(own, opp, rules)))

    play_games(player, player, openings, rules, seed=seed, observer=record)
    moves = np.concatenate(breadths)
    return {
        "games": int(placed.size),
        "length": float(placed.mean()),
        "length_standard_error": standard_error(placed.reshape(-1, 2).mean(axis=1)),
        "breadth": float(moves.mean()),
    }


@report("004")
def section(results: Results) -> Iterator[Block]:
    """Report 004: alpha-beta and the branching factor."""
    yield (
        f"Evaluator `{NAME}`, moves in board order, positions of all rounds. The report says that alpha-beta brought "
        "the average branching factor from 10 to “almost 8”, without saying how it is counted; its chart is not in "
        "the text. Here are two ways: moves searched at an inner node, and the growth of the nodes from ply to ply."
    )
    for one in results:
        names = [search["name"] for search in one["searches"]]
        columns = [
            "depth",
            *(f"{name}: {figure}" for name in names for figure in ("nodes", "moves searched", "growth")),
        ]
        deepest = max(len(search["by_depth"]) for search in one["searches"])
        rows = [
            [str(i + 1), *(cell for search in one["searches"] for cell in _cells(search, i))] for i in range(deepest)
        ]
        yield Table(f"{game_name(one)}, {one['positions']} positions", columns, rows)
    rows = [["report 004", str(PUBLISHED_LENGTH), str(PUBLISHED_BREADTH)]]
    for one in results:
        for entry in one["games"]:
            length = with_error(entry["length"], entry["length_standard_error"], 2)
            rows.append([f"{game_name(one)}, {entry['player']}", length, f"{entry['breadth']:.2f}"])
    title = "Length of a game in moves, and legal moves at a move"
    yield Table(title, ["players (both sides)", "moves a game", "legal moves"], rows)
    yield (
        "The claimed 10 → 8 is far less than alpha-beta gives from depth 2 on, even with moves in board order. Ten legal "
        "moves is the breadth of the middle game, not of the whole. The report's 58 moves a game are two fewer than in any "
        "of ours; it does not say how they were counted."
    )
    yield _figure(results[0])


def _cells(search: dict[str, Any], i: int) -> list[str]:
    if i >= len(search["by_depth"]):
        return ["–"] * 3
    entry = search["by_depth"][i]
    return [count(entry["nodes"]), f"{entry['moves_per_inner']:.2f}", f"{_growth(search, i):.2f}"]


def _growth(search: dict[str, Any], number: int) -> float:
    """How many times the nodes of the depth before."""
    before = search["by_depth"][number - 1]["nodes"] if number else 1.0
    return search["by_depth"][number]["nodes"] / before


def _figure(one: Mapping[str, Any]) -> Figure:
    def draw(figure: Any) -> None:
        left, right = charts.panels(figure, 2, ("nodes", "moves searched at an inner node"))
        for search, colour in zip(one["searches"], (charts.BLUE, charts.VERMILION), strict=True):
            xs, ys, moves = ([e[key] for e in search["by_depth"]] for key in ("depth", "nodes", "moves_per_inner"))
            errors = [Z_95 * (entry["standard_error"] or 0) for entry in search["by_depth"]]
            charts.points(left, xs, ys, errors, colour)
            charts.label(left, xs[-1], ys[-1], search["name"], colour, shift=(5, 0))
            right.plot(xs, moves, color=colour, marker="o", markeredgewidth=0)
            charts.label(
                right, xs[-1], moves[-1], search["name"], colour, shift=(5, 7 if search["name"] == "minimax" else 0)
            )
        for claimed, text in ((PUBLISHED_BREADTH, "report: without"), (PUBLISHED_PRUNED, "report: with")):
            right.axhline(claimed, color=charts.GREY, linewidth=0.8, linestyle="--")
            charts.label(right, 9.2, claimed, text, charts.GREY, at="right", shift=(0, 6))
        depths = range(1, max(len(search["by_depth"]) for search in one["searches"]) + 1)
        left.set(xlabel="depth (plies)", yscale="log", xticks=depths, xlim=(0.7, 9.2))
        right.set(xlabel="depth (plies)", xticks=depths, xlim=(0.7, 9.2), ylim=(0, 13))

    caption = (
        f"Search without and with alpha-beta: {game_name(one)}, {NAME}, moves in board order; bars are 95 % intervals."
    )
    return Figure("004-pruning", caption, draw)
