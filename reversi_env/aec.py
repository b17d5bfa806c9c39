"""The PettingZoo AEC environment: ``env()`` and ``raw_env()``, as PettingZoo's own board games have them.

Both are the same class: legality, action range and call order are checked inside it, since PettingZoo's stack of
wrappers costs more than ten times the game itself.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from pettingzoo import AECEnv

from reversi_env.core import episodes
from reversi_env.envs.settings import Settings, SettingsError, last_action_of, no_start_found, position_of
from reversi_env.errors import shown
from reversi_env.position import Position

PLAYERS = ("player_0", "player_1")
_ALL = np.ones(1, np.bool_)
_TWO_PLAYER_POOL = np.zeros(0, episodes.POOL)


class raw_env(AECEnv):  # noqa: N801 - PettingZoo's name for it
    """Two-player Reversi, or Reversed Reversi with ``variant="reversed"``, under PettingZoo's AEC API.

    * Agents: ``player_0`` (black, moves first) and ``player_1`` (white).
    * Actions: ``Discrete(n * n + 1)``, squares row by row and then the pass, which is legal only when nothing else is.
      Passes are explicit: the agent that must pass is selected, and passes.
    * Observations: ``{"observation": Box(0, 1, (2, n, n), int8), "action_mask": Box(0, 1, (n * n + 1,), int8)}``: own
      discs and opponent's discs, and the legal actions if the agent is selected (otherwise none, as in PettingZoo's
      games); at the end, the pass.
    * Rewards: zero until the end, then both at once: ``reward="win"``: +1, 0, -1; ``reward="discs"``: final score over
      ``n * n``.
    * An illegal action (``illegal="lose"``) ends the game: -1 for who played it, +1 for the other. ``"raise"`` raises
      `gymnasium.error.InvalidAction`; ``"random"`` plays a random legal action instead.
    * Other options as in `reversi_env.envs.ReversiEnv`: ``size``, ``variant``, ``start``, ``opening_plies``,
      ``empties``, ``render_mode``; and ``reset(options=…)`` takes ``start``, ``opening_plies``, ``empties``.
    * `state`: (3, n, n) int8: black discs, white discs, and a plane of ones if white is to move.

    A game in progress can be copied, deep-copied and pickled.
    """

    def __init__(self, *, render_mode: str | None = None, **settings: Any) -> None:
        super().__init__()
        self.metadata: dict[str, Any] = {
            "render_modes": ["ansi", "rgb_array", "human"],
            "name": "reversi_v0",
            "is_parallelizable": False,
            "render_fps": 4,
        }
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise SettingsError(f"render_mode={shown(render_mode)}: expected one of {self.metadata['render_modes']}")
        if "colour" in settings or "observation" in settings or settings.get("reward") == "shaped":
            raise SettingsError(
                "colour, observation and shaped rewards belong to the single-agent view: expected none of them here"
            )
        self.render_mode = render_mode
        self.settings = Settings(**settings, observation="dict")
        self.rules = self.settings.rules
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        space, actions = self.settings.observation_space(), self.settings.action_space()
        self.observation_spaces = dict.fromkeys(PLAYERS, space)
        self.action_spaces = dict.fromkeys(PLAYERS, actions)
        self.state_space = gym.spaces.Box(0, 1, (3, self.rules.size, self.rules.size), np.int8)
        self._game, self._squares = self.settings.game(), self.settings.squares()
        self._state = np.zeros(1, episodes.STATE)
        self._board = np.zeros((1, 2 * self._squares.size), np.int8)
        self._mask = np.zeros((1, self._squares.size + 1), np.int8)
        self._sampled = np.zeros(1, np.int64)
        self._turn = 0
        self._window: Any = None
        self._seed(None)

    def observation_space(self, agent: str) -> gym.spaces.Space:
        """The same for both agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Space:
        """The same for both agents."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game; unknown options are ignored."""
        start = {key: value for key, value in (options or {}).items() if key in ("start", "opening_plies", "empties")}
        settings = self.settings.with_options(start)
        if seed is not None:
            self._seed(seed)
        game = self._game if settings == self.settings else settings.game()
        episodes.begin_all.serial(self._state, game, _TWO_PLAYER_POOL, _ALL)
        if self._state["failed"][0]:
            raise no_start_found(settings)
        self.agents = list(PLAYERS)
        self.rewards = dict.fromkeys(PLAYERS, 0.0)
        self._cumulative_rewards = dict.fromkeys(PLAYERS, 0.0)
        self.terminations = dict.fromkeys(PLAYERS, False)
        self.truncations = dict.fromkeys(PLAYERS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in PLAYERS}
        self._turn = int(self._state["turn"][0])
        self.agent_selection = PLAYERS[self._turn]
        episodes.observe_one(self._state, self._game, self._squares, self._board, self._mask)
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Play *action* for the selected agent; None for an agent whose game is over."""
        if not self.agents:
            raise ResetNeeded("the game is over (or has not begun): call reset() before step()")
        mover = self.agent_selection
        if self.terminations[mover]:
            self._was_dead_step(action)
            return
        number = self._checked(action)
        self._cumulative_rewards[mover] = 0.0
        reward, over, self._turn, _, illegal = episodes.step_one(
            self._state, self._game, self._squares, number, self._board, self._mask
        )
        self.agent_selection = PLAYERS[self._turn]
        if over or illegal:
            self._finish(mover, reward, bool(over), bool(illegal))
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """The board from *agent*'s side, and its legal actions if it is to move."""
        planes = self._board.reshape(2, self.rules.size, self.rules.size)
        if agent == PLAYERS[self._turn]:
            return {"observation": planes.copy(), "action_mask": self._mask[0].copy()}
        return {"observation": planes[::-1].copy(), "action_mask": np.zeros(self._mask.size, np.int8)}

    def state(self) -> np.ndarray:
        """The whole position in colours: black, white, and whether white is to move."""
        own, opp = self._board.reshape(2, self.rules.size, self.rules.size)
        black, white = (opp, own) if self._turn else (own, opp)
        return np.stack([black, white, np.full_like(black, self._turn)])

    def render(self) -> Any:
        """The board as text, as an RGB array, or in a window, by ``render_mode``."""
        if self.render_mode is None:
            gym.logger.warn(
                "render() does nothing without a render_mode: make the environment with render_mode='ansi', for instance"
            )
            return None
        from reversi_env import rendering

        position, last = self.position(), last_action_of(self._state[0], self.rules)
        if self.render_mode == "ansi":
            return rendering.render_ansi(position, last)
        frame = rendering.render_rgb(position, last)
        if self.render_mode == "rgb_array":
            return frame
        self._window = self._window or rendering.Window(fps=self.metadata["render_fps"])
        self._window.show(frame)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def position(self) -> Position:
        """The position as a `Position`."""
        return position_of(self._state[0], self.rules)

    def sample_legal(self) -> int:
        """A uniformly random legal action of the selected agent, from the environment's own seeded generator."""
        episodes.sample_all.serial(self._state, self._game, self._sampled)
        return int(self._sampled[0])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_window": None}

    def _seed(self, seed: int | None) -> None:
        word = np.random.SeedSequence().entropy if seed is None else seed
        episodes.seed_all.serial(self._state, np.array([int(word) % 2**64], np.uint64), _ALL)  # type: ignore[arg-type]

    def _checked(self, action: Any) -> int:
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or not 0 <= action < self._mask.size:
            raise InvalidAction(
                f"action {shown(action)} of {self.agent_selection}: expected an integer from 0 to {self._mask.size - 1}"
            )
        if self.settings.illegal == "raise" and not self._mask[0, action]:
            legal = ", ".join(map(str, np.flatnonzero(self._mask[0])))
            raise InvalidAction(f"action {action} of {self.agent_selection} is illegal here: expected one of {legal}")
        return int(action)

    def _finish(self, mover: str, reward: float, over: bool, illegal: bool) -> None:
        """Both rewards at once, and both agents done; or just the note that an illegal action was replaced."""
        self.infos = {agent: {"illegal_action": illegal and agent == mover} for agent in PLAYERS}
        if over:
            self.rewards = {agent: reward if agent == mover else -reward for agent in PLAYERS}
            self.terminations = dict.fromkeys(PLAYERS, True)
            self._accumulate_rewards()


def env(**options: Any) -> raw_env:
    """The environment, with every check built in."""
    return raw_env(**options)
