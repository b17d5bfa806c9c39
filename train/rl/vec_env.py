"""The vector environment as a stable-baselines3 ``VecEnv``: its algorithms, MaskablePPO too, run on the batch at full speed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from reversi_env.envs import OpponentPool, ReversiVectorEnv, SettingsError
from reversi_env.errors import extra_libraries

with extra_libraries():
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv


#: What a game's info has at its end.
_ENDS = ("score", "winner", "opponent")


class ReversiVecEnv(VecEnv):
    """*num_envs* games for stable-baselines3; options as in `reversi_env.envs.ReversiVectorEnv`, but for ``copy=False``.

    A game that ends begins anew in the same step, as SB3 expects: ``infos[i]`` then has ``terminal_observation``,
    ``episode`` (return, length, seconds), so that neither ``Monitor`` nor ``VecMonitor`` is needed, and the game's
    ``score``, ``winner`` and ``opponent``; while a game goes on its info is empty. ``opponents`` is the pool, to be changed
    while training.

    ``opponent=None`` trains both sides: the model moves for black and white in turn and sees the board as the side to
    move. Passes are actions, so that turns strictly alternate, and what the next state is worth to its side to move is
    worth the opposite to the one before: **train it with** ``gamma=-1``, and a stock PPO learns by self-play what a
    negamax search would (with any other ``gamma`` it takes the opponent's chances for its own).

    >>> from sb3_contrib import MaskablePPO
    >>> env = ReversiVecEnv(64, size=6, opponent=None)
    >>> MaskablePPO("MlpPolicy", env, gamma=-1.0, n_steps=64, batch_size=1024).learn(500_000)  # doctest: +SKIP
    """

    def __init__(self, num_envs: int, *, opponent: Any = "random", **options: Any) -> None:
        if not options.setdefault("copy", True):
            raise SettingsError(
                "copy=False: expected True, for Stable-Baselines3 keeps what it has seen until after the next step"
            )
        self.games = ReversiVectorEnv(num_envs, opponent=opponent, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        super().__init__(num_envs, self.games.single_observation_space, self.games.single_action_space)
        self._actions = np.zeros(num_envs, np.int64)
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._began = time.time()

    @property
    def opponents(self) -> OpponentPool:
        return self.games.opponents

    def reset(self) -> Any:
        """Begin an episode in every game, with the seeds of `seed` and the options of `set_options` if there are any."""
        if any(options != self._options[0] for options in self._options):
            raise SettingsError("the games of a batch begin alike: expected the same options for all of them")
        observations, _ = self.games.reset(seed=self._seeds, options=self._options[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._returns[:], self._lengths[:] = 0.0, 0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play the actions in all games."""
        observations, rewards, terminated, truncated, games_info = self.games.step(self._actions)
        dones = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            seconds = round(time.time() - self._began, 6)
            infos[i] = {
                "terminal_observation": games_info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": seconds},
            }
            final = games_info["final_info"]
            infos[i] |= {name: int(final[name][i]) for name in _ENDS if name in final and final[f"_{name}"][i]}
        self._returns[dones], self._lengths[dones] = 0.0, 0
        return observations, rewards.astype(np.float32), dones, infos

    def action_masks(self) -> np.ndarray:
        """The legal actions of every game as booleans."""
        return self.games.action_masks()

    def close(self) -> None:
        """Nothing is held that would have to be closed."""
        self.games.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Every game's board, if the render mode is ``rgb_array``."""
        return self.games.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of the batch, repeated for each of the games asked for."""
        return [getattr(self.games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the games are one batch, and share their attributes."""
        raise AttributeError(f"the games of a batch share their attributes: {attr_name!r} cannot be set one by one")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Call a method of the batch; ``action_masks`` gives one row a game."""
        batch = self if method_name == "action_masks" else self.games
        result = getattr(batch, method_name)(*arguments, **options)
        rows = list(self._get_indices(indices))
        return [result[i] for i in rows] if isinstance(result, (np.ndarray, list, tuple)) else [result] * len(rows)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """The games are never wrapped one by one; that they count their own episodes makes ``Monitor`` needless."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]
