"""The ladder of levels for people: each against the next lower and against greedy play, and how often it plays as people did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from models.human import LEVELS
from reversi_env import BLACK, WHITE
from reversi_env.notation import read_wthor
from search.agents.spec import make_agent
from studies.options import LadderOptions
from studies.players.duels import points, wins
from studies.sections import Block, Results, Table, game_name, report
from train.arena.match import PlayerResults
from train.arena.options import TournamentOptions
from train.arena.ratings import fit_ratings
from train.arena.tournament import Tournament, missing_games
from train.evaluation.exam import wthor_files
from train.jobs.logs import Progress, no_progress

GREEDY = "greedy"


def measure(options: LadderOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Results of every level against the one below, and against greedy play; Elo of all; moves of people that it plays too."""
    names = [GREEDY, *(f"human:level={number}" for number in range(1, len(LEVELS) + 1))]
    wins, draws = np.zeros((2, len(names), len(names)))
    levels: list[dict[str, Any]] = [{"level": number, "title": one.title} for number, one in enumerate(LEVELS, 1)]
    for level in range(1, len(names)):
        for other in sorted({0, level - 1}):
            progress(f"{names[level]} against {names[other]}", level - 1, len(LEVELS))
            results = match(options, names[level], names[other])
            wins[level, other], wins[other, level] = results.wins, results.losses
            draws[level, other] = draws[other, level] = results.draws
            levels[level - 1]["greedy" if other == 0 else "below"] = _figures(results, options)
    for one, rating in zip(levels, fit_ratings(wins, draws).players[1:], strict=True):
        one["elo"] = rating.elo
    if options.wthor is not None:
        progress("moves of people", len(LEVELS), len(LEVELS))
        for one, share in zip(levels, _matched(options), strict=True):
            one["matched"] = share
    return options.measured(levels=levels)


def match(options: LadderOptions, first: str, second: str) -> PlayerResults:
    tournament_options = TournamentOptions(
        (first, second), options.games, options.size, options.variant, seed=options.seed
    )
    tournament = Tournament(tournament_options)
    for record in missing_games(tournament, options.workers):
        tournament.add(record)
    sides = ((one.game, BLACK if one.fixture.black == 0 else WHITE) for one in tournament.records)
    return PlayerResults.of(sides)


def _figures(results: PlayerResults, options: LadderOptions) -> dict[str, Any]:
    wiped = int((results.discs == -options.rules.square_count).sum())
    return {**results.as_dict(), "wiped_out": wiped, "milliseconds": 1000 * results.seconds_per_move}


def _matched(options: LadderOptions) -> list[float]:
    """For every level the share of positions with a choice, one of a game, in which it plays as the person did."""
    generator = np.random.default_rng(options.seed)
    files = [read_wthor(path) for path in wthor_files(Path(options.wthor or ""))]
    sizes = np.array([len(file) for file in files])
    players = [make_agent(f"human:level={number}", seed=options.seed) for number in range(1, len(LEVELS) + 1)]
    asked, hits = 0, np.zeros(len(players))
    while asked < options.positions:
        which = int(generator.choice(sizes.size, p=sizes / sizes.sum()))
        game = files[which].game(int(generator.integers(sizes[which])))
        pairs = [pair for pair in zip(game.positions(), game.moves, strict=False) if len(pair[0].legal_moves()) > 1]
        position, move = pairs[int(generator.integers(len(pairs)))]
        hits += [player.choose(position) == position.rules.action_from_name(move) for player in players]
        asked += 1
    return [float(share) for share in hits / asked]


@report("levels")
def section(results: Results) -> Iterator[Block]:
    yield (
        "Every opening of six random plies from both sides (4×4: two). Points of a level against the next lower one, its games "
        "against `greedy` won–drawn–lost and lost by wipe-out, Elo by all of these games, and the share of positions in "
        "tournament games where it plays what the person did."
    )
    for one in results:
        columns = ["level", "", "against the one below", "won", "against greedy", "wiped out", "Elo", "as people", "ms"]
        title = f"{game_name(one)}: {one['options']['games']} games a pairing; in brackets 95 % intervals"
        yield Table(title, columns, [_row(level) for level in one["levels"]])


def _row(level: Mapping[str, Any]) -> list[str]:
    below, greedy = level.get("below"), level["greedy"]
    against_below = [points(below), f"{100 * below['wins'] / below['games']:.1f} %"] if below else ["", ""]
    matched = f"{100 * level['matched']:.0f} %" if "matched" in level else "–"
    figures = [str(greedy["wiped_out"]), f"{level['elo']:.0f}", matched, f"{greedy['milliseconds']:.1f}"]
    return [str(level["level"]), level["title"], *against_below, wins(greedy), *figures]
