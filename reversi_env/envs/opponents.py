"""Opponents for the single-agent view: built-in policies, agents by spec, callables, models, and pools that grow in training.

An opponent is one of:

* ``"random"`` or ``"greedy"``: played inside the compiled step;
* any other text: an agent spec such as ``"greedy:seed=7"``, made by `search.make_agent`;
* an object with ``choose(position) -> action``: an agent. Its ``check(rules)``, if it has one, is called when an environment
  is made and raises an error for a game that it cannot play;
* an object with ``predict(observation, …) -> (action, state)``: a stable-baselines3 model, called with ``action_masks`` if it
  accepts them;
* a callable ``policy(board, action_mask) -> action``. In a vector environment all three arrays have a leading axis of games;
* an `OpponentPool`, or a list of the above: one is drawn for every episode.

A model gets the environment's own observation (planes, flat or dict) from the opponent's side, a callable only the
board part. The two built-in opponents draw from the environment's seeded generator; any other has its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from reversi_env import loading
from reversi_env.envs.settings import SettingsError
from reversi_env.errors import IllegalMoveError, quoted
from reversi_env.kernels import episodes
from reversi_env.position import Position
from reversi_env.rules import Rules

#: The function that makes an agent from a spec, imported on first use.
MAKE_AGENT = "search.agents.spec:make_agent"
_EXTERNAL = episodes.EXTERNAL_OPPONENT
BUILT_IN = {"random": episodes.RANDOM_OPPONENT, "greedy": episodes.GREEDY_OPPONENT}


class OpponentPool:
    """Opponents to draw from, one for every episode, that may change while an environment uses it.

    >>> pool = OpponentPool(["random"])
    >>> pool.add("greedy", weight=3.0)  # from the next episode on, three games in four are against greedy
    1
    >>> pool.set_weight(0, 0.0)  # from the next episode on, all games are against greedy

    The number of an opponent never changes, so that running episodes keep their opponent. An opponent of weight 0 is not drawn.
    """

    def __init__(self, opponents: Sequence[Any] = ()) -> None:
        self._players: list[Opponent] = []
        self._weights: list[float] = []
        self.version = 0
        for opponent in opponents:
            self.add(opponent)

    def add(self, opponent: Any, weight: float = 1.0) -> int:
        """Add an opponent, drawn in proportion to *weight*. Return its number."""
        if isinstance(opponent, OpponentPool):
            raise SettingsError("a pool cannot contain a pool: expected its opponents one by one")
        player, weight = Opponent(opponent), _checked_weight(weight)  # both are checked before the pool changes
        self._players.append(player)
        self._weights.append(weight)
        self.version += 1
        return len(self._players) - 1

    def set_weight(self, number: int, weight: float) -> None:
        """Change how often opponent *number* is drawn."""
        if number not in range(len(self._players)):
            raise SettingsError(f"the pool has no opponent {quoted(number)}: expected 0 to {len(self._players) - 1}")
        self._weights[number] = _checked_weight(weight)
        self.version += 1

    def __len__(self) -> int:
        return len(self._players)

    def __getitem__(self, number: int) -> Any:
        """The opponent as it was added."""
        return self._players[number].opponent

    def player(self, number: int) -> Opponent:
        """The opponent as the environments call it."""
        return self._players[number]

    def records(self) -> np.ndarray:
        records = np.zeros(len(self), episodes.POOL)
        if len(self):
            weights = np.cumsum(self._weights)
            if weights[-1] <= 0:
                raise SettingsError("all opponents of the pool have weight 0: expected one that can be drawn")
            records["kind"] = [player.kind for player in self._players]
            records["cumulative_share"] = weights / weights[-1]
        return records


@dataclass(frozen=True)
class OpponentTurns:
    """The games in which an opponent is to move, from its side, one row per game."""

    positions: Callable[[], list[Position]]
    boards: np.ndarray
    masks: np.ndarray
    as_dict: bool  # whether a model gets the mask too


@runtime_checkable
class SupportsChoose(Protocol):
    """An opponent that gets positions: an agent."""

    def choose(self, position: Position) -> int: ...


@runtime_checkable
class SupportsPredict(Protocol):
    """An opponent that gets observations: a model of stable-baselines3, or one like it."""

    def predict(self, observation: Any) -> Any: ...


def _accepts_arguments(function: Any, count: int) -> bool:
    """Return whether *function* can be called with *count* arguments; true if it has no signature."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:  # or not callable
        return False
    except ValueError:  # not written in Python
        pass
    return True


class Opponent:
    """One opponent of any kind, with the same interface."""

    def __init__(self, opponent: Any) -> None:
        self.opponent = opponent
        self.kind = BUILT_IN.get(opponent, _EXTERNAL) if isinstance(opponent, str) else _EXTERNAL
        self._agent: Any = None
        if self.kind == _EXTERNAL:
            self._agent = _agent_from_spec(opponent) if isinstance(opponent, str) else opponent
            can_play = isinstance(self._agent, (SupportsChoose, SupportsPredict)) or callable(self._agent)
            if not can_play or isinstance(self._agent, type):
                raise SettingsError(
                    f"opponent {quoted(opponent)}: expected a name or spec, a callable, an object with choose() or predict(), "
                    "a pool, or None for two-player mode"
                )
        self._is_chooser = isinstance(self._agent, SupportsChoose)
        self._is_model = isinstance(self._agent, SupportsPredict)
        if self.kind == _EXTERNAL and not (self._is_chooser or self._is_model or _accepts_arguments(self._agent, 2)):
            raise SettingsError(
                f"opponent {quoted(opponent)}: expected a callable of two arguments, board and action mask"
            )
        self._accepts_masks = self._is_model and "action_masks" in inspect.signature(self._agent.predict).parameters

    def check(self, rules: Rules) -> None:
        """Call the agent's own check of the game, if it has one."""
        if self._is_chooser and _accepts_arguments(getattr(self._agent, "check", None), 1):
            self._agent.check(rules)

    def actions(self, turn: OpponentTurns, *, batched: bool) -> np.ndarray:
        """Return the opponent's legal actions; with ``batched=False`` the arrays of the only game have no leading axis."""
        legal = turn.masks != 0
        if self._is_chooser:
            answer: Any = [self._agent.choose(position) for position in turn.positions()]
        else:
            boards, masks = (turn.boards, turn.masks) if batched else (turn.boards[0], turn.masks[0])
            answer = self._predict(boards, masks, turn.as_dict) if self._is_model else self._agent(boards, masks)
        actions = np.asarray(answer)
        if actions.size != len(legal) or actions.dtype.kind not in "iu":
            raise SettingsError(f"opponent {quoted(self.opponent)}: {quoted(answer)}, expected {len(legal)} action(s)")
        return self._checked(actions.reshape(-1).astype(np.int64), legal)

    def _predict(self, boards: np.ndarray, masks: np.ndarray, as_dict: bool) -> Any:
        observations = {"observation": boards, "action_mask": masks} if as_dict else boards
        options = {"action_masks": masks.astype(bool)} if self._accepts_masks else {}
        return self._agent.predict(observations, **options)[0]

    def _checked(self, actions: np.ndarray, legal: np.ndarray) -> np.ndarray:
        inside = (actions >= 0) & (actions < legal.shape[1])
        is_legal = inside & legal[np.arange(actions.size), np.where(inside, actions, 0)]
        if not is_legal.all():
            game = int(np.argmin(is_legal))
            expected = ", ".join(map(str, np.flatnonzero(legal[game])))
            lacks_masks = self._is_model and not self._accepts_masks
            hint = "; predict() takes no action_masks, use a callable that plays legal actions" if lacks_masks else ""
            played = f"{quoted(self.opponent)} played {actions[game]}"
            raise IllegalMoveError(f"opponent {played}, which is illegal: expected one of {expected}{hint}")
        return actions


def as_pool(opponent: Any, rules: Rules) -> OpponentPool:
    """Return the pool of an environment's ``opponent`` option, empty for None (two-player mode)."""
    if opponent is None:
        return OpponentPool()
    if not isinstance(opponent, (OpponentPool, list, tuple)):
        opponent = [opponent]
    if not len(opponent):
        raise SettingsError("no opponents to draw from: expected at least one, or opponent=None for two-player mode")
    pool = opponent if isinstance(opponent, OpponentPool) else OpponentPool(opponent)
    for number in range(len(pool)):
        pool.player(number).check(rules)
    return pool


def _agent_from_spec(spec: str) -> Any:
    try:
        return loading.load(MAKE_AGENT)(spec)
    except ValueError as problem:
        raise SettingsError(f"opponent {quoted(spec)}: {problem}") from problem


def _checked_weight(weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)) or not 0 <= weight < np.inf:
        raise SettingsError(f"weight={quoted(weight)}: expected a number of at least 0")
    return float(weight)
