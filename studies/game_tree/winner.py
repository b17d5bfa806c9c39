"""What the winner has: corners, safe discs, moves and discs by round. A heading with nothing under it in report 002."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from search.evaluators.formula import square_classes
from studies.figures import Panel, Series, figure
from studies.options import WinnerOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table, with_error
from train import charts
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import Z_95
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

#: What is counted, in this order.
FEATURES = ("corners", "safe discs", "moves", "discs")
ROUNDS = 65


def measure(options: WinnerOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Mean features of the winner and of the loser by round, at the first position with so many discs; draws are left out."""
    rules = options.rules
    player: BatchPlayer
    player = (
        RandomPlayer(rules) if options.player == "random" else EvaluatorPlayer(options.player, rules, options.depth)
    )
    watcher = _Watcher(rules, options.games, progress)
    openings = Openings.random(rules, options.games // 2, options.openings, options.seed)
    results = play_games(player, player, openings, rules, seed=options.seed, observer=watcher).discs
    progress("games", 1, 1)
    won = np.where(results > 0, 0, 1)
    decided = results != 0
    rounds = [_round(watcher.kept, number, won, decided) for number in range(4, rules.square_count)]
    return options.measured(
        **{name: getattr(options, name) for name in ("player", "depth", "games")},
        draws=int((~decided).sum()),
        first_player_score=_first_score(results, openings.a_moves),
        by_round=[entry for entry in rounds if entry is not None],
    )


class _Watcher:
    """An observer of games that counts the features of both players in the first position with so many discs.

    ``kept[feature, player, discs, game]``, player A before player B; -1 where a game has no such position.
    """

    def __init__(self, rules: Rules, games: int, progress: Progress) -> None:
        self.rules, self.progress = rules, progress
        self.kept = np.full((len(FEATURES), 2, ROUNDS, games), -1, np.int16)
        self._corners = np.uint64(square_classes(rules)[0])

    def __call__(
        self, games: NDArray[np.int64], own: NDArray[np.uint64], opp: NDArray[np.uint64], a_moves: NDArray[np.bool_]
    ) -> None:
        discs = np.bitwise_count(own | opp).astype(np.int64)
        self.progress("games", int(discs.max()) - 4, self.rules.square_count - 4)
        for number, (mine, theirs) in enumerate(((own, opp), (opp, own))):
            side = np.where(a_moves, number, 1 - number)
            new = self.kept[0, side, discs, games] < 0
            for feature, values in enumerate(self._counted(mine, theirs)):
                self.kept[feature, side[new], discs[new], games[new]] = values[new]

    def _counted(self, mine: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], ...]:
        return (
            np.bitwise_count(mine & self._corners),
            np.bitwise_count(batch.stable_discs(mine, theirs, self.rules)),
            np.bitwise_count(batch.legal_moves(mine, theirs, self.rules)),
            np.bitwise_count(mine),
        )


def _first_score(results: NDArray[np.int64], a_moves: NDArray[np.bool_]) -> float:
    return float(((np.sign(np.where(a_moves, results, -results)) + 1) / 2).mean())


def _round(
    kept: NDArray[np.int16], number: int, won: NDArray[np.int64], decided: NDArray[np.bool_]
) -> dict[str, Any] | None:
    games = np.flatnonzero((kept[0, 0, number] >= 0) & decided)
    if games.size < 2:
        return None
    entry: dict[str, Any] = {"round": number, "games": int(games.size)}
    for feature, name in enumerate(FEATURES):
        winner = kept[feature, won[games], number, games].astype(float)
        loser = kept[feature, 1 - won[games], number, games].astype(float)
        lead = winner - loser
        error = Sample(np.zeros(games.size), games // 2).standard_error(lead)  # games of one opening are alike
        entry[name] = {
            "winner": float(winner.mean()),
            "loser": float(loser.mean()),
            "lead": float(lead.mean()),
            **plain({"standard_error": error}),
        }
    return entry


@report("winner")
def section(results: Results) -> Iterator[Block]:
    """What the winner has."""
    mirrored = {one["size"] for one in results if (one["player"], one["variant"]) == ("random", "normal")}
    columns: dict[str, Cell] = {
        "round": "{round}",
        **{f"{name}: winner, loser": f"{{{name}[winner]:.2f}}, {{{name}[loser]:.2f}}" for name in FEATURES},
        "lead in safe discs": partial(_lead, "safe discs"),
        "lead in moves": partial(_lead, "moves"),
    }
    for one in results:
        # random players play the same games in both variants, with winner and loser exchanged
        if (one["player"], one["variant"]) != ("random", "reversed") or one["size"] not in mirrored:
            player = "random play" if one["player"] == "random" else f"{one['player']}, depth {one['depth']}"
            title = f"{game_name(one)}, {player}: {one['games']:,} games, {one['draws']:,} drawn"
            entries = {entry["round"]: entry for entry in one["by_round"]}
            shares = {share * one["size"] ** 2 // 8 for share in (2, 4, 6, 7)} | {max(entries)}
            yield table(title, [entries[number] for number in sorted(shares & entries.keys())], columns)
    large = [one for one in results if one["size"] == max(other["size"] for other in results)]
    axis = {"xlabel": "round", "xticks": (0, 32, 64)}
    panels = [
        Panel(
            feature, [_leads(one, feature) for one in large], axis | ({"ylabel": "winner less loser"} if first else {})
        )
        for first, feature in zip((True, False, False, False), FEATURES, strict=True)
    ]
    caption = "What the later winner has more than the loser, by round; bands of 95 % intervals."
    yield figure("winner", caption, panels, height=2.8)


def _lead(feature: str, entry: Row) -> str:
    return with_error(entry[feature]["lead"], entry[feature]["standard_error"], 2)


def _leads(one: Row, feature: str) -> Series:
    entries = [entry[feature] for entry in one["by_round"]]
    errors = [Z_95 * (entry["standard_error"] or 0) for entry in entries]
    rounds, leads = [entry["round"] for entry in one["by_round"]], [entry["lead"] for entry in entries]
    style = {
        "color": charts.BLUE if one["variant"] == "normal" else charts.VERMILION,
        "linestyle": "-" if one["player"] == "random" else "--",
    }
    return Series(f"{one['variant']}, {one['player']}", rounds, leads, errors, style, band=True)
