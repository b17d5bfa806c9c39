"""The PettingZoo AEC environment: ``env()`` and ``raw_env()``, as PettingZoo's own board games have them.

Both are the same class: legality, action range and call order are checked inside it, since PettingZoo's stack of
wrappers costs more than ten times the game itself.
"""

import copy
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from pettingzoo import AECEnv

from reversi_env.envs.base import RENDER_FPS, RENDER_MODES, SingleGameMixin
from reversi_env.envs.registration import register_with_pettingzoo
from reversi_env.envs.settings import START_OPTIONS, Settings, SettingsError, checked_states, no_start_error
from reversi_env.errors import quoted
from reversi_env.kernels import episodes, observations

PLAYERS = ("player_0", "player_1")
_TWO_PLAYER_POOL = np.zeros(0, episodes.POOL)
#: Options that only make sense for an agent with an opponent, or that this environment's fixed observations do not have.
_SINGLE_AGENT = {"opponent", "colour", "observation", "extra_planes", "dtype", "channels_last", "discount"}
#: Attributes that change during a game.
_CHANGING = (
    *("_state", "_board", "_mask", "_turn", "_over", "_begun", "agents", "agent_selection"),
    *("rewards", "_cumulative_rewards", "terminations", "truncations", "infos"),
)


class raw_env(SingleGameMixin, AECEnv):  # noqa: N801 - the name in PettingZoo
    """Two-player Reversi, or Reversed Reversi with ``variant="reversed"``, under PettingZoo's AEC API.

    * Agents: ``player_0`` (black, moves first) and ``player_1`` (white).
    * Actions: ``Discrete(n * n + 1)``, squares row by row and then the pass, which is legal only when nothing else is.
      Passes are explicit: the agent that must pass is selected, and passes.
    * Observations: ``{"observation": Box(0, 1, (2, n, n), int8), "action_mask": Box(0, 1, (n * n + 1,), int8)}``: own
      discs and opponent's discs, and the legal actions if the agent is selected (otherwise none, as in PettingZoo's
      games); when the game is over, the pass alone.
    * Rewards: zero until the end, then both at once: ``reward="win"``: +1, 0, -1; ``reward="discs"``: final score over
      ``n * n``.
    * An illegal action (``illegal="lose"``) ends the game: -1 for the agent that played it, +1 for the other. ``"raise"`` raises
      `gymnasium.error.InvalidAction`; ``"random"`` plays a random legal action instead. ``infos[agent]`` has
      ``illegal_action``: whether the last action was this agent's and illegal; and at the end of the game ``score``, this
      agent's result in discs, and ``winner``: 0 for ``player_0``, 1 for ``player_1``, -1 for nobody.
    * Other options as in `reversi_env.envs.ReversiEnv`: ``size``, ``variant``, ``start``, ``opening_plies``,
      ``empties``, ``render_mode``; and ``reset(options=…)`` takes ``start``, ``opening_plies``, ``empties``.
    * `state`: (3, n, n) int8: black discs, white discs, and a plane of ones if white is to move.

    Turns strictly alternate, passes included: a learner that plays both agents and takes the next observation's value for the
    future needs ``gamma=-1``, since that value is the other agent's.

    A game in progress can be cloned, deep-copied and pickled, or saved and restored (`get_state`, `set_state`).
    """

    def __init__(self, *, render_mode: str | None = None, **settings: Any) -> None:
        super().__init__()
        self.metadata = {"name": "reversi_v0", "render_modes": RENDER_MODES, "render_fps": RENDER_FPS}
        self.metadata["is_parallelizable"] = False
        refused = [*(settings.keys() & _SINGLE_AGENT), *["reward='shaped'"] * (settings.get("reward") == "shaped")]
        if refused:
            raise SettingsError(f"{', '.join(sorted(refused))}: expected no option of the single-agent environment")
        self._set_up(Settings.of(settings | {"observation": "dict"}), render_mode)
        self.possible_agents = list(PLAYERS)
        self.agents: list[str] = []
        space, actions = self.settings.observation_space(), self.settings.action_space()
        self.observation_spaces = dict.fromkeys(PLAYERS, space)
        self.action_spaces = dict.fromkeys(PLAYERS, actions)
        self.state_space = gym.spaces.Box(0, 1, (3, self.rules.size, self.rules.size), np.int8)
        self._board = np.zeros((1, 2 * self._squares.size), np.int8)
        self._mask = np.zeros((1, self._squares.size + 1), np.int8)
        self._turn, self._over, self._begun = 0, True, False

    def observation_space(self, agent: str) -> gym.spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.spaces.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game; unknown options are ignored."""
        settings = self.settings.with_options(options, START_OPTIONS)
        game = self._game if settings is self.settings else settings.game()
        with self._rolled_back_on_error():
            if seed is not None:
                self._seed(seed)
            episodes.begin_one(self._state, game, _TWO_PLAYER_POOL)
            if self._state["failed"][0]:
                raise no_start_error(settings)
        self.agents = list(PLAYERS)
        self.rewards = dict.fromkeys(PLAYERS, 0.0)
        self._cumulative_rewards = dict.fromkeys(PLAYERS, 0.0)
        self.terminations = dict.fromkeys(PLAYERS, False)
        self.truncations = dict.fromkeys(PLAYERS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {"illegal_action": False} for agent in PLAYERS}
        self._turn, self._over, self._begun = int(self._state["turn"][0]), False, True
        self.agent_selection = PLAYERS[self._turn]
        observations.observe_one(self._state, self._game, self._squares, self._board, self._mask)
        if self.render_mode == "human":
            self.render()

    def step(self, action: Any) -> None:
        """Play *action* for the selected agent; None for an agent whose game is over."""
        if not self.agents:
            raise ResetNeeded("the game is over (or has not begun): call reset() before step()")
        if self._over:
            self._was_dead_step(action)
            return
        number = self.action_number(action)
        if self._raises_if_illegal:
            self._refuse_if_illegal(number, self._mask[0])
        mover = self.agent_selection
        reward, over, self._turn, _, illegal = episodes.step_one(
            self._state, self._game, self._squares, number, self._board, self._mask
        )
        self.agent_selection = PLAYERS[self._turn]
        self.infos = {agent: {"illegal_action": False} for agent in PLAYERS}
        if illegal:
            self.infos[mover]["illegal_action"] = True
        if over:
            self._finish(mover, reward)
        if self.render_mode == "human":
            self.render()

    def last(self, observe: bool = True) -> tuple[dict[str, np.ndarray] | None, float, bool, bool, dict[str, Any]]:
        """Return the selected agent's observation, reward since its last turn, and whether its game has ended."""
        self._require_a_game()
        result: Any = super().last(observe)
        return result

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """The board from *agent*'s side, and its legal actions if it is to move."""
        self._require_a_game()
        if agent not in PLAYERS:
            raise SettingsError(f"agent {quoted(agent)}: expected one of {PLAYERS}")
        planes = self._board.reshape(2, self.rules.size, self.rules.size)
        selected = agent == PLAYERS[self._turn]
        mask = self._mask[0].copy() if selected or self._over else np.zeros(self._mask.size, np.int8)
        return {"observation": (planes if selected else planes[::-1]).copy(), "action_mask": mask}

    def state(self) -> np.ndarray:
        """The whole position in colours: black, white, and whether white is to move."""
        self._require_a_game()
        own, opp = self._board.reshape(2, self.rules.size, self.rules.size)
        black, white = (opp, own) if self._turn else (own, opp)
        return np.stack([black, white, np.full_like(black, self._turn)])

    def get_state(self) -> dict[str, Any]:
        """Return the complete state of the game, with its random generator."""
        self._require_a_game()
        return {name: copy.deepcopy(getattr(self, name)) for name in _CHANGING}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state from `get_state`, of this or of another environment of the same game."""
        if not isinstance(state, dict) or set(state) != set(_CHANGING):
            raise SettingsError(f"state {quoted(state)}: expected what get_state() returned")
        checked_states(state["_state"], 1, self.settings, _TWO_PLAYER_POOL)
        self.__dict__.update(copy.deepcopy(state))

    def clone(self) -> Self:
        """Return an independent copy in the same state. It shares the spaces, which `deepcopy` copies."""
        twin = copy.copy(self)
        twin.__dict__.update(copy.deepcopy({name: self.__dict__[name] for name in _CHANGING if name in self.__dict__}))
        return twin

    def _require_a_game(self) -> None:
        if not self._begun:
            raise ResetNeeded("no game has begun: call reset() first")

    def _finish(self, mover: str, reward: float) -> None:
        self._over = True
        self.rewards = {agent: reward if agent == mover else 0.0 - reward for agent in PLAYERS}
        self.terminations = dict.fromkeys(PLAYERS, True)
        end = self.end_of_game()
        for agent, info in self.infos.items():
            info |= end | {"score": end["score"] if agent == mover else -end["score"]}
        self._accumulate_rewards()


def env(**options: Any) -> raw_env:
    return raw_env(**options)


register_with_pettingzoo()
