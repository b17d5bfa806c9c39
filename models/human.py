"""Ten levels for people to play against: the agent ``human:level=1`` to ``human:level=10``.

A level looks as deep as it can at some moves, and only glances at the others: it then takes for truth what one ply shows, with an
error drawn by lot, and beginners count what they capture. How often it only glances depends on the level and on how hard
the position is to see: on the difference between the values of its moves by one ply and by a deeper search. So mistakes are as
those of people are, now and then and large rather than always and small, and made where a move is not what it looks like. From
`NO_WIPE_OUT` on no glance plays into the loss of all discs where a search of `GUARD` plies sees it, if another move avoids that;
one of `DEEP_GUARD` plies where few are left to lose.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.evaluator import strongest_evaluator
from reversi_env import Position, ReversiError, Rules
from search.agents.base import Agent
from search.agents.searching import SearchAgent
from search.engine.limits import Limits

if TYPE_CHECKING:
    from search.engine.engine import Engine

#: The first level that looks after its last disc, and the plies after a move that it does so for; more where a side has few discs.
NO_WIPE_OUT, GUARD, DEEP_GUARD, FEW = 3, 7, 10, 4
#: Plies of a glance, and of the search that knows what it misses.
GLANCE, KNOWN = 1, 4
#: Discs by which both differ in a position that is as hard to see as most are.
TYPICAL = {"normal": 3.0, "reversed": 1.6}
#: Squares of the board that noise is meant for; on a smaller one it is as much smaller.
FULL_BOARD = 64
#: MiB of the engine's tables, which are cleared before every move.
TABLE = 1
#: More moves than any position has: all of them are valued.
ALL_MOVES = 64


@dataclass(frozen=True)
class Level:
    """How one level plays.

    ``depth``: plies that it sees where it looks, and ``exact`` the empty squares from which on it then sees the end. ``lapse``: the
    chance that it only glances at a position that is as hard to see as most. ``noise``: the standard deviation of what a glance
    adds to a value, in discs on the full board; ``greed``: the share of the discs right after the move in what a glance sees.
    """

    title: str
    depth: int
    exact: int
    lapse: float = 0.0
    noise: float = 0.0
    greed: float = 0.0


LEVELS = (
    Level("Beginner", 6, 6, 1.0, 12.0, 0.9),
    Level("Novice", 6, 6, 0.8, 11.0, 0.7),
    Level("Learner", 6, 6, 0.6, 10.0, 0.6),
    Level("Casual player", 6, 8, 0.45, 9.0, 0.5),
    Level("Club player", 6, 8, 0.33, 8.0, 0.4),
    Level("Strong club player", 6, 10, 0.24, 7.0, 0.3),
    Level("Expert", 6, 10, 0.16, 6.0, 0.2),
    Level("Master", 6, 12, 0.08, 5.0, 0.1),
    Level("Grandmaster", 6, 12, 0.02, 4.0),
    Level("Full strength", 8, 14),
)
#: Elo of the levels in normal games on the full board, by `reversi measure levels`; docs/lab/play.md has the games.
ELO = (-751, -538, -361, -162, 25, 201, 370, 499, 636, 810)
#: The same as people are used to see it: what is 0 for the ladder is 1,500 for them.
RATINGS = tuple(1500 + elo for elo in ELO)


class HumanAgent(Agent):
    """Plays at *level*, 1 to 10, with the strongest evaluator for each game; a move depends on *seed* and the position alone."""

    def __init__(self, level: int = 5, seed: int = 0) -> None:
        if not 1 <= level <= len(LEVELS):
            raise ReversiError(f"level {level}: expected a whole number from 1 to {len(LEVELS)}")
        self.level, self.seed = level, seed
        self._searchers: dict[tuple[int, str], SearchAgent] = {}

    @property
    def style(self) -> Level:
        """How the level plays."""
        return LEVELS[self.level - 1]

    def choose(self, position: Position) -> int:
        """The action that looks best at this level."""
        actions = position.legal_actions()
        if len(actions) == 1:
            return actions[0]
        if not self.style.lapse:
            return self._looked(position)
        seen, known = self._values(position)
        generator = np.random.default_rng([self.seed, position.own, position.opp])
        if generator.random() >= self.chance_of_lapse(position.rules, seen, known):
            return self._looked(position)
        looks = self._glanced(position, seen, generator)
        best_first = [actions[number] for number in np.argsort(-looks)]
        if self.level < NO_WIPE_OUT:
            return best_first[0]
        return next((action for action in best_first if not self._loses_all(position.play(action))), best_first[0])

    def chance_of_lapse(self, rules: Rules, seen: np.ndarray, known: np.ndarray) -> float:
        """How likely it only glances at a position whose moves have these values, in discs, by one ply and by a deeper search."""
        hardness = float(np.abs(known - seen).mean()) / TYPICAL[rules.variant]
        return 1.0 - (1.0 - self.style.lapse) ** hardness

    def _glanced(self, position: Position, seen: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """What a glance takes the moves to be worth, in discs."""
        style, rules = self.style, position.rules
        after = [-rules.sign * position.play(action).disc_difference() for action in position.legal_actions()]
        worth = (1 - style.greed) * seen + style.greed * np.array(after)
        return worth + style.noise * rules.square_count / FULL_BOARD * generator.standard_normal(worth.size)

    def _loses_all(self, after: Position) -> bool:
        """Whether who has just moved loses everything from *after* on, as far as the guard sees."""
        if after.is_over():
            return after.score() >= after.rules.square_count
        few = min(after.own.bit_count(), after.opp.bit_count()) <= FEW
        limits = Limits(depth=DEEP_GUARD if few else GUARD, empties_exact=0)
        found = self._engine(after.rules).search(after, limits)
        return found.value > after.rules.square_count - 0.5

    def _looked(self, position: Position) -> int:
        """The best move as deep as it can see."""
        limits = Limits(depth=self.style.depth, empties_exact=self.style.exact)
        return position.rules.action_from_name(self._engine(position.rules).search(position, limits).move or "pass")

    def _values(self, position: Position) -> tuple[np.ndarray, np.ndarray]:
        """The values of all legal moves by a glance and by the search that knows better, in discs for the side to move."""
        found: list[np.ndarray] = []
        names = [position.rules.name_of(action) for action in position.legal_actions()]
        engine = self._engine(position.rules)
        for depth in (GLANCE, KNOWN):
            limits = Limits(depth=depth, empties_exact=0)
            result = engine.search(position, limits, multi_pv=ALL_MOVES, keep_estimates=bool(found))
            worth = {entry.move: entry.value for entry in result.moves}
            found.append(np.array([worth[name] for name in names]))
        return found[0], found[1]

    def _engine(self, rules: Rules) -> Engine:
        """The engine for that game, which knows nothing of earlier searches: a move depends on the position alone."""
        engine = self.searcher(rules).engine(rules)
        engine.clear()
        return engine

    def searcher(self, rules: Rules) -> SearchAgent:
        """Who searches for it in that game."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            limits = Limits(depth=self.style.depth, empties_exact=self.style.exact)
            self._searchers[key] = SearchAgent(strongest_evaluator(rules), limits, table=TABLE)
        return self._searchers[key]

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """The evaluator's weights, and how the level plays."""
        style = hashlib.sha256(repr((self.style, NO_WIPE_OUT, GUARD, DEEP_GUARD, FEW)).encode()).hexdigest()
        return self.searcher(rules).content_hashes(rules) | {f"human:level={self.level}": style}

    def prepare(self, rules: Rules) -> None:
        """Have the engine for that game ready."""
        self.searcher(rules).prepare(rules)

    def stop(self) -> None:
        """Stop the engines: what looks best so far is played."""
        for searcher in list(self._searchers.values()):
            searcher.stop()
