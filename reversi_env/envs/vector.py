"""The vector environment: one compiled call steps all games, without Python code per game."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Never, Self

import numpy as np
from gymnasium import logger
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reversi_env.envs.base import RENDER_FPS
from reversi_env.envs.opponents import OpponentTurns, as_pool
from reversi_env.envs.settings import (
    RESET_OPTIONS,
    ColourChoice,
    DtypeChoice,
    IllegalChoice,
    ObservationChoice,
    PlaneChoice,
    RewardChoice,
    Settings,
    SettingsError,
    check_shaping_has_opponent,
    checked_autoreset_mode,
    checked_states,
    game_seeds,
    last_action_of,
    no_start_error,
    position_of,
    refuse_unknown,
    reset_mask,
    shared_seed,
    warn_unknown_options,
)
from reversi_env.errors import check_integer, quoted
from reversi_env.kernels import episodes, observations
from reversi_env.position import Position
from reversi_env.rules import Start, Variant

RENDER_MODES = ["ansi", "rgb_array"]


class ReversiVectorEnv(VectorEnv):
    """*num_envs* games of `ReversiEnv` in one batch, with the same options, rules and games for the same seeds.

    Environment *i* of a reset with ``seed=s`` plays exactly the episodes of a single environment with ``seed=s + i``.
    Runs with neighbouring seeds therefore share most of their games; `reversi_env.options.derive_seed` gives unrelated
    seeds.

    * ``opponent``: as in `ReversiEnv`. ``"random"`` and ``"greedy"`` move inside the kernel. Any other opponent is
      called once per step, with all games in which it is to move. Under ``SAME_STEP`` it is called again if it moves
      first in a new episode. ``None`` is two-player mode: each action is for the side to move of its game.
    * ``autoreset_mode``: one of Gymnasium's three modes. ``NEXT_STEP`` (default): the step after the end ignores the
      action, begins the next episode and gives reward 0. ``SAME_STEP``: the observation is the first of the next
      episode, and ``infos["final_obs"]`` and ``infos["final_info"]`` hold the end. ``DISABLED``: call
      ``reset(options={"reset_mask": mask})``.
    * ``copy=False`` returns the same observation and mask buffers at every step, and the next step overwrites them.
      This is faster, for callers that copy the data themselves.
    * ``max_episode_steps``: maximum number of steps before an episode is truncated (default: None, no limit).
    * ``parallel``: whether a step runs on several threads, one per core. None (default): with about a thousand games or
      more. True: always. Threads sleep while idle. The games do not depend on this option.

    ``infos`` has arrays with one row per game: ``action_mask`` (int8), ``to_move`` (0 black, 1 white),
    ``illegal_action``, and ``agent`` in the single-agent view. In two-player mode a reward belongs to the player that
    was to move before the step; the other player's reward is its negative. Games that have ended also have ``score``,
    ``winner`` and, with opponents, ``opponent``, as in `ReversiEnv`. Under ``SAME_STEP`` these are in ``final_info``.
    `sample_legal` draws a random legal action for every game.

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
        max_episode_steps: int | None = None,
        parallel: bool | None = None,
        size: int = 8,
        variant: Variant = "normal",
        colour: ColourChoice = "black",
        start: Start | Position | str | None = None,
        opening_plies: int = 0,
        empties: int | None = None,
        reward: RewardChoice = "win",
        discount: float = 1.0,
        observation: ObservationChoice = "planes",
        illegal: IllegalChoice = "lose",
        extra_planes: Sequence[PlaneChoice] = (),
        dtype: DtypeChoice = "int8",
        channels_last: bool = False,
        render_mode: str | None = None,
        **unknown: Never,
    ) -> None:
        refuse_unknown(ReversiVectorEnv, unknown)
        check_integer("num_envs", num_envs, 1, error=SettingsError)
        if max_episode_steps is not None:
            check_integer("max_episode_steps", max_episode_steps, 1, error=SettingsError)
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise SettingsError(f"render_mode={quoted(render_mode)}: expected one of {RENDER_MODES}")
        self.num_envs = int(num_envs)
        self.render_mode = render_mode
        self.autoreset_mode = checked_autoreset_mode(autoreset_mode)
        self.metadata = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS, "autoreset_mode": self.autoreset_mode}
        self.copy = copy
        self.max_episode_steps, self._steps = max_episode_steps, np.zeros(self.num_envs, np.int64)
        self.parallel = parallel
        game = size, variant, colour, start, opening_plies, empties, reward, discount
        self.settings = Settings(*game, observation, illegal, extra_planes, dtype, channels_last)
        self.rules = self.settings.rules
        self.opponents = as_pool(opponent, self.rules)
        check_shaping_has_opponent(self.settings, len(self.opponents))
        self.single_observation_space = self.settings.observation_space()
        self.single_action_space = self.settings.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._game, self._squares = self.settings.game(), self.settings.squares()
        self._observation_length = self._squares.size * (1 if self.settings.observation == "flat" else 2)
        self._every = np.ones(self.num_envs, np.bool_)
        self._every.flags.writeable = False  # handed out in every info
        self._none = np.zeros(self.num_envs, np.bool_)
        self._states = np.zeros(self.num_envs, episodes.STATE)
        self._states["over"], self._states["game"] = 1, self.settings.game_number
        seeds = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        episodes.seed_all(self._states, seeds, self._every)
        self._begun = False
        self._over = self._every  # episodes that have ended, in games where no other has begun
        self._illegal = self._none  # those whose last action was illegal
        self._read_pool()
        self._new_buffers()
        self._observe_all()

    # --- Gymnasium's API --------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those of ``options["reset_mask"]``. Other options are as in `ReversiEnv`."""
        settings = self.settings.with_options(options)
        warn_unknown_options(options, (*RESET_OPTIONS, "reset_mask"))
        which = reset_mask(options, self.num_envs, self._begun)
        seeds, seeded = game_seeds(seed, self.num_envs)
        super().reset(seed=shared_seed(seed, self.num_envs))
        if self.copy:
            self._new_buffers()
        with self._rolled_back_on_error():
            episodes.seed_all(self._states, seeds, seeded & which)
            self._begin(which, settings)
        self._begun = True
        self._steps[which] = 0
        self._over = self._states["over"] != 0
        self._observe_all()
        return self._observations(), self._infos(self._every)

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one action in every game."""
        if not self._begun:
            raise ResetNeeded("no episode has begun: call reset() before step()")
        actions = self._checked(actions)
        if self._pool_version != self.opponents.version:
            self._read_pool()
        rewards, terminated = np.empty(self.num_envs), np.empty(self.num_envs, np.bool_)
        final: dict[str, Any] = {}
        with self._rolled_back_on_error() if self._has_external else nullcontext():
            self._play(actions, rewards, terminated)
            truncated = self._truncated()
            ended = terminated | truncated
            rows = np.flatnonzero(ended)
            if rows.size:
                final = self._final_infos(terminated, rows)
                if self.autoreset_mode == AutoresetMode.SAME_STEP:
                    final = self._same_step_reset(ended, rows, final)
        self._count_steps(ended)
        self._over = self._none if self.autoreset_mode == AutoresetMode.SAME_STEP else ended
        infos = final | self._infos(self._every)
        return self._observations(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Return the board of every game as text or as an RGB array, depending on ``render_mode``."""
        if self.render_mode is None:
            logger.warn("render() does nothing without a render_mode: expected render_mode='rgb_array', for instance")
            return None
        if not self._begun:
            raise ResetNeeded("no episode has begun: call reset() before render()")
        from reversi_env.rendering import render_ansi, render_rgb

        draw = render_ansi if self.render_mode == "ansi" else render_rgb
        return tuple(draw(position_of(state, self.rules), last_action_of(state, self.rules)) for state in self._states)

    def begin_with(self, **options: Any) -> None:
        """Begin all later episodes with these options of `reset`; running episodes are not changed."""
        if unknown := options.keys() - set(RESET_OPTIONS):
            raise SettingsError(f"begin_with({min(unknown)}=…): expected some of {', '.join(RESET_OPTIONS)}")
        self.settings = self.settings.with_options(options)
        self._game = self.settings.game()

    # --- legal actions and state ------------------------------------------------------------------

    def action_masks(self) -> np.ndarray:
        """Return the legal actions of every game as booleans."""
        return self._masks.astype(np.bool_)

    def sample_legal(self) -> np.ndarray:
        """Return a uniformly random legal action for every game, each from the game's own seeded generator."""
        actions = np.empty(self.num_envs, np.int64)
        observations.sample_all(self.num_envs, self._states, self._game, actions, parallel=self.parallel)
        return actions

    def positions(self) -> list[Position]:
        """Return the position of every game, from the same side as the observation."""
        return [position_of(state, self.rules) for state in self._states]

    def get_state(self) -> np.ndarray:
        """Return the complete states of all episodes as numpy records that can be pickled.

        They have no step counters: after `set_state` an episode has all its ``max_episode_steps`` again.
        """
        return self._states.copy()

    def set_state(self, states: np.ndarray) -> None:
        """Restore states from `get_state`, of this or of another environment of the same game."""
        if self._pool_version != self.opponents.version:
            self._read_pool()
        self._states = checked_states(states, self.num_envs, self.settings, self._pool)
        self._over, self._illegal = self._states["over"] != 0, self._states["illegal"] != 0
        self._begun = True
        self._steps = np.zeros(self.num_envs, np.int64)
        self._new_buffers()
        self._observe_all()

    def observe(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the current boards and masks of legal actions, from the same side as the observation."""
        return self.settings.boards(self._boards, self._masks, self._states).copy(), self._masks.copy()

    def clone(self) -> Self:
        """Return an independent copy in the same state. It shares opponents and spaces, which `deepcopy` copies."""
        twin = copy.copy(self)
        twin._states, twin.np_random = self._states.copy(), copy.deepcopy(self.np_random)
        twin._steps = self._steps.copy()
        twin._boards, twin._masks, twin._to_move = self._boards.copy(), self._masks.copy(), self._to_move.copy()
        return twin

    # --- kernels and opponents --------------------------------------------------------------------

    def _new_buffers(self) -> None:
        self._boards = np.empty((self.num_envs, self._observation_length), np.int8)
        self._masks = np.empty((self.num_envs, self._squares.size + 1), np.int8)
        self._to_move = np.empty(self.num_envs, np.int8)

    def _read_pool(self) -> None:
        """Read the pool; running episodes keep their opponents."""
        self._pool, self._pool_version = self.opponents.records(), self.opponents.version
        self._has_external = bool((self._pool["kind"] == episodes.EXTERNAL_OPPONENT).any())

    @contextmanager
    def _rolled_back_on_error(self) -> Iterator[None]:
        before = self._states.copy()
        try:
            yield
        except BaseException:
            self._states, self._illegal = before, before["illegal"] != 0
            self._observe_all()
            raise

    def _begin(self, which: np.ndarray, settings: Settings) -> None:
        if self._pool_version != self.opponents.version:
            self._read_pool()
        game = self._game if settings is self.settings else settings.game()
        self._illegal = self._illegal & ~which
        episodes.begin_all(self.num_envs, self._states, game, self._pool, which, parallel=self.parallel)
        self._play_opponent_replies(np.empty(self.num_envs), np.empty(self.num_envs, np.bool_))
        self._redraw_starts(which, settings, game)

    def _redraw_starts(self, begun: np.ndarray, settings: Settings, game: np.ndarray) -> None:
        """Draw other starts for the *begun* games that an external opponent's first move has ended."""
        for _ in range(episodes.RANDOM_START_TRIES):
            over = begun & (self._states["over"] != 0)
            if not over.any():
                return
            if self._states["failed"][over].any():
                break
            episodes.draw_start_all(self._states, game, over)
            self._play_opponent_replies(np.empty(self.num_envs), np.empty(self.num_envs, np.bool_))
        raise no_start_error(settings)

    def _observe_all(self) -> None:
        observe = observations.observe_flat if self.settings.observation == "flat" else observations.observe_planes
        written = (self._boards, self._masks, self._to_move)
        observe(self.num_envs, self._states, self._squares, *written, parallel=self.parallel)

    def _observe_some(self, rows: np.ndarray) -> None:
        written = (self._boards, self._masks, self._to_move)
        arguments = (self._states, self._game, self._squares, rows)
        observations.observe_some(rows.size, *arguments, *written, parallel=self.parallel)

    def _play(self, actions: np.ndarray, rewards: np.ndarray, terminated: np.ndarray) -> None:
        begins = self._over  # in these games the step ignores the action and begins an episode
        if self.copy:
            self._new_buffers()
        over_at_once = self._step_all(actions, rewards, terminated)
        has_replies = self._play_opponent_replies(rewards, terminated)
        if not has_replies and not over_at_once:
            return
        ended_at_once = begins & terminated
        if ended_at_once.any():
            self._redraw_starts(ended_at_once, self.settings, self._game)
            terminated[begins] = False
        rewards[begins] = 0.0
        self._observe_all()

    def _step_all(self, actions: np.ndarray, rewards: np.ndarray, terminated: np.ndarray) -> bool:
        self._illegal, ended_at_reset = np.empty(self.num_envs, np.bool_), np.zeros(1, np.bool_)
        played = (self._states, self._game, self._pool, self._squares, actions)
        outputs = (rewards, terminated, self._illegal, ended_at_reset, self._boards, self._masks, self._to_move)
        episodes.step_all(self.num_envs, *played, *outputs, parallel=self.parallel)
        return bool(ended_at_reset[0])

    def _play_opponent_replies(self, rewards: np.ndarray, terminated: np.ndarray) -> bool:
        """Call every external opponent once with all games in which it is to move. Return whether any was called."""
        if not self._has_external:
            return False
        waiting = np.empty(self.num_envs, np.bool_)
        episodes.mark_opponent_to_move(self._states, waiting)
        if not waiting.any():
            return False
        self._observe_some(np.flatnonzero(waiting))
        numbers = self._states["opponent"]
        for number in np.unique(numbers[waiting]):
            indices = np.flatnonzero(waiting & (numbers == number))
            actions = self.opponents.player(int(number)).actions(self._opponent_turns(indices), batched=True)
            move = (self._states, self._game, indices, actions, rewards, terminated)
            episodes.opponent_moves(indices.size, *move, parallel=self.parallel)
        return True

    def _opponent_turns(self, indices: np.ndarray) -> OpponentTurns:
        boards, masks = self._boards_and_masks(indices)
        as_dict = self.settings.observation == "dict"
        states = self._states
        return OpponentTurns(lambda: [position_of(states[i], self.rules) for i in indices], boards, masks, as_dict)

    def _boards_and_masks(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        masks = self._masks[rows]
        return self.settings.boards(self._boards[rows], masks, self._states[rows]), masks

    def action_numbers(self, actions: Any) -> np.ndarray:
        """Return *actions* as int64, or raise unless they are one integer in range per game."""
        try:
            array = np.asarray(actions)
        except ValueError:  # a ragged list
            raise InvalidAction(f"actions {quoted(actions)}: expected {self.num_envs} integers") from None
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InvalidAction(f"actions of {array.dtype} and shape {array.shape}: expected {self.num_envs} integers")
        array = np.ascontiguousarray(array, np.int64)
        wrong = observations.first_invalid_action(self._states, self._game, array, only_legal=False)
        if wrong < self.num_envs:
            raise InvalidAction(f"action {array[wrong]} of game {wrong}: expected 0 to {self.rules.pass_action}")
        return array

    def _checked(self, actions: Any) -> np.ndarray:
        array = self.action_numbers(actions)
        if self.autoreset_mode == AutoresetMode.DISABLED and self._over.any():
            games = quoted(np.flatnonzero(self._over).tolist())
            raise ResetNeeded(f"the episodes of games {games} are over: reset them with options={{'reset_mask': …}}")
        if self.settings.illegal != "raise":
            return array
        wrong = observations.first_invalid_action(self._states, self._game, array, only_legal=True)
        if wrong < self.num_envs:
            raise InvalidAction(f"action {array[wrong]} of game {wrong} is illegal: expected one of its action mask")
        return array

    def _truncated(self) -> np.ndarray:
        """Return the games that reach their step limit, like Gymnasium's `TimeLimit`, and mark them as over."""
        if self.max_episode_steps is None:
            return self._none.copy()
        truncated = ~self._over & (self._steps + 1 >= self.max_episode_steps)
        self._states["over"][truncated] = 1
        return truncated

    def _count_steps(self, ended: np.ndarray) -> None:
        """Count this step of the running episodes. The step that begins an episode is not counted."""
        if self.max_episode_steps is not None:
            self._steps = np.where(ended | self._over, 0, self._steps + 1)

    def _final_infos(self, terminated: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
        if self.max_episode_steps is not None:
            rows = rows[terminated[rows]]
        if not rows.size:
            return {}
        ends = np.zeros((2, self.num_envs), np.int64)
        episodes.write_final_results(self._states, self._game, rows, *ends)
        ended = terminated.copy()
        infos = {"score": ends[0], "_score": ended, "winner": ends[1], "_winner": ended}
        if self._pool.size:
            infos |= {"opponent": _rows_or_zero(rows, self._states["opponent"]), "_opponent": ended}
        return infos

    def _same_step_reset(self, ended: np.ndarray, rows: np.ndarray, ends: dict[str, Any]) -> dict[str, Any]:
        """Begin the next episode in the games *rows*, those that have *ended*. Return the infos of the end."""
        boards, masks = self._boards_and_masks(rows)
        final_obs, ended = np.full(self.num_envs, None, dtype=object), ended.copy()  # the infos outlive the argument
        if self.settings.observation == "dict":
            final_obs[rows] = [{"observation": b, "action_mask": m} for b, m in zip(boards, masks, strict=True)]
        else:
            final_obs[rows] = np.fromiter(boards, object, rows.size)
        infos = self._infos(ended)
        final_info = {key: infos[key] if key.startswith("_") else _rows_or_zero(rows, infos[key]) for key in infos}
        self._begin(ended, self.settings)
        self._observe_some(rows)
        return {"final_obs": final_obs, "_final_obs": ended, "final_info": final_info | ends, "_final_info": ended}

    def _observations(self) -> Any:
        boards = self.settings.boards(self._boards, self._masks, self._states)
        if self.settings.observation == "dict":
            return {"observation": boards, "action_mask": self._masks.copy() if self.copy else self._masks}
        return boards

    def _infos(self, which: np.ndarray) -> dict[str, Any]:
        infos = {"action_mask": self._masks, "to_move": self._to_move, "illegal_action": self._illegal}
        if self._pool.size:
            infos["agent"] = self._states["agent"].copy()
        return infos | {f"_{name}": which for name in infos}


def _rows_or_zero(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    copied = np.zeros_like(values)
    copied[rows] = values[rows]
    return copied
