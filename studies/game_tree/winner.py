"""Corners, safe discs, moves and discs of the later winner by round; report 002 has only the heading."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from search.evaluators.formula import square_classes
from studies.duels import player
from studies.figures import Panel, Series, figure
from studies.options import WinnerOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table, with_error
from train import charts
from train.arena.batch import play_games
from train.arena.openings import Openings
from train.arena.results import Z_95
from train.evaluation.means import Sample, plain
from train.jobs.logs import Progress, no_progress

FEATURES = ("corners", "safe discs", "moves", "discs")
ROUNDS = 65


def measure(options: WinnerOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return mean features of winner and loser by round, at the first position with so many discs, without drawn games."""
    rules = options.rules
    both = player(options.player, rules, options.depth)
    openings = Openings.random(rules, options.games // 2, options.openings, options.seed)
    # first[feature, player, discs, game], player A before B: the first position with so many discs; -1 if there is none
    first = np.full((len(FEATURES), 2, ROUNDS, options.games), -1, np.int16)

    def record(
        games: NDArray[np.int64], own: NDArray[np.uint64], opp: NDArray[np.uint64], a_moves: NDArray[np.bool_]
    ) -> None:
        discs = np.bitwise_count(own | opp).astype(np.int64)
        progress("games", int(discs.max()) - 4, rules.square_count - 4)
        for number, boards in enumerate(((own, opp), (opp, own))):
            side = np.where(a_moves, number, 1 - number)
            new = first[0, side, discs, games] < 0
            for feature, values in enumerate(_features(*boards, rules)):
                first[feature, side[new], discs[new], games[new]] = values[new]

    results = play_games(both, both, openings, rules, seed=options.seed, observer=record).discs
    progress("games", 1, 1)
    won = np.where(results > 0, 0, 1)
    decided = results != 0
    rounds = [_round(first, number, won, decided) for number in range(4, rules.square_count)]
    return options.measured(
        **{name: getattr(options, name) for name in ("player", "depth", "games")},
        draws=int((~decided).sum()),
        by_round=[entry for entry in rounds if entry is not None],
    )


def _features(mine: NDArray[np.uint64], theirs: NDArray[np.uint64], rules: Rules) -> tuple[NDArray[np.uint8], ...]:
    return (
        np.bitwise_count(mine & np.uint64(square_classes(rules)[0])),
        np.bitwise_count(batch.stable_discs(mine, theirs, rules)),
        np.bitwise_count(batch.legal_moves(mine, theirs, rules)),
        np.bitwise_count(mine),
    )


def _round(
    first: NDArray[np.int16], number: int, won: NDArray[np.int64], decided: NDArray[np.bool_]
) -> dict[str, Any] | None:
    games = np.flatnonzero((first[0, 0, number] >= 0) & decided)
    if games.size < 2:
        return None
    entry: dict[str, Any] = {"round": number, "games": int(games.size)}
    for feature, name in enumerate(FEATURES):
        winner = first[feature, won[games], number, games].astype(float)
        loser = first[feature, 1 - won[games], number, games].astype(float)
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
            shown = "random play" if one["player"] == "random" else f"{one['player']}, depth {one['depth']}"
            title = f"{game_name(one)}, {shown}: {one['games']:,} games, {one['draws']:,} drawn"
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
