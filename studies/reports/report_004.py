"""Report 004 again: nodes and branching without and with alpha-beta, and how long a game is."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from studies.figures import Panel, Series, figure
from studies.game_tree.counting import count_nodes, positions_of_games
from studies.options import PruningOptions
from studies.sections import Block, Cell, Results, Row, count, error_cell, game_name, report, table
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import Z_95, standard_error
from train.charts import Figure
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

NAME = "cell-utility"
PUBLISHED_LENGTH, PUBLISHED_BREADTH, PUBLISHED_PRUNED = 58, 10, 8


def measure(options: PruningOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return nodes of both searches by depth, over positions of whole games, and length and breadth of games of three players."""
    rules = options.rules
    rounds = range(4, rules.square_count - 4)
    own, opp, games = positions_of_games(rules, options.games, rounds, options.seed)
    by_game = Sample(np.zeros(len(own)), games)
    searches = []
    for search, deepest in (("minimax", min(5, options.depth)), ("alpha-beta", options.depth)):
        by_depth = []
        for depth in range(1, deepest + 1):
            progress(f"{search}, depth {depth}", depth - 1, deepest)
            counts = count_nodes(own, opp, NAME, rules, depth, prunes=search == "alpha-beta")
            by_depth.append(
                {
                    "depth": depth,
                    "nodes": float(counts.nodes.mean()),
                    **plain({"standard_error": by_game.standard_error(counts.nodes)}),
                    "moves_per_inner": float(counts.moves.sum() / max(counts.inner.sum(), 1)),
                }
            )
        searches.append({"name": search, "by_depth": by_depth})
    progress("games", 0, 1)
    players: dict[str, BatchPlayer] = {"random": RandomPlayer(rules)}
    players |= {f"{NAME}, depth {depth}": EvaluatorPlayer(NAME, rules, depth) for depth in (1, 3)}
    lengths = [{"player": name, **_games(player, rules, options.seed)} for name, player in players.items()]
    return options.measured(positions=int(own.size), searches=searches, games=lengths)


def _games(player: BatchPlayer, rules: Rules, seed: int, pairs: int = 200) -> dict[str, Any]:
    """Return discs placed per game, and legal moves at each, of a player against itself; both games of an opening are similar."""
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
    for one in results:
        columns: dict[str, Cell] = {"depth": "{depth}"}
        for search in one["searches"]:
            for name, key in (("nodes", "nodes"), ("moves searched", "moves_per_inner"), ("growth", "growth")):
                columns[f"{search['name']}: {name}"] = partial(_cell, search, key)
        depths = [{"depth": depth} for depth in range(1, max(len(s["by_depth"]) for s in one["searches"]) + 1)]
        yield table(f"{game_name(one)}, {one['positions']} positions", depths, columns)
    columns = {
        "players (both sides)": lambda entry: f"{game_name(entry)}, {entry['player']}",
        "moves per game": error_cell("length", 2),
        "legal moves": "{breadth:.2f}",
    }
    entries = [{**one, **entry} for one in results for entry in one["games"]]
    published = ["report 004", str(PUBLISHED_LENGTH), str(PUBLISHED_BREADTH)]
    yield table("Length of a game in moves, and legal moves at a move", entries, columns, published)
    yield _figure(results[0])


def _cell(search: Row, key: str, row: Row) -> str:
    nodes = [1.0, *(entry["nodes"] for entry in search["by_depth"])]
    depth = row["depth"]
    if depth >= len(nodes):
        return "–"
    if key == "nodes":
        return count(nodes[depth])
    return f"{nodes[depth] / nodes[depth - 1] if key == 'growth' else search['by_depth'][depth - 1][key]:.2f}"


def _figure(one: Row) -> Figure:
    nodes, moves = [], []
    for search in one["searches"]:
        depths, counts, searched = (
            [e[key] for e in search["by_depth"]] for key in ("depth", "nodes", "moves_per_inner")
        )
        errors = [Z_95 * (entry["standard_error"] or 0) for entry in search["by_depth"]]
        nodes.append(Series(search["name"], depths, counts, errors))
        moves.append(Series(search["name"], depths, searched))
    axis, claims = {"xlabel": "depth, plies"}, {"report: without": PUBLISHED_BREADTH, "report: with": PUBLISHED_PRUNED}
    panels = (
        Panel("nodes", nodes, axis | {"yscale": "log"}),
        Panel("moves searched at an inner node", moves, axis | {"ylim": (0, 13)}, claims),
    )
    game = f"{game_name(one)}, {NAME}, moves in board order"
    return figure("004-pruning", f"Search without and with alpha-beta: {game}; bars are 95 % intervals.", panels)
