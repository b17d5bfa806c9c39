"""Games between two players that search."""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from reversi_env import Rules
from search.evaluators.formula import Formula
from studies.figures import Series
from studies.sections import Row, with_error
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import score_interval

#: Random plies before a game, so that two deterministic players play different games.
OPENING_PLIES = 6


def duel(player_a: BatchPlayer, player_b: BatchPlayer, rules: Rules, games: int, seed: int = 0) -> dict[str, Any]:
    """Return the first player's results over paired openings."""
    openings = Openings.random(rules, games // 2, OPENING_PLIES, seed=seed)
    return play_games(player_a, player_b, openings, rules, seed=seed).as_dict()


def player(name: str | Formula, rules: Rules, depth: int = 1, exact: int = 0) -> BatchPlayer:
    """Return the random player, or one that searches with an evaluator; with *exact*, it plays the last squares perfectly."""
    if name == "random":
        return RandomPlayer(rules) if not exact else RandomEndgamePlayer(rules, exact)
    return EvaluatorPlayer(name, rules, depth, exact=exact)


class RandomEndgamePlayer(EvaluatorPlayer):
    """Random moves, then perfect play: the opponent that report 002 measures by."""

    def __init__(self, rules: Rules, exact: int) -> None:
        # with an evaluator that gives all positions the same value, the choice among equal moves is random
        from search import evaluators

        super().__init__(evaluators.get_formula("discs").with_weights(disc_weight=0.0), rules, 1, exact=exact)


def points(result: Row) -> str:
    """Return points per game in per cent, with their 95 % interval."""
    low, high = result["interval"]
    return f"{100 * result['points']:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def points_series(label: str, xs: Sequence[float], results: Sequence[Row], style: Row = MappingProxyType({})) -> Series:
    """Return points per game in per cent with their 95 % intervals, for a figure."""
    errors = [[100 * abs(one["interval"][end] - one["points"]) for one in results] for end in (0, 1)]
    return Series(label, xs, [100 * one["points"] for one in results], errors, style)


def wins(result: Row) -> str:
    return f"{result['wins']}–{result['draws']}–{result['losses']}"


def discs(result: Row) -> str:
    return with_error(result["discs"], result["discs_standard_error"], 1)


def pooled(results: Sequence[Row]) -> dict[str, Any]:
    """Return the combined results of several duels, with the same weight for every game."""
    games = sum(one["games"] for one in results)
    summed = {key: sum(one[key] for one in results) for key in ("games", "wins", "draws", "losses")}
    share = [one["games"] / games for one in results]
    means = {key: sum(w * one[key] for w, one in zip(share, results, strict=True)) for key in ("points", "discs")}
    errors = {
        key: math.sqrt(sum((w * one[key]) ** 2 for w, one in zip(share, results, strict=True)))
        for key in ("standard_error", "discs_standard_error")
    }
    interval = score_interval(means["points"], games, errors["standard_error"])
    return summed | means | errors | {"interval": interval}
