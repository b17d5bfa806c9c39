"""Many games between two players that search, for the reports' comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reversi_env import Rules
from search.evaluators.formula import Formula
from studies.sections import with_error
from train.arena.batch import BatchPlayer, EvaluatorPlayer, RandomPlayer, play_games
from train.arena.openings import Openings
from train.arena.results import score_interval

#: Random plies before a game, so that two players without chance play different games.
OPENING_PLIES = 6


def duel(
    player_a: BatchPlayer, player_b: BatchPlayer, rules: Rules, games: int, seed: int = 0, plies: int = OPENING_PLIES
) -> dict[str, Any]:
    """The first player's score over paired openings, as JSON has it."""
    openings = Openings.random(rules, games // 2, plies, seed=seed)
    return play_games(player_a, player_b, openings, rules, seed=seed).as_dict()


def player(name: str | Formula, rules: Rules, depth: int = 1, exact: int = 0) -> BatchPlayer:
    """``random``, or an evaluator that searches; with *exact*, either plays the last squares perfectly."""
    if name == "random":
        return RandomPlayer(rules) if not exact else RandomEndgamePlayer(rules, exact)
    return EvaluatorPlayer(name, rules, depth, exact=exact)


class RandomEndgamePlayer(EvaluatorPlayer):
    """Random moves, then perfect play: the opponent that report 002 measures by."""

    def __init__(self, rules: Rules, exact: int) -> None:
        # an evaluator to which all positions are alike: of equal moves one by lot
        from search import evaluators

        super().__init__(evaluators.get_formula("discs").with_weights(disc_weight=0.0), rules, 1, exact=exact)


def points(result: Mapping[str, Any]) -> str:
    """Points a game in per cent, with their 95 % interval."""
    low, high = result["interval"]
    return f"{100 * result['points']:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def points_and_bars(results: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[list[float]]]:
    """Points a game in per cent for a figure, and the distances to the ends of their 95 % intervals, below and above."""
    bars = [[100 * abs(one["interval"][end] - one["points"]) for one in results] for end in (0, 1)]
    return [100 * one["points"] for one in results], bars


def wins(result: Mapping[str, Any]) -> str:
    """Won, drawn and lost."""
    return f"{result['wins']}–{result['draws']}–{result['losses']}"


def discs(result: Mapping[str, Any]) -> str:
    return with_error(result["discs"], result["discs_standard_error"], 1)


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several duels as one, every game counting alike."""
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
