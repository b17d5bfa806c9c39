"""The tensor environment behind Gymnasium's `VectorEnv`: for code that expects arrays and spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reversi_env import batch
from reversi_env.envs.settings import shared_seed
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch

if TYPE_CHECKING:
    from reversi_env.envs.torch_vector import TorchVectorEnv

#: What is told of a game that has ended, and means nothing for one that goes on.
_OF_ENDS = ("final_boards", "final_score", "winner")
_DTYPES: dict[str, tuple[Any, Any]] = {"planes": (1, np.uint8), "half": (1, np.float16)}


class TorchGymnasiumEnv(VectorEnv):
    """A `TorchVectorEnv` as a Gymnasium `VectorEnv` with autoreset in the same step.

    With ``numpy=True`` all results are numpy arrays, copied from the device, so that Gymnasium's wrappers work. With
    ``numpy=False`` they are the environment's tensors, no copies, as GPU simulators do; the spaces are the same.

    ``infos``: the tensors of `TorchVectorEnv`, each with Gymnasium's mark of the games it is for. Where an episode has ended,
    ``final_obs`` and ``_final_obs`` (with arrays only) hold its end, as Gymnasium's own vector environments do.
    """

    def __init__(self, envs: TorchVectorEnv, *, numpy: bool = True) -> None:
        self.envs, self.numpy = envs, numpy
        self.num_envs = envs.num_envs
        self.autoreset_mode = AutoresetMode.SAME_STEP
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self.render_mode = None
        self.single_observation_space = _observation_space(envs)
        self.single_action_space = spaces.Discrete(envs.rules.square_count + 1)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those that ``options["reset_mask"]`` marks."""
        super().reset(seed=shared_seed(seed, self.num_envs))
        observations, infos = self.envs.reset(seed=seed, options=options)
        return self._given(observations), self._infos(infos, self._given(observations.new_zeros(self.num_envs) > 0))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one action in every game."""
        observations, rewards, terminated, truncated, infos = self.envs.step(actions)
        results = [self._given(tensor) for tensor in (observations, rewards, terminated, truncated)]
        if self.numpy:
            results[1] = results[1].astype(np.float64)  # what Gymnasium's wrappers add up
        found = self._infos(infos, self._given(terminated))
        if self.numpy and results[2].any():
            found |= {"final_obs": self._final_observations(infos, results[2]), "_final_obs": results[2].copy()}
        return results[0], results[1], results[2], results[3], found

    def _given(self, tensor: torch.Tensor) -> Any:
        return tensor.cpu().numpy().copy() if self.numpy else tensor

    def _infos(self, infos: dict[str, torch.Tensor], ended: Any) -> dict[str, Any]:
        every = np.ones(self.num_envs, np.bool_)
        found: dict[str, Any] = {}
        for name, tensor in infos.items():
            if self.numpy and name == "action_mask":
                found[name] = self._given(tensor).view(np.int8)  # what spaces sample with
            else:
                found[name] = self._given(tensor)
            found[f"_{name}"] = ended if name in _OF_ENDS else every
        return found

    def _final_observations(self, infos: dict[str, torch.Tensor], ended: np.ndarray) -> np.ndarray:
        """Gymnasium's form: an array of objects, one observation for every episode that has ended."""
        rows = np.flatnonzero(ended)
        boards = infos["final_boards"].cpu().numpy()[rows]
        if self.envs.layout != "packed":
            own, opp = boards.T.view(np.uint64)
            boards = batch.planes(own, opp, self.envs.rules).astype(_DTYPES[self.envs.layout][1])
        final = np.full(self.num_envs, None, dtype=object)
        final[rows] = np.fromiter(boards, object, rows.size)
        return final


def _observation_space(envs: TorchVectorEnv) -> spaces.Box:
    size = envs.rules.size
    if envs.layout == "packed":
        limits = np.iinfo(np.int64)
        return spaces.Box(limits.min, limits.max, (2,), np.int64)
    high, dtype = _DTYPES[envs.layout]
    return spaces.Box(0, high, (2, size, size), dtype)
