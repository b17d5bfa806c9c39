"""`ExactRegret`: a Gymnasium wrapper that reports the regret of actions by their exact values."""

from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from reversi_env import Position
from reversi_env.envs.single import ReversiEnv
from reversi_env.errors import ReversiError, check_integer
from search.engine.solver import MAX_SOLVED_EMPTIES, SELECTIVE_EMPTIES
from search.exact_scores import ExactScores


class ExactRegret(gym.Wrapper, RecordConstructorArgs):
    """Adds the regret of the last action to ``info``, for positions with at most *max_empties* empty squares.

    On 4x4 and 6x6 all empty squares are allowed, so that whole games are judged. Solved positions are cached on disk
    (`search.exact_scores`), in the folder *cache*, by default the user's. A new position may take seconds on 6x6 and, at the
    maximum of 24 empty squares, minutes on 8x8.

    * ``exact_score``: the exact value of the position before the action, in discs for the side that acted;
    * ``regret``: the loss by the action in discs, 0 for a best move;
    * ``optimal``: whether the regret is 0.

    For an illegal action, and with more empty squares, the keys are absent. Wrappers inside may transform the board
    (`SymmetryAugmentation`): the move that was played counts, not the index of the action.
    """

    def __init__(
        self,
        env: gym.Env,
        max_empties: int = 12,
        *,
        threads: int = 1,
        megabytes: float = 16,
        cache: Path | str | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, max_empties=max_empties, threads=threads, megabytes=megabytes, cache=cache)
        gym.Wrapper.__init__(self, env)
        if not isinstance(env.unwrapped, ReversiEnv):
            raise ReversiError(f"{env} is not Reversi: expected a ReversiEnv, wrapped or not")
        self._game: Any = env.unwrapped
        rules = self._game.rules
        limit = MAX_SOLVED_EMPTIES[rules.size] if rules.size > 6 else rules.square_count
        check_integer("max_empties", max_empties, 0, limit)
        self.max_empties = max_empties
        order = max_empties >= SELECTIVE_EMPTIES
        folder = None if cache is None else Path(cache)
        self._scores = ExactScores(rules, folder, threads=threads, megabytes=megabytes, order=order)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play *action* and add its regret to ``info``."""
        before = self._game.position()
        observation, reward, terminated, truncated, info = self.env.step(action)
        if before.empties <= self.max_empties and not info.get("illegal_action", False):
            info = info | self._regret(before, self._game.last_action)
        return observation, reward, terminated, truncated, info

    def _regret(self, before: Position, action: int) -> dict[str, Any]:
        best, chosen = self._scores.score(before), self._scores.move_value(before, action)
        return {"exact_score": best, "regret": best - chosen, "optimal": best == chosen}

    def close(self) -> None:
        """Write new solved positions to the cache."""
        self._scores.write()
        super().close()
