"""`TrainingEnv`: the games of a training run, from random openings, under random symmetries, restored from checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.policy.net import symmetry_actions
from reversi_env.options import derive_seed
from train.jobs.checkpoints import games_state, put_games
from train.rl.opponents import SelfPlayPool
from train.rl.vec_env import ReversiVecEnv


class TrainingEnv(ReversiVecEnv):
    """`ReversiVecEnv` with ``dict`` observations; every episode begins after 0 to *plies* random plies.

    If *symmetric*, an episode is shown under one of the eight symmetries of the board, drawn at its reset. So the policy that acts
    is the one that learns, which would not hold if positions were transformed in the updates.
    """

    def __init__(
        self, num_envs: int, pool: SelfPlayPool, *, plies: int = 0, symmetric: bool = True, seed: int = 0
    ) -> None:
        rules = pool.rules
        game: dict[str, Any] = {"size": rules.size, "variant": rules.variant, "colour": "random"}
        super().__init__(num_envs, opponent=pool.opponents, observation="dict", **game)
        self.seed(seed)
        self._rng = np.random.default_rng([seed, 2])
        self._plies, self._symmetric = plies, symmetric
        self._symmetry_actions = symmetry_actions(rules)
        self._symmetries = np.zeros(num_envs, np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the games. Runs with neighbouring seeds share none, although game *i* adds *i* to its seed."""
        return super().seed(None if seed is None else derive_seed(seed))

    def reset(self) -> Any:
        """Begin an episode in every game."""
        self._draw_plies()
        observations = super().reset()
        self._draw_symmetries(np.ones(self.num_envs, np.bool_))
        return self._transformed(observations, self._symmetries)

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for `step_wait`, as actions of the real board."""
        super().step_async(self._symmetry_actions[self._symmetries, actions])

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play the actions in all games."""
        self._draw_plies()
        observations, rewards, dones, infos = super().step_wait()
        for i in np.flatnonzero(dones):
            last = {key: value[None] for key, value in infos[i]["terminal_observation"].items()}
            transformed = self._transformed(last, self._symmetries[i : i + 1])
            infos[i]["terminal_observation"] = {key: value[0] for key, value in transformed.items()}
        self._draw_symmetries(dones)
        return self._transformed(observations, self._symmetries), rewards, dones, infos

    def action_masks(self) -> np.ndarray:
        """Return the legal actions of every game under its symmetry."""
        return np.take_along_axis(super().action_masks(), self._symmetry_actions[self._symmetries], axis=1)

    # --- checkpoints ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all that decides how the games continue, except for the opponents."""
        state = games_state(self.games.get_state())
        state |= {"turns": self._symmetries.copy(), "returns": self._returns.copy(), "lengths": self._lengths.copy()}
        return state | {"lots": self._rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> Any:
        """Resume from a `state` with the same opponents; return the observations."""
        self.games.set_state(put_games(state, self.games.get_state()))
        self._symmetries, self._returns, self._lengths = (
            np.array(state[name]) for name in ("turns", "returns", "lengths")
        )
        self._rng.bit_generator.state = state["lots"]
        boards, masks = self.games.observe()
        return self._transformed({"observation": boards, "action_mask": masks}, self._symmetries)

    # --- inside -----------------------------------------------------------------------------------

    def _draw_plies(self) -> None:
        if self._plies:
            self.games.begin_with(opening_plies=int(self._rng.integers(self._plies + 1)))

    def _draw_symmetries(self, which: np.ndarray) -> None:
        if self._symmetric and which.any():
            self._symmetries[which] = self._rng.integers(8, size=int(which.sum()))

    def _transformed(self, observations: dict[str, np.ndarray], symmetries: np.ndarray) -> dict[str, np.ndarray]:
        if not self._symmetric:
            return observations
        actions, boards = self._symmetry_actions[symmetries], observations["observation"]
        flat = boards.reshape(len(boards), 2, -1)
        planes = np.take_along_axis(flat, actions[:, None, :-1], axis=2).reshape(boards.shape)
        return {"observation": planes, "action_mask": np.take_along_axis(observations["action_mask"], actions, axis=1)}
