"""Ten levels for people to play against: the agents ``human:level=1`` to ``human:level=10``.

A level either searches to its full depth, or *glances*: it plays by the values of one ply with random errors, and beginners also
count captured discs. The probability of a glance depends on the level and on the hardness of the position: the difference between
the values of its moves by one ply and by a deeper search. Mistakes are therefore rare and large, as those of people. From
`FIRST_GUARDED_LEVEL` on, a glance avoids the loss of all discs within `GUARD_DEPTH` plies, or `DEEP_GUARD_DEPTH` if a side has few
discs.
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

#: First level that avoids a wipe-out, the depth of its search for one, and that depth for a side with few discs.
FIRST_GUARDED_LEVEL, GUARD_DEPTH, DEEP_GUARD_DEPTH, FEW_DISCS = 3, 7, 10, 4
#: Depth of a glance, and of the search that it is compared with.
GLANCE_DEPTH, REFERENCE_DEPTH = 1, 4
#: Difference of both in discs in a position of average hardness.
TYPICAL_DIFFERENCE = {"normal": 3.0, "reversed": 1.6}
#: Squares of the board for which the noise is given; on a smaller one it is proportionally smaller.
FULL_BOARD = 64
#: MiB of the engine's tables, which are cleared before every move.
TABLE_MIB = 1
#: More moves than any position has.
ALL_MOVES = 64


@dataclass(frozen=True)
class Level:
    """How one level plays.

    ``depth``, ``exact``: limits of its searches. ``lapse``: probability of a glance at a position of average hardness. ``noise``:
    standard deviation of a glance's errors, in discs on the full board. ``greed``: weight of the disc difference right after the
    move in the values of a glance.
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
#: Elo of the levels in normal games on the full board, by the games in docs/lab/play.md.
ELO = (-751, -538, -361, -162, 25, 201, 370, 499, 636, 810)
#: Ratings on the scale of players: 0 Elo is 1,500.
RATINGS = tuple(1500 + elo for elo in ELO)


class HumanAgent(Agent):
    """Plays at *level*, 1 to 10, with the strongest evaluator for each game; a move depends on *seed* and the position alone."""

    def __init__(self, level: int = 5, seed: int = 0) -> None:
        if not 1 <= level <= len(LEVELS):
            raise ReversiError(f"level {level}: expected an integer from 1 to {len(LEVELS)}")
        self.level, self.seed = level, seed
        self._searchers: dict[tuple[int, str], SearchAgent] = {}

    @property
    def style(self) -> Level:
        return LEVELS[self.level - 1]

    def choose(self, position: Position) -> int:
        actions = position.legal_actions()
        if len(actions) == 1:
            return actions[0]
        if not self.style.lapse:
            return self._searched_move(position)
        shallow, reference = self._values(position)
        rng = np.random.default_rng([self.seed, position.own, position.opp])
        if rng.random() >= self.chance_of_lapse(position.rules, shallow, reference):
            return self._searched_move(position)
        best_first = [actions[index] for index in np.argsort(-self._glance_values(position, shallow, rng))]
        if self.level < FIRST_GUARDED_LEVEL:
            return best_first[0]
        return next((action for action in best_first if not self._is_wiped_out(position.play(action))), best_first[0])

    def chance_of_lapse(self, rules: Rules, shallow: np.ndarray, reference: np.ndarray) -> float:
        """Return the probability of a glance, from the values of all moves in discs, by one ply and by the reference search."""
        hardness = float(np.abs(reference - shallow).mean()) / TYPICAL_DIFFERENCE[rules.variant]
        return 1.0 - (1.0 - self.style.lapse) ** hardness

    def _glance_values(self, position: Position, shallow: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        style, rules = self.style, position.rules
        after = [-rules.sign * position.play(action).disc_difference() for action in position.legal_actions()]
        values = (1 - style.greed) * shallow + style.greed * np.array(after)
        return values + style.noise * rules.square_count / FULL_BOARD * rng.standard_normal(values.size)

    def _is_wiped_out(self, after: Position) -> bool:
        """Return whether the side that has just moved to *after* loses all its discs, as far as the guard's search sees."""
        if after.is_over():
            return after.score() >= after.rules.square_count
        few = min(after.own.bit_count(), after.opp.bit_count()) <= FEW_DISCS
        limits = Limits(depth=DEEP_GUARD_DEPTH if few else GUARD_DEPTH, empties_exact=0)
        return self._engine(after.rules).search(after, limits).value > after.rules.square_count - 0.5

    def _searched_move(self, position: Position) -> int:
        limits = Limits(depth=self.style.depth, empties_exact=self.style.exact)
        return position.rules.action_from_name(self._engine(position.rules).search(position, limits).move or "pass")

    def _values(self, position: Position) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of all legal moves by one ply and by the reference search, in discs for the side to move."""
        values: list[np.ndarray] = []
        names = [position.rules.name_of(action) for action in position.legal_actions()]
        engine = self._engine(position.rules)
        for depth in (GLANCE_DEPTH, REFERENCE_DEPTH):
            limits = Limits(depth=depth, empties_exact=0)
            result = engine.search(position, limits, multi_pv=ALL_MOVES, keep_estimates=bool(values))
            by_name = {entry.move: entry.value for entry in result.moves}
            values.append(np.array([by_name[name] for name in names]))
        return values[0], values[1]

    def _engine(self, rules: Rules) -> Engine:
        """Return the engine of a game without results of earlier searches, so that a move depends on the position alone."""
        engine = self.search_agent(rules).engine(rules)
        engine.clear()
        return engine

    def search_agent(self, rules: Rules) -> SearchAgent:
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            limits = Limits(depth=self.style.depth, empties_exact=self.style.exact)
            self._searchers[key] = SearchAgent(strongest_evaluator(rules), limits, table=TABLE_MIB)
        return self._searchers[key]

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """Return the hashes of the evaluator's weights and of the level's parameters."""
        style = hashlib.sha256(
            repr((self.style, FIRST_GUARDED_LEVEL, GUARD_DEPTH, DEEP_GUARD_DEPTH, FEW_DISCS)).encode()
        ).hexdigest()
        return self.search_agent(rules).content_hashes(rules) | {f"human:level={self.level}": style}

    def prepare(self, rules: Rules) -> None:
        self.search_agent(rules).prepare(rules)

    def stop(self) -> None:
        for search_agent in list(self._searchers.values()):
            search_agent.stop()
