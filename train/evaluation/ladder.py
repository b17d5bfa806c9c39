"""The ladder: the strength of a policy against fixed baselines, in points per game and in Elo.

All games are from paired random openings, every opening from both sides, thousands in lockstep. The baselines play each other as
well, once, so that Elo means the same in every run: it is relative to ``random``, which has 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, nan
from typing import Any

import numpy as np

from models.evaluator import strongest_evaluator
from reversi_env import ReversiError, Rules
from reversi_env.options import derive_seed
from train.arena.batch import BatchPlayer, compiled_player, play_games
from train.arena.openings import Openings
from train.arena.ratings import fit_ratings, interval_text
from train.arena.results import Results
from train.charts import BLACK, BLUE, COLOURS, GREY, Figure, labels, panels

BASELINES = ("random", "greedy", "cell-utility:depth=2", "six-factor:depth=2")
#: The strongest baseline, for games with a packaged network.
NETWORK = "network:depth=2"
#: Stronger baselines for `Ladder`, for the same games.
STRONGER = ("network:depth=4", "network:depth=6", "network:depth=8")
#: Score that a player must exceed against a stronger baseline, or the last of the others, to play the next.
PASS_SCORE = 0.5
X_LABEL = "steps, millions"


@dataclass(frozen=True)
class PolicyStanding:
    """A policy's scores against every baseline, and its Elo above `elo_origin` with the ends of the 95 % interval.

    Elo is that of Davidson's model; an end is infinite if the results do not bound it, and ``elo`` then means nothing
    (`train.arena.ratings.Rating`).
    """

    scores: dict[str, Results]
    elo: float
    low: float
    high: float

    @property
    def elo_origin(self) -> str:
        return "random" if "random" in self.scores else "the mean of these players"

    def as_dict(self) -> dict[str, Any]:
        """Return the standing as JSON: an open end of the interval is None, and then Elo is, too."""
        low, high = (end if isfinite(end) else None for end in (self.low, self.high))
        elo = None if low is None or high is None else self.elo
        fields = ("points", "interval", "wins", "draws", "losses", "discs")
        baselines = {name: {key: results.as_dict()[key] for key in fields} for name, results in self.scores.items()}
        return {"elo": elo, "elo_low": low, "elo_high": high, "rungs": baselines}


class Ladder:
    """The baselines of a game and their results against each other; *games* (an even number) between any two players.

    *baselines*: specs, by default those of the game (`default_baselines`), or players by name.

    A player that passes the last baseline (`PASS_SCORE`) plays the *stronger* ones too, until it fails to pass one. A stronger one
    plays only the baseline before it, when first needed: a deep search takes minutes for some hundred games.
    """

    def __init__(
        self,
        rules: Rules,
        games: int = 400,
        seed: int = 0,
        baselines: tuple[str, ...] | Mapping[str, BatchPlayer] | None = None,
        *,
        stronger: tuple[str, ...] = (),
    ) -> None:
        self.rules, self._seed = rules, seed
        self.baselines = default_baselines(rules) if baselines is None else tuple(baselines)
        self._stronger = stronger
        players = baselines if isinstance(baselines, Mapping) else {spec: self._player(spec) for spec in self.baselines}
        self.players: list[BatchPlayer] = [*players.values()]
        plies = 6 if rules.size > 4 else 2
        self._openings = Openings.random(rules, games // 2, plies, seed)
        count = 1 + len(self.baselines) + len(stronger)
        self._wins, self._draws = np.zeros((2, count, count))
        for (a, first), (b, second) in combinations(enumerate(self.players, start=1), 2):
            self._record(a, b, self._play(a, first, b, second))

    def measure(self, player: BatchPlayer) -> PolicyStanding:
        """Play *player* against all baselines, and against the stronger ones as far as it passes."""
        scores: dict[str, Results] = {}
        for number, spec in enumerate((*self.baselines, *self._stronger), start=1):
            if number > len(self.baselines) and (not scores or [*scores.values()][-1].score <= PASS_SCORE):
                break
            if number > len(self.players):
                self.players.append(self._player(spec))
                self._record(number - 1, number, self._play(number - 1, self.players[-2], number, self.players[-1]))
            scores[spec] = self._play(0, player, number, self.players[number - 1])
            self._record(0, number, scores[spec])
        anchor = 1 + self.baselines.index("random") if "random" in self.baselines else None
        met = slice(1 + len(scores))  # Elo does not depend on baselines that only other players have met
        own = fit_ratings(self._wins[met, met], self._draws[met, met], anchor).players[0]
        return PolicyStanding(scores, own.elo, own.low, own.high)

    def _player(self, spec: str) -> BatchPlayer:
        player = compiled_player(spec, self.rules)
        if player is None:
            raise ReversiError(f"baseline {spec!r}: expected random, greedy, or an evaluator with a depth")
        return player

    def _play(self, a: int, first: BatchPlayer, b: int, second: BatchPlayer) -> Results:
        # With one seed for all pairings, a policy that plays like a baseline would repeat the games of that baseline.
        return play_games(first, second, self._openings, self.rules, seed=derive_seed(self._seed, a, b))

    def _record(self, a: int, b: int, results: Results) -> None:
        self._wins[a, b], self._wins[b, a] = results.wins, results.losses
        self._draws[a, b] = self._draws[b, a] = results.draws


def default_baselines(rules: Rules) -> tuple[str, ...]:
    """Return the baselines of a game, the weakest first."""
    return (*BASELINES, NETWORK) if strongest_evaluator(rules) == "network" else BASELINES


# --- evaluations of a training run, each with the entries of `PolicyStanding.as_dict` -------------


def elo_text(evaluation: Mapping[str, Any]) -> str:
    """Return the Elo of an evaluation for a progress line; its bound if Elo is not determined."""
    elo, low, high = (evaluation[key] for key in ("elo", "elo_low", "elo_high"))
    return f"{interval_text(low, high) if elo is None else f'{elo:+.0f}'} Elo"


def flat_row(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an evaluation as a row of a table, with the points against each baseline in columns of their own."""
    points = {name: round(baseline["points"], 4) for name, baseline in evaluation["rungs"].items()}
    return {key: value for key, value in evaluation.items() if key != "rungs"} | points


def ladder_figure(evaluations: Sequence[Mapping[str, Any]], game: str, x_label: str = X_LABEL) -> Figure:
    """Return a plot of points against each baseline, and of Elo, over the ``steps`` of evaluations."""
    steps = [row["steps"] / (1e6 if x_label == X_LABEL else 1) for row in evaluations]

    def draw(figure: Any) -> None:
        scores, elo = panels(figure, 2, (f"{game}: points per game", "Elo above random, 95 % interval"))
        for axis in (scores, elo):
            axis.set_xlabel(x_label)
        scores.set_ylim(0, 1.02)
        ends = []
        names = dict.fromkeys(name for row in evaluations for name in row["rungs"])
        for colour, name in zip((*COLOURS, GREY, BLACK), names, strict=False):
            played = [
                (step, row["rungs"][name]["points"])
                for step, row in zip(steps, evaluations, strict=True)
                if name in row["rungs"]
            ]
            scores.plot(*zip(*played, strict=True), color=colour)
            ends.append((steps[-1], played[-1][1], name, colour))
        labels(scores, ends)
        # An Elo that is not determined and an open end of its interval are None, and are not drawn.
        values, low, high = (
            [nan if row[key] is None else row[key] for row in evaluations] for key in ("elo", "elo_low", "elo_high")
        )
        elo.plot(steps, values, color=BLUE)
        elo.fill_between(steps, low, high, color=BLUE, alpha=0.2, linewidth=0)

    return Figure("curve", f"{game}: points against the ladder, and Elo.", draw)
