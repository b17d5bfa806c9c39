"""Wrappers that show the game under a symmetry of the board, for the single and the vector environment."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from reversi_env import batch
from reversi_env.batch import action_images
from reversi_env.envs.settings import Settings, SettingsError, reset_mask
from reversi_env.envs.single import ReversiEnv
from reversi_env.envs.vector import ReversiVectorEnv
from reversi_env.kernels.symmetry import INVERSE_SYMMETRY, canonical


def _transformed_boards(boards: np.ndarray, sources: np.ndarray, settings: Settings) -> np.ndarray:
    """Return the images of boards: ``sources[i, a]`` is the action of row *i* whose image is *a*."""
    count, squares = len(boards), sources[:, :-1]
    if settings.channels_last:
        rows = boards.reshape(count, squares.shape[1], -1)
        return np.take_along_axis(rows, squares[:, :, None], axis=1).reshape(boards.shape)
    rows = boards.reshape(count, -1, squares.shape[1])
    return np.take_along_axis(rows, squares[:, None, :], axis=2).reshape(boards.shape)


def _transformed_observations(observations: Any, sources: np.ndarray, settings: Settings) -> Any:
    if not isinstance(observations, dict):
        return _transformed_boards(observations, sources, settings)
    boards, masks = observations["observation"], observations["action_mask"]
    return {
        "observation": _transformed_boards(boards, sources, settings),
        "action_mask": np.take_along_axis(masks, sources, axis=1),
    }


class _Symmetric(gym.Wrapper, RecordConstructorArgs):
    """Shows the game under a symmetry of the board and translates the actions back."""

    def __init__(self, env: gym.Env) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        if not isinstance(env.unwrapped, ReversiEnv):
            raise SettingsError(f"{env} is not Reversi: expected a ReversiEnv, wrapped or not")
        self._reversi = env.unwrapped
        self._images = action_images(self._reversi.rules.size)
        self.symmetry = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self.symmetry = self._choose(begins=True)
        return self._transformed(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen = self._reversi.action_number(action)
        played = int(self._images[INVERSE_SYMMETRY[self.symmetry], seen])
        observation, reward, terminated, truncated, info = self.env.step(played)
        self.symmetry = self._choose(begins=False)
        observation, info = self._transformed(observation, info)
        return observation, reward, terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        return self._shown_actions(self._reversi.action_masks())

    def sample_legal(self) -> int:
        return int(self._images[self.symmetry, self._reversi.sample_legal()])

    def _choose(self, *, begins: bool) -> int:
        raise NotImplementedError

    def _shown_actions(self, actions: np.ndarray) -> np.ndarray:
        return np.take_along_axis(actions[None], self._sources(), axis=1)[0]

    def _sources(self) -> np.ndarray:
        return self._images[[INVERSE_SYMMETRY[self.symmetry]]]

    def _transformed(self, observation: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        info = info | {"action_mask": self._shown_actions(info["action_mask"]), "symmetry": self.symmetry}
        settings = self._reversi.settings
        if not isinstance(observation, dict):
            return _transformed_boards(observation[None], self._sources(), settings)[0], info
        rows = {name: part[None] for name, part in observation.items()}
        transformed = _transformed_observations(rows, self._sources(), settings)
        return {name: part[0] for name, part in transformed.items()}, info


class SymmetryAugmentation(_Symmetric):
    """Shows every episode under a random one of the eight symmetries, drawn from the environment's ``np_random``."""

    def _choose(self, *, begins: bool) -> int:
        return int(self._reversi.np_random.integers(8)) if begins else self.symmetry


class CanonicalPositions(_Symmetric):
    """Shows every position in its canonical form, the same for all eight images of a position."""

    def _choose(self, *, begins: bool) -> int:
        position = self._reversi.position()
        return int(canonical(np.uint64(position.own), np.uint64(position.opp))[2])


class _VectorSymmetric(VectorWrapper):
    """Shows every game of a batch under its own symmetry and translates the actions back."""

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        if not isinstance(env.unwrapped, ReversiVectorEnv):
            raise SettingsError(f"{env} is not a batch of Reversi: expected a ReversiVectorEnv, wrapped or not")
        self._reversi = env.unwrapped
        self._images = action_images(self._reversi.rules.size)
        #: The symmetry that each game is shown under.
        self.symmetries = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those that ``options["reset_mask"]`` marks."""
        observations, infos = self.env.reset(seed=seed, options=options)
        begun = reset_mask(options, self.num_envs, begun=True)
        self._choose(begun)
        self._ended &= ~begun
        return self._transformed(observations, infos)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        seen = self._reversi.action_numbers(actions)
        played = self._images[INVERSE_SYMMETRY[self.symmetries], seen]
        observations, rewards, terminated, truncated, infos = self.env.step(played)
        if "final_obs" in infos:
            infos = self._transformed_final_infos(infos)
        ended = terminated | truncated
        mode = self._reversi.autoreset_mode
        self._choose(ended if mode == AutoresetMode.SAME_STEP else self._ended)
        self._ended = ended & (mode == AutoresetMode.NEXT_STEP)
        observations, infos = self._transformed(observations, infos)
        return observations, rewards, terminated, truncated, infos

    def action_masks(self) -> np.ndarray:
        return np.take_along_axis(self._reversi.action_masks(), self._sources(), axis=1)

    def sample_legal(self) -> np.ndarray:
        return self._images[self.symmetries, self._reversi.sample_legal()]

    def _choose(self, begun: np.ndarray) -> None:
        """Choose `symmetries` for the positions that are shown now; *begun*: in these games an episode has begun."""
        raise NotImplementedError

    def _sources(self) -> np.ndarray:
        return self._images[INVERSE_SYMMETRY[self.symmetries]]

    def _transformed(self, observations: Any, infos: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        sources = self._sources()
        symmetry_infos = {"symmetry": self.symmetries.copy(), "_symmetry": infos["_action_mask"]}
        infos = infos | symmetry_infos | {"action_mask": np.take_along_axis(infos["action_mask"], sources, axis=1)}
        return _transformed_observations(observations, sources, self._reversi.settings), infos

    def _transformed_final_infos(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Return the ends of episodes under the symmetries of these episodes."""
        rows, sources = np.flatnonzero(infos["_final_obs"]), self._sources()
        final, settings = infos["final_obs"].copy(), self._reversi.settings
        if settings.observation == "dict":
            parts = {name: np.stack([end[name] for end in final[rows]]) for name in ("observation", "action_mask")}
            transformed = _transformed_observations(parts, sources[rows], settings)
            final[rows] = [dict(zip(transformed, end, strict=True)) for end in zip(*transformed.values(), strict=True)]
        else:
            boards = _transformed_boards(np.stack(final[rows].tolist()), sources[rows], settings)
            final[rows] = np.fromiter(boards, object, rows.size)
        ends = infos["final_info"]
        transformed_infos = ends | {"action_mask": np.take_along_axis(ends["action_mask"], sources, axis=1)}
        return infos | {"final_obs": final, "final_info": transformed_infos}


class VectorSymmetryAugmentation(_VectorSymmetric):
    """`SymmetryAugmentation` for a `ReversiVectorEnv`: every episode of every game has its own symmetry."""

    def _choose(self, begun: np.ndarray) -> None:
        self.symmetries[begun] = self._reversi.np_random.integers(8, size=int(begun.sum()))


class VectorCanonicalPositions(_VectorSymmetric):
    """`CanonicalPositions` for a `ReversiVectorEnv`."""

    def _choose(self, begun: np.ndarray) -> None:
        states = self._reversi.get_state()
        self.symmetries = batch.canonical(states["own"], states["opp"])[2].astype(np.int64)
