"""Wrappers for the single environment: symmetry augmentation, canonical positions, and a plane that shows the last move.

(The side to move always sees its own discs first: that view needs no wrapper.)
"""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from reversi_env.core.symmetry import canonical, transform
from reversi_env.envs.settings import SettingsError, last_action_of
from reversi_env.rules import Rules


@cache
def action_images(size: int) -> np.ndarray:
    """``images[k, action]``: where symmetry *k* takes each action's square; the pass stays."""
    rules = Rules(size)
    images = np.empty((8, rules.square_count + 1), np.int64)
    for symmetry in range(8):
        for action, sq in enumerate(rules.squares()):
            image = int(transform(np.uint64(1 << sq), symmetry))
            images[symmetry, action] = rules.action_of(image.bit_length() - 1)
        images[symmetry, -1] = rules.pass_action
    return images


class _Symmetric(gym.Wrapper):
    """Shows the game under a symmetry of the board and translates the actions back."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._game: Any = env.unwrapped
        self._images = action_images(self._game.rules.size)
        self.symmetry = 0

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(**arguments)
        self.symmetry = self._choose(begins=True)
        return self._turned(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play the action that the caller sees as *action*."""
        if not isinstance(action, (int, np.integer)) or not 0 <= action < self._images.shape[1]:
            return self.env.step(action)  # which says what is wrong with it
        original = int(np.flatnonzero(self._images[self.symmetry] == action)[0])
        observation, reward, terminated, truncated, info = self.env.step(original)
        self.symmetry = self._choose(begins=False)
        observation, info = self._turned(observation, info)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """The legal actions as the caller sees them."""
        return self._turned_actions(self._game.action_masks())

    def sample_legal(self) -> int:
        """A random legal action as the caller sees it."""
        return int(self._images[self.symmetry][self._game.sample_legal()])

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
        return int(self._game.np_random.integers(8)) if begins else self.symmetry


class CanonicalPositions(_Symmetric):
    """Shows every position in its canonical form: all eight images of a position look the same, which tables like."""

    def _choose(self, *, begins: bool) -> int:
        position = self._game.position()
        return int(canonical(np.uint64(position.own), np.uint64(position.opp))[2])


class LastMovePlane(gym.Wrapper):
    """Adds a third plane that marks the square of the last move, usually the opponent's reply; empty after a pass."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._game: Any = env.unwrapped
        self._rules = self._game.rules
        if self._game.settings.observation != "planes":
            raise SettingsError("LastMovePlane needs observation='planes'")
        self.observation_space = gym.spaces.Box(0, 1, (3, self._rules.size, self._rules.size), np.int8)

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(**arguments)
        return self._with_last_move(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play *action*."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_last_move(observation), reward, terminated, truncated, info

    def _with_last_move(self, planes: np.ndarray) -> np.ndarray:
        last = last_action_of(self._game.get_state()[0], self._rules)
        plane = np.zeros(self._rules.square_count, np.int8)
        if last is not None and last != self._rules.pass_action:
            plane[last] = 1
        return np.concatenate([planes, plane.reshape(1, self._rules.size, self._rules.size)])
