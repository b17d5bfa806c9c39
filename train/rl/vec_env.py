"""The vector environment as a ``VecEnv`` of stable-baselines3, for its algorithms and for MaskablePPO."""

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


#: Entries of the info at the end of a game.
_FINAL_INFO = ("score", "winner", "opponent")


class ReversiVecEnv(VecEnv):
    """*num_envs* games for stable-baselines3; options as in `reversi_env.envs.ReversiVectorEnv`, except ``copy=False``.

    A finished game is reset in the same step. ``infos[i]`` then has ``terminal_observation``, ``episode`` (return, length,
    seconds; neither ``Monitor`` nor ``VecMonitor`` is needed), ``score``, ``winner`` and ``opponent``; otherwise it is empty.
    ``opponents`` is the pool, which may be changed during training.

    ``opponent=None`` trains both sides: the model moves for black and white in turn, each seen as the side to move. Passes are
    actions, so turns strictly alternate, and the value of the next state is that of the opponent: **train with** ``gamma=-1``.
    With any other ``gamma`` the opponent's rewards count as the model's own.

    >>> from sb3_contrib import MaskablePPO
    >>> env = ReversiVecEnv(64, size=6, opponent=None)
    >>> MaskablePPO("MlpPolicy", env, gamma=-1.0, n_steps=64, batch_size=1024).learn(500_000)  # doctest: +SKIP
    """

    def __init__(self, num_envs: int, *, opponent: Any = "random", **options: Any) -> None:
        if not options.setdefault("copy", True):
            raise SettingsError(
                "copy=False: expected True, since stable-baselines3 uses observations after the next step"
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
        """Reset all games, with the seeds of `seed` and the options of `set_options`."""
        if any(options != self._options[0] for options in self._options):
            raise SettingsError("options that differ between the games of a batch: expected the same for all")
        observations, _ = self.games.reset(seed=self._seeds, options=self._options[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._returns[:], self._lengths[:] = 0.0, 0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
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
            infos[i] |= {name: int(final[name][i]) for name in _FINAL_INFO if name in final and final[f"_{name}"][i]}
        self._returns[dones], self._lengths[dones] = 0.0, 0
        return observations, rewards.astype(np.float32), dones, infos

    def action_masks(self) -> np.ndarray:
        return self.games.action_masks()

    def close(self) -> None:
        self.games.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return the pictures of all games if the render mode is ``rgb_array``, else None for each."""
        return self.games.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the batch, once per game."""
        return [getattr(self.games, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(
            f"{attr_name!r} of the games of a batch: expected no assignment, since all games share their attributes"
        )

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Return the results of a method of the batch, one per game."""
        batch = self if method_name == "action_masks" else self.games
        result = getattr(batch, method_name)(*arguments, **options)
        rows = list(self._get_indices(indices))
        return [result[i] for i in rows] if isinstance(result, (np.ndarray, list, tuple)) else [result] * len(rows)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return True for ``Monitor``, which is not needed: the environment counts its episodes."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]
