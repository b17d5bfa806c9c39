"""Wrappers for the single environment: symmetry augmentation, canonical positions, and a plane that shows the last move.

(The side to move always sees its own discs first: that view needs no wrapper.)
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from reversi_env.core.symmetry import INVERSE_SYMMETRY, canonical
from reversi_env.envs.settings import SettingsError, last_action_of
from reversi_env.envs.single import ReversiEnv
from reversi_env.symmetries import action_images


def _reversi_inside(env: gym.Env) -> ReversiEnv:
    if not isinstance(env.unwrapped, ReversiEnv):
        raise SettingsError(f"{env} is not Reversi: expected a ReversiEnv, wrapped or not")
    return env.unwrapped


class _Symmetric(gym.Wrapper, RecordConstructorArgs):
    """Shows the game under a symmetry of the board and translates the actions back."""

    def __init__(self, env: gym.Env) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._reversi = _reversi_inside(env)
        self._images = action_images(self._reversi.rules.size)
        self.symmetry = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.symmetry = self._choose(begins=True)
        return self._turned(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play the action that the caller sees as *action*."""
        seen = self._reversi.action_number(action)
        played = int(self._images[INVERSE_SYMMETRY[self.symmetry], seen])
        observation, reward, terminated, truncated, info = self.env.step(played)
        self.symmetry = self._choose(begins=False)
        observation, info = self._turned(observation, info)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """The legal actions as the caller sees them."""
        return self._turned_actions(self._reversi.action_masks())

    def sample_legal(self) -> int:
        """A random legal action as the caller sees it."""
        return int(self._images[self.symmetry, self._reversi.sample_legal()])

    def _choose(self, *, begins: bool) -> int:
        raise NotImplementedError

    def _turned_actions(self, actions: np.ndarray) -> np.ndarray:
        turned = np.empty_like(actions)
        turned[self._images[self.symmetry]] = actions
        return turned

    def _turned_board(self, board: np.ndarray) -> np.ndarray:
        rows = board.reshape(-1, self._images.shape[1] - 1)
        turned = np.empty_like(rows)
        turned[:, self._images[self.symmetry, :-1]] = rows
        return turned.reshape(board.shape)

    def _turned(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        info = info | {"action_mask": self._turned_actions(info["action_mask"]), "symmetry": self.symmetry}
        if not isinstance(observation, dict):
            return self._turned_board(observation), info
        board, mask = observation["observation"], observation["action_mask"]
        return {"observation": self._turned_board(board), "action_mask": self._turned_actions(mask)}, info


class SymmetryAugmentation(_Symmetric):
    """Shows every episode under a random one of the eight symmetries, drawn from the environment's ``np_random``."""

    def _choose(self, *, begins: bool) -> int:
        return int(self._reversi.np_random.integers(8)) if begins else self.symmetry


class CanonicalPositions(_Symmetric):
    """Shows every position in its canonical form: all eight images of a position look the same, which tables like."""

    def _choose(self, *, begins: bool) -> int:
        position = self._reversi.position()
        return int(canonical(np.uint64(position.own), np.uint64(position.opp))[2])


class LastMovePlane(gym.Wrapper, RecordConstructorArgs):
    """Adds a third plane that marks the square of the last move, usually the opponent's reply; empty after a pass.

    A wrapper that turns the board goes around this one, so that it turns the third plane too.
    """

    def __init__(self, env: gym.Env) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._reversi = _reversi_inside(env)
        size = self._reversi.rules.size
        if self.env.observation_space.shape != (2, size, size):
            raise SettingsError(f"LastMovePlane around {self.env.observation_space}: expected observation='planes'")
        if self.env.has_wrapper_attr("symmetry"):
            raise SettingsError("LastMovePlane is around a wrapper that turns the board: expected it inside")
        self.observation_space = gym.spaces.Box(0, 1, (3, size, size), np.int8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_last_move(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play *action*."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_last_move(observation), reward, terminated, truncated, info

    def _with_last_move(self, planes: np.ndarray) -> np.ndarray:
        rules = self._reversi.rules
        last = last_action_of(self._reversi.get_state()[0], rules)
        plane = np.zeros((1, rules.size, rules.size), np.int8)
        if last is not None and last != rules.pass_action:
            plane.flat[last] = 1
        return np.concatenate([planes, plane])
