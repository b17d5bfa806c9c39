"""What the winner has: corners, safe discs, moves and discs by round. A heading with nothing under it in report 002."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from search.evaluators.formula import square_classes
from studies.options import WinnerOptions
from studies.sections import Block, Results, Table, game_name, report, with_error
from train import charts
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import Z_95
from train.charts import Figure
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
    yield (
        "The side that will win, less the side that will lose, by round. Safe discs are those proven never to turn "
        "again. Report 002 has this heading and leaves it empty."
    )
    mirrored = {one["size"] for one in results if (one["player"], one["variant"]) == ("random", "normal")}
    for one in results:
        if (one["player"], one["variant"]) != ("random", "reversed") or one["size"] not in mirrored:
            yield _table(one)
    if mirrored:
        yield (
            "Random players do not care who wins: in the reversed game they play the same games, and winner and loser change "
            "places in these tables."
        )
    large = [one for one in results if one["size"] == max(other["size"] for other in results)]
    yield _figure(large)
    yield (
        "Report 002 holds, against its author's classmates, that moves are worth having in the reversed game too. Between "
        "players that choose their moves the later winner has more of them there (see the lead in moves); between random "
        "players, no more."
    )


def _name(one: Mapping[str, Any]) -> str:
    player = "random play" if one["player"] == "random" else f"{one['player']}, depth {one['depth']}"
    return f"{game_name(one)}, {player}"


def _table(one: Mapping[str, Any]) -> Table:
    entries = {entry["round"]: entry for entry in one["by_round"]}
    squares = one["size"] ** 2
    wanted = [r for share in (2, 4, 6, 7) if (r := share * squares // 8) in entries]
    wanted = sorted({*wanted, *sorted(entries)[-1:]})
    columns = ["round", *(f"{name}: winner, loser" for name in FEATURES), "lead in safe discs", "lead in moves"]
    rows = []
    for number in wanted:
        entry = entries[number]
        cells = [f"{entry[name]['winner']:.2f}, {entry[name]['loser']:.2f}" for name in FEATURES]
        leads = [with_error(entry[name]["lead"], entry[name]["standard_error"], 2) for name in ("safe discs", "moves")]
        rows.append([str(number), *cells, *leads])
    return Table(f"{_name(one)}: {one['games']:,} games, {one['draws']:,} drawn", columns, rows)


def _figure(results: Results) -> Figure:
    def draw(figure: Any) -> None:
        axes = charts.panels(figure, len(FEATURES), FEATURES)
        for axis, feature in zip(axes, FEATURES, strict=True):
            for one in results:
                colour = charts.BLUE if one["variant"] == "normal" else charts.VERMILION
                xs = np.array([entry["round"] for entry in one["by_round"]])
                ys = np.array([entry[feature]["lead"] for entry in one["by_round"]])
                errors = Z_95 * np.array([entry[feature]["standard_error"] for entry in one["by_round"]], float)
                line = "-" if one["player"] == "random" else "--"
                axis.plot(xs, ys, color=colour, linestyle=line)
                axis.fill_between(xs, ys - errors, ys + errors, color=colour, alpha=0.2, linewidth=0)
            axis.axhline(0, color=charts.GREY, linewidth=0.6)
            axis.set(xlabel="round", xlim=(0, 65), xticks=(0, 32, 64))
        axes[0].set_ylabel("winner less loser")
        for colour, line, name in (
            (charts.BLUE, "-", "normal"),
            (charts.VERMILION, "-", "reversed"),
            (charts.GREY, "-", "random play"),
            (charts.GREY, "--", "heuristic"),
        ):
            axes[-1].plot([], [], color=colour, linestyle=line, label=name)
        axes[-1].legend(loc="best", handlelength=1.6, labelspacing=0.25)

    return Figure(
        "winner",
        "What the later winner has more than the loser, by round; bands of 95 % intervals.",
        draw,
        height=2.5,
    )
