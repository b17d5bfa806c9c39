"""The Gymnasium environments ``Reversi-v0`` and ``ReversedReversi-v0``. The class docstring is their specification."""

import copy
from collections.abc import Sequence
from typing import Any, Never, Self

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from reversi_env.envs.base import ALL, RENDER_FPS, RENDER_MODES, SingleGameMixin
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
    check_shaping_has_opponent,
    checked_states,
    no_start_error,
    refuse_unknown,
    warn_unknown_options,
)
from reversi_env.kernels import episodes, observations
from reversi_env.position import Position
from reversi_env.rules import Start, Variant

#: What a step returns from the kernels: the board and mask rows, and (reward, over, player to move, agent's colour, illegal).
StepResult = tuple[np.ndarray, np.ndarray, tuple[float, int, int, int, int]]


class ReversiEnv(SingleGameMixin, gym.Env):
    r"""Reversi (Othello), and Reversed Reversi, in which the fewest discs win, on a 4x4, 6x6 or 8x8 board.

    ## Description

    Black moves first. A move puts a disc on an empty square so that at least one straight run of the opponent's discs
    is enclosed between it and another disc of the same colour; all enclosed discs are flipped. A side without a legal move
    must pass. The game ends as soon as neither side can move. In ``Reversi-v0`` the side with more discs wins, in
    ``ReversedReversi-v0`` the one with fewer.

    There are two ways to use it:

    * **Single-agent view** (with an ``opponent``): the agent plays one colour, the opponent's moves are part of the
      environment. The opponent's passes are played automatically; the agent's pass is an action.
    * **Two-player mode** (``opponent=None``): the caller moves for both sides in turn. The observation is from the side
      to move. The reward belongs to the player that has just moved.

    ## Action space

    ``Discrete(n * n + 1)``: the squares row by row from a1 at the top left, then the pass. The pass is legal only when
    no square is.

    ## Observation space

    Observations are from the side to move; in the single-agent view that is always the agent, also at the end:

    * ``observation="planes"``: ``Box(0, 1, (2, n, n), int8)``, own discs and opponent's discs;
    * ``observation="flat"``: ``Box(-1, 1, (n * n,), int8)``, +1 own, -1 opponent's, 0 empty;
    * ``observation="dict"``: ``{"observation": planes, "action_mask": Box(0, 1, (n * n + 1,), int8)}``.

    ``extra_planes`` adds planes after these two: ``"legal"`` has the legal squares, ``"last_move"`` the square of the last
    move, usually the opponent's reply (empty after a pass). ``dtype="float32"`` changes the dtype. ``channels_last=True``
    moves the channel axis last, to the shape ``(n, n, planes)``.

    ## Legal actions

    ``info["action_mask"]`` (int8, fits ``action_space.sample``), ``action_masks()`` (bool, for sb3-contrib)
    and `sample_legal` (a uniformly random legal action, some thirty times faster than ``action_space.sample(mask)``).
    The mask is never empty: at the end it allows the pass alone.

    ## Rewards

    Zero until the end, and then

    * ``reward="win"``: +1 for a win, 0 for a draw, -1 for a loss;
    * ``reward="discs"``: the final score over ``n * n``, from -1 to 1; empty squares count for the winner;
    * ``reward="shaped"``: as ``"win"``, and at every step :math:`F(s, s') = \gamma\Phi(s') - \Phi(s)` is added. The
      potential :math:`\Phi = (m - m') / (2 (m + m'))` compares the numbers of legal moves of the agent and its opponent;
      :math:`\Phi = 0` once the game is over. :math:`\gamma` is ``discount``; set it to the learner's discount factor.

    Shaping does not change the optimal policies (Ng, Harada and Russell, 1999): the discounted terms of an episode add up
    to :math:`-\Phi(s_0)`, which no action influences. In two-player mode a player does not see the other player's
    transitions, so the sum does not telescope, and the environment raises an error.

    ## Illegal actions

    ``illegal="lose"`` (default): the episode ends with reward -1. ``"raise"``: `gymnasium.error.InvalidAction` is
    raised, and the state is unchanged. ``"random"``: a random legal action is played instead. With ``"lose"`` and
    ``"random"``, ``info["illegal_action"]`` is then true. An action must be an integer, or an array of one integer, from 0 to ``n *
    n``. Any other value raises an error in every mode.

    ## Info

    * ``action_mask``, ``illegal_action``;
    * ``to_move``: 0 for black, 1 for white (at the end: the player from whose side the observation is);
    * ``agent``: the agent's colour, 0 or 1 (single-agent view);
    * ``rewards``: the step's rewards of (black, white) (two-player mode).

    At the end of a game also

    * ``score``: the result in discs for the agent or, in two-player mode, for the player that acted. Empty squares count
      for the winner, an illegal action loses all squares;
    * ``winner``: 0 black, 1 white, -1 nobody;
    * ``opponent``: the opponent's index in the pool (single-agent view).

    ## Starting state

    The standard start, or ``start``: ``"parallel"`` (white on d4 and e4, black on d5 and e5 of the 8x8 board), a
    `Position`, or a text of `Position.from_text` with black to move. Then random plies follow: first ``opening_plies`` of
    them, then more until no more than ``empties`` squares are empty. If it is then the opponent's turn, the opponent moves. If the
    game ends before the agent has a decision, another start is drawn. ``reset(options=…)`` takes ``start``, ``opening_plies``,
    ``empties`` and ``colour`` for one episode.

    ``reset(seed=…)`` seeds this episode and all that follow: openings, colours, samples from the pool and moves of the
    built-in opponents. Custom opponents have their own random generators.

    ## Episode end

    Terminated when neither side can move, or by an illegal action; never truncated.

    ## Arguments

    ``size`` (4, 6, 8), ``variant`` (``"normal"``, ``"reversed"``; set by the id), ``opponent`` (``"random"``,
    ``"greedy"``, an agent spec, a callable, a model, a pool …: see `reversi_env.envs.opponents`), ``colour`` of the
    agent (``"black"``, ``"white"``, ``"random"``, or ``"alternate"`` by episode, black first), ``start``,
    ``opening_plies``, ``empties``, ``reward``, ``discount``, ``observation``, ``extra_planes``, ``dtype``,
    ``channels_last``, ``illegal``, ``render_mode`` (``"ansi"``, ``"rgb_array"``, ``"human"``). The
    signature has the defaults.

    ## Copies

    A game in progress can be cloned (`clone`), deep-copied and pickled, or saved and restored (`get_state`, `set_state`).

    >>> import gymnasium, reversi_env
    >>> env = gymnasium.make("Reversi-v0", size=6, opponent="greedy")
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape, info["action_mask"].sum()
    ((2, 6, 6), np.int64(4))

    ## Version history

    * v0: first version.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012 - a class attribute in Gymnasium, too

    def __init__(
        self,
        *,
        opponent: Any = "random",
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
        refuse_unknown(ReversiEnv, unknown)
        game = size, variant, colour, start, opening_plies, empties, reward, discount
        settings = Settings(*game, observation, illegal, extra_planes, dtype, channels_last)
        self._set_up(settings, render_mode)
        self.opponents = as_pool(opponent, self.rules)
        check_shaping_has_opponent(self.settings, len(self.opponents))
        self.observation_space = self.settings.observation_space()
        self.action_space = self.settings.action_space()
        self._observation_length = self._squares.size * (1 if self.settings.observation == "flat" else 2)
        self._over, self._turn = True, 0
        #: The last action as `step` received it, after any transformation by a symmetry wrapper.
        self.last_action: int | None = None
        self._read_pool()

    # --- Gymnasium's API --------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. The same seed gives the same episodes; without a seed the random generator continues.

        *options* may have ``start``, ``opening_plies``, ``empties`` and ``colour`` for this episode; other keys give a warning.
        """
        settings = self.settings.with_options(options)
        warn_unknown_options(options, RESET_OPTIONS)
        super().reset(seed=seed)
        with self._rolled_back_on_error():
            if seed is not None:
                self._seed(seed)
            if self._pool_version != self.opponents.version:
                self._read_pool()
            self._begin(settings)
        self._over, self._turn = False, int(self._state["turn"][0])
        board, mask = self._observe()
        if self.render_mode == "human":
            self.render()
        return self._observation(board, mask), self._info(mask, self._turn, int(self._state["agent"][0]), False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play *action*; the opponent, if there is one, replies at once."""
        if self._over:
            raise ResetNeeded("the episode is over (or has not begun): call reset() before step()")
        action = self.action_number(action)
        if self._raises_if_illegal:
            self._refuse_if_illegal(action, self.action_masks())
        mover = self._turn
        play = self._play_and_ask if self._has_external else self._play
        board, mask, (reward, over, turn, agent, illegal) = play(action)
        self.last_action = action
        self._over, self._turn = bool(over), turn
        info = self._info(mask, turn, agent, bool(illegal))
        if self._two_player:
            info["rewards"] = (0.0 - reward, reward) if mover else (reward, 0.0 - reward)
        if over:
            info |= self.end_of_game()
            if not self._two_player:
                info["opponent"] = int(self._state["opponent"][0])
        if self.render_mode == "human":
            self.render()
        return self._observation(board, mask), reward, self._over, False, info

    def action_masks(self) -> np.ndarray:
        """Return the legal actions as booleans, for sb3-contrib's maskable algorithms."""
        return self._observe()[1][0].view(np.bool_)

    # --- state ------------------------------------------------------------------------------------

    def get_state(self) -> np.ndarray:
        """Return the complete state of the episode, with its random generator, as a numpy record that can be pickled.

        The internal state of a custom opponent is not included.
        """
        return self._state.copy()

    def set_state(self, state: np.ndarray) -> None:
        """Restore a state from `get_state`, of this or of another environment of the same game."""
        if self._pool_version != self.opponents.version:
            self._read_pool()
        self._state = checked_states(state, 1, self.settings, self._pool)
        self._over, self._turn = bool(state["over"][0]), int(state["turn"][0])

    def clone(self) -> Self:
        """Return an independent copy in the same state. It shares opponents and spaces, which `deepcopy` copies."""
        twin = copy.copy(self)
        twin._state = self._state.copy()
        twin.np_random = copy.deepcopy(self.np_random)
        return twin

    # --- kernels and opponents --------------------------------------------------------------------

    def _begin(self, settings: Settings) -> None:
        game = self._game if settings is self.settings else settings.game()
        episodes.begin_one(self._state, game, self._pool)
        for _ in range(episodes.RANDOM_START_TRIES):
            if self._has_external and self._opponent_is_to_move():
                self._ask_opponent()
            if not self._state["over"][0]:
                return
            if self._state["failed"][0]:
                break
            episodes.draw_start_all(self._state, game, ALL)
        raise no_start_error(settings)

    def _read_pool(self) -> None:
        self._pool, self._pool_version = self.opponents.records(), self.opponents.version
        self._two_player = not len(self._pool)
        self._has_external = bool((self._pool["kind"] == episodes.EXTERNAL_OPPONENT).any())

    def _new_buffers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return new rows for an observation and a mask, which callers may keep."""
        return np.empty((1, self._observation_length), np.int8), np.empty((1, self._squares.size + 1), np.int8)

    def _observe(self) -> tuple[np.ndarray, np.ndarray]:
        board, mask = self._new_buffers()
        observations.observe_one(self._state, self._game, self._squares, board, mask)
        return board, mask

    def _play(self, action: int) -> StepResult:
        board, mask = self._new_buffers()
        return board, mask, episodes.step_one(self._state, self._game, self._squares, action, board, mask)

    def _play_and_ask(self, action: int) -> StepResult:
        """Play, then let an external opponent reply. If it raises, the action is undone."""
        with self._rolled_back_on_error():
            played = self._play(action)
            return self._ask_opponent() if self._opponent_is_to_move() else played

    def _opponent_is_to_move(self) -> bool:
        state = self._state[0]
        external = state["kind"] == episodes.EXTERNAL_OPPONENT
        return bool(external and not state["over"] and state["turn"] != state["agent"])

    def _ask_opponent(self) -> StepResult:
        board, mask = self._observe()
        player = self.opponents.player(int(self._state["opponent"][0]))
        as_dict = self.settings.observation == "dict"
        observation = self.settings.boards(board, mask, self._state)
        turn = OpponentTurns(lambda: [self.position()], observation, mask, as_dict)
        action = int(player.actions(turn, batched=False)[0])
        board, mask = self._new_buffers()
        return board, mask, episodes.opponent_moves_one(self._state, self._game, self._squares, action, board, mask)

    def _observation(self, board: np.ndarray, mask: np.ndarray) -> Any:
        planes = self.settings.boards(board, mask, self._state)[0]
        if self.settings.observation == "dict":
            return {"observation": planes, "action_mask": mask[0].copy()}
        return planes

    def _info(self, mask: np.ndarray, turn: int, agent: int, illegal: bool) -> dict[str, Any]:
        info = {"action_mask": mask[0], "to_move": turn, "illegal_action": illegal}
        if not self._two_player:
            info["agent"] = agent
        return info
