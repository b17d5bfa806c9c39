"""The vector environment: many games, one compiled call a step, no Python per game."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import logger
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reversi_env.core import episodes
from reversi_env.envs.opponents import as_pool
from reversi_env.envs.settings import Settings, SettingsError, last_action_of, no_start_found, position_of
from reversi_env.errors import shown
from reversi_env.position import Position


class ReversiVectorEnv(VectorEnv):
    """*num_envs* games of `ReversiEnv` in one batch: same options, same rules, same games for the same seeds.

    Environment *i* of a reset with ``seed=s`` plays exactly the episodes of a single environment with ``seed=s + i``.

    * ``opponent``: as in `ReversiEnv`. ``"random"`` and ``"greedy"`` move inside the kernel. Any other opponent is
      called once a step, with all games in which it is to move. ``None`` is two-player mode: each action is for the
      side to move of its game.
    * ``autoreset_mode``: Gymnasium's three. ``NEXT_STEP`` (default): the step after the end ignores the action, begins
      the next episode and gives reward 0. ``SAME_STEP``: the observation is already the next episode's,
      ``infos["final_obs"]`` and ``infos["final_info"]`` hold the end. ``DISABLED``: call ``reset(options={"reset_mask":
      mask})``.
    * ``copy=False`` returns the same observation and mask buffers at every step, overwritten by the next: faster, for
      callers that copy anyway.
    * ``parallel=True`` runs the kernels on all of numba's threads.

    ``infos``: ``action_mask`` (num_envs x actions, int8) and ``to_move`` (0 black, 1 white), for every game; ``agent``
    in the single-agent view. `sample_legal` draws a random legal action for every game.

    >>> import gymnasium, reversi_env
    >>> envs = gymnasium.make_vec("Reversi-v0", num_envs=4096, opponent=None)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(envs.unwrapped.sample_legal())
    >>> observations.shape, infos["action_mask"].shape
    ((4096, 2, 8, 8), (4096, 65))
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponent: Any = "random",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        parallel: bool = False,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
            raise SettingsError(f"num_envs={shown(num_envs)}: expected a whole number of 1 or more")
        if render_mode not in (None, "rgb_array", "ansi"):
            raise SettingsError(
                f"render_mode={shown(render_mode)}: expected 'rgb_array' or 'ansi' for a batch of games"
            )
        self.num_envs = int(num_envs)
        self.render_mode = render_mode
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4, "autoreset_mode": self.autoreset_mode}
        self.copy = copy
        self.parallel = parallel
        self.settings = Settings(**settings)
        self.rules = self.settings.rules
        self.opponents = as_pool(opponent)
        if self.settings.reward == "shaped" and not len(self.opponents):
            raise SettingsError(
                "reward='shaped' in two-player mode does not keep the best policies: expected 'win' or 'discs'"
            )
        self.single_observation_space = self.settings.observation_space()
        self.single_action_space = self.settings.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._game, self._squares = self.settings.game(), self.settings.squares()
        self._board_shape = self.settings.board_space().shape
        self._board_size = int(np.prod(self._board_shape))
        self._states = np.zeros(self.num_envs, episodes.STATE)
        self._states["over"] = 1
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False  # handed out in every info
        self._none = np.zeros(self.num_envs, np.bool_)
        self._over = self._every  # the episodes that have ended and not begun anew
        self._boards, self._masks = self._new_buffers()
        self._to_move = np.empty(self.num_envs, np.int8)
        self._begun = False
        self._read_pool()
        self._seed(None, self._every)

    # --- Gymnasium's API
    # --------------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those that ``options["reset_mask"]`` marks; other options as in `ReversiEnv`."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        which = self._reset_mask(options)
        settings = self.settings.with_options(options)
        self._seed(seed, which)
        self._begin(which, settings)
        self._begun = True
        self._over = self._states["over"] != 0
        self._observe_all()
        return self._observations(), self._infos()

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action in every game."""
        if not self._begun:
            raise ResetNeeded("no episode has begun: call reset() before step()")
        actions = self._checked(actions)
        if self._pool_version != self.opponents.version:
            self._read_pool()
        rewards, terminated = np.empty(self.num_envs), np.empty(self.num_envs, np.bool_)
        if self.copy:
            self._boards, self._masks = self._new_buffers()
            self._to_move = np.empty(self.num_envs, np.int8)
        begun = self._over
        self._advance(actions, rewards, terminated)
        if self._has_external:
            self._ask_opponents(rewards, terminated)
            rewards[begun] = 0.0
            self._observe_all()
        if self._may_end_at_once and (begun & terminated).any():
            self._begin(begun & terminated, self.settings)
            terminated[begun] = False
            self._observe_all()
        self._over = terminated if self.autoreset_mode != AutoresetMode.SAME_STEP else self._none
        infos = self._same_step_reset(terminated) if self.autoreset_mode == AutoresetMode.SAME_STEP else {}
        return self._observations(), rewards, terminated.copy(), self._none.copy(), infos | self._infos()

    def render(self) -> tuple[Any, ...] | None:
        """Every game's board as text or as an RGB array, by ``render_mode``."""
        from reversi_env.rendering import render_ansi, render_rgb

        if self.render_mode is None:
            logger.warn(
                "render() does nothing without a render_mode: make the environment with render_mode='rgb_array'"
            )
            return None
        draw = render_ansi if self.render_mode == "ansi" else render_rgb
        return tuple(draw(position_of(state, self.rules), last_action_of(state, self.rules)) for state in self._states)

    # --- legal actions and state
    # ------------------------------------------------------------------------------------------------

    def action_masks(self) -> np.ndarray:
        """The legal actions of every game as booleans."""
        return self._masks.astype(np.bool_)

    def sample_legal(self) -> np.ndarray:
        """A uniformly random legal action for every game, each from its own seeded generator."""
        actions = np.empty(self.num_envs, np.int64)
        episodes.sample_all(self._states, self._game, actions, parallel=self.parallel)
        return actions

    def positions(self) -> list[Position]:
        """Every game's position, seen from the side whose view the observation is."""
        return [position_of(state, self.rules) for state in self._states]

    def get_state(self) -> np.ndarray:
        """Everything that decides how the episodes go on: records to keep or to pickle."""
        return self._states.copy()

    def set_state(self, states: np.ndarray) -> None:
        """Go back to states that `get_state` has given."""
        expected = (self.num_envs,)
        if not isinstance(states, np.ndarray) or states.dtype != episodes.STATE or states.shape != expected:
            raise SettingsError(f"state {shown(states)}: expected what get_state() returned, {self.num_envs} records")
        self._states = states.copy()
        self._over = self._states["over"] != 0
        self._begun = True
        self._observe_all()

    def clone(self) -> ReversiVectorEnv:
        """An independent copy in the same state, with the same opponents (which are shared, not copied)."""
        twin = copy.copy(self)
        twin._boards, twin._masks = self._new_buffers()
        twin._to_move = self._to_move.copy()
        twin._np_random = copy.deepcopy(self._np_random)
        twin.set_state(self._states)
        twin._begun = self._begun
        return twin

    # --- inside
    # -----------------------------------------------------------------------------------------------------------------

    def _new_buffers(self) -> tuple[np.ndarray, np.ndarray]:
        boards = np.empty((self.num_envs, self._board_size), np.int8)
        return boards, np.empty((self.num_envs, self._squares.size + 1), np.int8)

    def _read_pool(self) -> None:
        """Take the pool as it is now; running episodes keep their opponents."""
        self._pool, self._pool_version = self.opponents.records(), self.opponents.version
        self._has_external = bool((self._pool["kind"] == episodes.EXTERNAL_OPPONENT).any())
        # an episode can be over as soon as it has begun only if somebody moves before the agent does
        self._may_end_at_once = bool(len(self._pool))

    def _seed(self, seed: int | Sequence[int | None] | None, which: np.ndarray) -> None:
        if seed is None:
            if self._begun or not which.all() or self._states["random"].any():
                return
            words = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        elif isinstance(seed, (int, np.integer)):
            words = np.array([(int(seed) + i) % 2**64 for i in range(self.num_envs)], np.uint64)
        else:
            if len(seed) != self.num_envs:
                raise SettingsError(f"{len(seed)} seeds: expected one for each of the {self.num_envs} environments")
            which = which & np.array([word is not None for word in seed])
            words = np.array([int(word or 0) % 2**64 for word in seed], np.uint64)
        episodes.seed_all.serial(self._states, words, which)

    def _reset_mask(self, options: dict[str, Any] | None) -> np.ndarray:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return self._every
        if (
            not isinstance(mask, np.ndarray)
            or mask.dtype != np.bool_
            or mask.shape != (self.num_envs,)
            or not mask.any()
        ):
            raise SettingsError(
                f"reset_mask {shown(mask)}: expected {self.num_envs} booleans in an array, at least one of them True"
            )
        if not self._begun and not mask.all():
            raise ResetNeeded("no episode has begun: reset all games before resetting some")
        return mask

    def _begin(self, which: np.ndarray, settings: Settings) -> None:
        if self._pool_version != self.opponents.version:
            self._read_pool()
        game = self._game if settings == self.settings else settings.game()
        rewards, terminated = np.empty(self.num_envs), np.empty(self.num_envs, np.bool_)
        for _ in range(episodes.RANDOM_START_TRIES):
            episodes.begin_all(self._states, game, self._pool, which, parallel=self.parallel)
            if self._has_external:
                self._ask_opponents(rewards, terminated)
            if self._states["failed"][which].any():
                break
            which = which & (self._states["over"] != 0)
            if not which.any():
                return
        raise no_start_found(settings)

    def _observe_all(self) -> None:
        observe = episodes.observe_flat if self.settings.observation == "flat" else episodes.observe_planes
        observe(self._states, self._squares, self._boards, self._masks, self._to_move, parallel=self.parallel)

    def _advance(self, actions: np.ndarray, rewards: np.ndarray, terminated: np.ndarray) -> None:
        """Step all games and write the observations."""
        step = (self._states, self._game, self._pool)
        if self.parallel:
            written = (actions, rewards, terminated, self._boards, self._masks, self._to_move)
            episodes.step_and_observe_chunks(*step, self._squares, *written)
        else:
            episodes.step_all.serial(*step, actions, rewards, terminated)
            self._observe_all()

    def _ask_opponents(self, rewards: np.ndarray, terminated: np.ndarray) -> None:
        """Let the external opponents move where they are to move, each called once with all its games."""
        waiting = np.empty(self.num_envs, np.bool_)
        episodes.find_waiting(self._states, waiting, parallel=self.parallel)
        if not waiting.any():
            return
        self._observe_all()
        numbers = self._states["opponent"]
        for number in np.unique(numbers[waiting]):
            indices = np.flatnonzero(waiting & (numbers == number))
            player = self.opponents.player(int(number))
            actions = player.actions(
                lambda indices=indices: [position_of(self._states[i], self.rules) for i in indices],  # type: ignore[misc]
                self._boards[indices].reshape(-1, *self._board_shape),
                self._masks[indices],
                batched=True,
            )
            legal = np.zeros(indices.size, np.bool_)
            if ((actions >= 0) & (actions <= self.rules.pass_action)).all():
                episodes.opponent_moves.serial(self._states, self._game, indices, actions, rewards, terminated, legal)
            if not legal.all():
                first = int(np.argmin(legal))
                raise SettingsError(
                    f"opponent {shown(player.opponent)} played {actions[first]} in game {indices[first]}: expected a legal action"
                )

    def _checked(self, actions: Any) -> np.ndarray:
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InvalidAction(f"actions of {array.dtype} and shape {array.shape}: expected {self.num_envs} integers")
        array = array.astype(np.int64, copy=False)
        if array.min() < 0 or array.max() > self.rules.pass_action:
            wrong = int(np.argmax((array < 0) | (array > self.rules.pass_action)))
            raise InvalidAction(f"action {array[wrong]} of game {wrong}: expected 0 to {self.rules.pass_action}")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._over.any():
            games = np.flatnonzero(self._over)
            raise ResetNeeded(
                f"the episodes of games {shown(games.tolist())} are over: reset them with options={{'reset_mask': …}}"
            )
        if self.settings.illegal == "raise":
            wrong = int(episodes.first_illegal(self._states, self._game, array, parallel=self.parallel))
            if wrong < self.num_envs:
                raise InvalidAction(
                    f"action {array[wrong]} of game {wrong} is illegal: expected one that infos['action_mask'] allows"
                )
        return array

    def _same_step_reset(self, terminated: np.ndarray) -> dict[str, Any]:
        """Begin the next episode where one has ended; the end goes into the infos."""
        if not terminated.any():
            return {}
        final_info = {"action_mask": self._masks.copy(), "to_move": self._to_move.copy()}
        final_info |= {f"_{key}": terminated.copy() for key in list(final_info)}
        final = {
            "final_obs": self._observations(copied=True),
            "_final_obs": terminated.copy(),
            "final_info": final_info,
            "_final_info": terminated.copy(),
        }
        self._begin(terminated, self.settings)
        self._observe_all()
        return final

    def _observations(self, *, copied: bool = False) -> Any:
        boards = self._boards.reshape(self.num_envs, *self._board_shape)
        boards = boards.copy() if copied else boards
        if self.settings.observation == "dict":
            return {"observation": boards, "action_mask": self._masks.copy() if self.copy or copied else self._masks}
        return boards

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {"action_mask": self._masks, "to_move": self._to_move}
        if len(self.opponents):
            infos["agent"] = self._states["agent"].copy()
        return infos | {f"_{key}": self._every for key in infos}


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return (
            AutoresetMode(mode)
            if not isinstance(mode, str) or mode not in AutoresetMode.__members__
            else AutoresetMode[mode]
        )
    except ValueError:
        names = ", ".join(AutoresetMode.__members__)
        raise SettingsError(f"autoreset_mode={shown(mode)}: expected one of {names}") from None
