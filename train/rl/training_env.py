"""`TrainingEnv`: the games of a training, shown turned and mirrored, from random openings, and kept by checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from models.policy.net import views
from reversi_env.options import derive_seed
from train.jobs.checkpoints import games_state, put_games
from train.rl.opponents import SelfPlayPool
from train.rl.vec_env import ReversiVecEnv


class TrainingEnv(ReversiVecEnv):
    """`ReversiVecEnv` with ``dict`` observations for a policy that is trained.

    Every episode begins after 0 to *plies* random plies. If *symmetric*, it is shown under one of the eight symmetries of the
    square, drawn anew for each episode: what is learnt in one corner holds in all, and the policy that acts is the one that
    learns, which would not be so if positions were turned in the updates.
    """

    def __init__(
        self, num_envs: int, pool: SelfPlayPool, *, plies: int = 0, symmetric: bool = True, seed: int = 0
    ) -> None:
        rules = pool.rules
        game: dict[str, Any] = {"size": rules.size, "variant": rules.variant, "colour": "random"}
        super().__init__(num_envs, opponent=pool.opponents, observation="dict", **game)
        self.seed(seed)
        self._lots = np.random.default_rng([seed, 2])
        self._plies, self._symmetric = plies, symmetric
        self._views = views(rules)
        self._turns = np.zeros(num_envs, np.int64)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the games: runs with neighbouring seeds share none, although game *i* has the number *i* added to its seed."""
        return super().seed(None if seed is None else derive_seed(seed))

    def reset(self) -> Any:
        """Begin an episode in every game."""
        self._draw_plies()
        observations = super().reset()
        self._draw_turns(np.ones(self.num_envs, np.bool_))
        return self._turned(observations, self._turns)

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`, as the board lies."""
        super().step_async(self._views[self._turns, actions])

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Play the actions in all games."""
        self._draw_plies()
        observations, rewards, dones, infos = super().step_wait()
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"]
            row = {key: value[None] for key, value in last.items()}
            infos[i]["terminal_observation"] = {k: v[0] for k, v in self._turned(row, self._turns[i : i + 1]).items()}
        self._draw_turns(dones)
        return self._turned(observations, self._turns), rewards, dones, infos

    def action_masks(self) -> np.ndarray:
        """The legal actions of every game as it is shown."""
        return np.take_along_axis(super().action_masks(), self._views[self._turns], axis=1)

    # --- checkpoints ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that decides how the games go on, but for the opponents."""
        state = games_state(self.games.get_state())
        state |= {"turns": self._turns.copy(), "returns": self._returns.copy(), "lengths": self._lengths.copy()}
        return state | {"lots": self._lots.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> Any:
        """Go on from a `state` with the same opponents; the present observations."""
        self.games.set_state(put_games(state, self.games.get_state()))
        self._turns, self._returns, self._lengths = (np.array(state[name]) for name in ("turns", "returns", "lengths"))
        self._lots.bit_generator.state = state["lots"]
        boards, masks = self.games.observe()
        return self._turned({"observation": boards, "action_mask": masks}, self._turns)

    # --- inside -----------------------------------------------------------------------------------

    def _draw_plies(self) -> None:
        if self._plies:
            self.games.begin_with(opening_plies=int(self._lots.integers(self._plies + 1)))

    def _draw_turns(self, which: np.ndarray) -> None:
        if self._symmetric and which.any():
            self._turns[which] = self._lots.integers(8, size=int(which.sum()))

    def _turned(self, observations: dict[str, np.ndarray], turns: np.ndarray) -> dict[str, np.ndarray]:
        """Observations under the games' symmetries."""
        if not self._symmetric:
            return observations
        chosen, boards = self._views[turns], observations["observation"]
        flat = boards.reshape(len(boards), 2, -1)
        turned = np.take_along_axis(flat, chosen[:, None, :-1], axis=2).reshape(boards.shape)
        return {"observation": turned, "action_mask": np.take_along_axis(observations["action_mask"], chosen, axis=1)}
