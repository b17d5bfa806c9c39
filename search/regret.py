"""`ExactRegret`: a Gymnasium wrapper that reports the regret of actions near the end of the game, by the exact solver."""

from typing import Any, cast

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from reversi_env import Position
from reversi_env.errors import check_integer
from search.engine.solver import MAX_SOLVED_EMPTIES, Solver
from search.engine.table import TranspositionTable


class ExactRegret(gym.Wrapper, RecordConstructorArgs):
    """Adds the regret of the last action to ``info``, for positions with at most *max_empties* empty squares.

    At the maximum, 24 on 8x8 and 26 on 6x6, a move may take minutes; 4x4 is solved from the start.

    * ``exact_score``: the exact value of the position before the action, in discs for the side that acted;
    * ``regret``: the loss by the action in discs, 0 for a best move;
    * ``optimal``: whether the regret is 0.

    For an illegal action, and further from the end, the keys are absent. Wrappers inside may transform the board
    (`SymmetryAugmentation`): the move that was played counts, not the index of the action.
    """

    def __init__(self, env: gym.Env, max_empties: int = 12, *, threads: int = 1, megabytes: float = 16) -> None:
        RecordConstructorArgs.__init__(self, max_empties=max_empties, threads=threads, megabytes=megabytes)
        gym.Wrapper.__init__(self, env)
        self._game = cast(Any, env.unwrapped)
        size, limit = self._game.rules.size, MAX_SOLVED_EMPTIES[self._game.rules.size]
        check_integer("max_empties", max_empties, 0, limit if limit < size * size - 4 else size * size)
        self.max_empties = max_empties
        self._solver = Solver(self._game.rules, threads=threads, table=TranspositionTable(megabytes))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play *action* and add its regret to ``info``."""
        before = self._game.position()
        observation, reward, terminated, truncated, info = self.env.step(action)
        if before.empties <= self.max_empties and not info.get("illegal_action", False):
            info = info | self._regret(before, self._game.last_action)
        return observation, reward, terminated, truncated, info

    def _regret(self, before: Position, action: int) -> dict[str, Any]:
        best = self._solver.solve(before).score
        chosen = -self._solver.solve(before.play(action), guess=-best).score
        return {"exact_score": best, "regret": best - chosen, "optimal": best == chosen}
