"""Opponents for the single-agent view: built-in policies, agents by spec, callables, policies, and pools that grow while training.

An opponent is one of:

* ``"random"`` or ``"greedy"``: played inside the compiled step;
* any other text: an agent spec such as ``"greedy:seed=7"``, made by whatever package has registered itself under the
  entry-point group ``reversi_env.opponents`` (a function from a spec to an object with ``choose``); nothing is imported
  before it is needed;
* an object with ``choose(position) -> action``: an agent that thinks in `Position`;
* an object with ``predict(observation, …) -> (action, state)``: a stable-baselines3 model; it is given ``action_masks``
  if it takes them;
* a callable ``policy(observation, action_mask) -> action``. In a vector environment both arrays have a leading axis of
  games, and so has the answer;
* an `OpponentPool`, or a list of the above: one is drawn for every episode.

Observations are the environment's own (planes or flat) from the opponent's side.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from reversi_env.core import episodes
from reversi_env.envs.settings import SettingsError
from reversi_env.errors import shown
from reversi_env.position import Position

ENTRY_POINT_GROUP = "reversi_env.opponents"
_EXTERNAL = episodes.EXTERNAL_OPPONENT
BUILT_IN = {"random": episodes.RANDOM_OPPONENT, "greedy": episodes.GREEDY_OPPONENT}


class OpponentPool:
    """Opponents to draw from, one for every episode, that may change while an environment uses it.

    >>> pool = OpponentPool(["random"])
    >>> pool.add("greedy", weight=3.0)  # from the next episode on, three games in four are against greedy
    1
    >>> pool.set_weight(0, 0.0)  # and now all of them

    An opponent keeps its number for good, so that running episodes keep their opponent; weight 0 retires it.
    """

    def __init__(self, opponents: Sequence[Any] = ()) -> None:
        self._players: list[Player] = []
        self._weights: list[float] = []
        self.version = 0
        for opponent in opponents:
            self.add(opponent)

    def add(self, opponent: Any, weight: float = 1.0) -> int:
        """Add an opponent, drawn in proportion to *weight*; its number."""
        if isinstance(opponent, OpponentPool):
            raise SettingsError("a pool cannot contain a pool: expected its opponents one by one")
        player = Player(opponent)
        self._players.append(player)
        self._weights.append(0.0)
        self.set_weight(len(self._players) - 1, weight)
        return len(self._players) - 1

    def set_weight(self, number: int, weight: float) -> None:
        """Change how often opponent *number* is drawn."""
        if not 0 <= number < len(self._players):
            raise SettingsError(f"the pool has no opponent {shown(number)}: expected 0 to {len(self._players) - 1}")
        if not np.isfinite(weight) or weight < 0:
            raise SettingsError(f"weight={shown(weight)}: expected a number of 0 or more")
        self._weights[number] = float(weight)
        self.version += 1

    def __len__(self) -> int:
        return len(self._players)

    def __getitem__(self, number: int) -> Any:
        """The opponent as it was added."""
        return self._players[number].opponent

    def player(self, number: int) -> Player:
        """The opponent as the environments call it."""
        return self._players[number]

    def records(self) -> np.ndarray:
        """The kernels' POOL records."""
        records = np.zeros(len(self), episodes.POOL)
        if len(self):
            weights = np.array(self._weights)
            if weights.sum() <= 0:
                raise SettingsError("all opponents of the pool have weight 0: expected one that can be drawn")
            records["kind"] = [player.kind for player in self._players]
            records["cumulative_share"] = np.cumsum(weights) / weights.sum()
        return records


class Player:
    """One opponent, made callable in one way whatever it is."""

    def __init__(self, opponent: Any) -> None:
        self.opponent = opponent
        self.kind = BUILT_IN.get(opponent, _EXTERNAL) if isinstance(opponent, str) else _EXTERNAL
        self._agent: Any = None
        if self.kind == _EXTERNAL:
            self._agent = _agent_from_spec(opponent) if isinstance(opponent, str) else opponent
            if not (hasattr(self._agent, "choose") or hasattr(self._agent, "predict") or callable(self._agent)):
                raise SettingsError(
                    f"opponent {shown(opponent)}: expected a name or spec, a callable, an object with choose() or predict(), "
                    "a pool, or None for two-player mode"
                )

    def actions(
        self, positions: Callable[[], list[Position]], observations: np.ndarray, masks: np.ndarray, *, batched: bool
    ) -> np.ndarray:
        """Its actions in the given games, one for each row of *observations* and *masks*.

        With ``batched=False`` there is one game, and policies see it without the leading axis.
        """
        agent = self._agent
        if hasattr(agent, "choose"):
            answer: Any = [agent.choose(position) for position in positions()]
        else:
            seen, mask = (observations, masks) if batched else (observations[0], masks[0])
            answer = _predict(agent, seen, mask) if hasattr(agent, "predict") else agent(seen, mask)
        actions = np.asarray(answer)
        if actions.size != len(masks) or actions.dtype.kind not in "iu":
            raise SettingsError(
                f"opponent {shown(self.opponent)} answered {shown(answer)}: expected {len(masks)} action number(s)"
            )
        return actions.reshape(-1).astype(np.int64)


def as_pool(opponent: Any) -> OpponentPool:
    """The pool that an environment's ``opponent`` option means; empty for None, the two-player mode."""
    if isinstance(opponent, OpponentPool):
        return opponent
    if opponent is None:
        return OpponentPool()
    if isinstance(opponent, (list, tuple)):
        if not opponent:
            raise SettingsError(
                "opponent is an empty list: expected at least one opponent, or None for two-player mode"
            )
        return OpponentPool(opponent)
    return OpponentPool([opponent])


def _agent_from_spec(spec: str) -> Any:
    makers = list(entry_points(group=ENTRY_POINT_GROUP))
    if not makers:
        raise SettingsError(f"opponent {shown(spec)} is unknown: expected one of {', '.join(map(repr, BUILT_IN))}")
    error: Exception | None = None
    for maker in makers:
        try:
            return maker.load()(spec)
        except ValueError as problem:
            error = problem
    raise SettingsError(f"opponent {shown(spec)}: {error}") from error


def _predict(model: Any, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Ask a stable-baselines3 model, with the mask if its `predict` takes one."""
    if "action_masks" in inspect.signature(model.predict).parameters:
        return model.predict(observation, action_masks=mask.astype(bool))[0]
    return model.predict(observation)[0]
