"""Agents: players made from a short text such as ``greedy`` or ``random:seed=7``.

A spec is ``name[:key=value,…]`` and means the same on the command line, in a match and as an environment's opponent.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Protocol

import numpy as np

from reversi_env import Position, ReversiError
from reversi_env.errors import shown


class AgentSpecError(ReversiError):
    """An agent spec that names no agent, or an option or value the agent does not take."""


class Agent(Protocol):
    """A player. It may keep state between moves (a random generator, a table), but none that a new game must reset."""

    def choose(self, position: Position) -> int:
        """The action to play in *position*, whose game is not over; the pass where nothing else is legal."""
        ...


class RandomAgent:
    """Plays a uniformly random legal move."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        """A legal action, each equally likely."""
        actions = position.legal_actions()
        return actions[int(self._generator.integers(len(actions)))]


class GreedyAgent:
    """Takes the move that is best in discs right after it: most discs, or fewest in the reversed game. Ties are drawn by lot."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, position: Position) -> int:
        """An action with the best disc difference after one ply."""
        actions = position.legal_actions()
        gains = np.array([-position.rules.sign * position.play(action).disc_difference() for action in actions])
        best = np.flatnonzero(gains == gains.max())
        return actions[int(best[self._generator.integers(best.size)])]


#: Agent name to (factory, its options with the function that reads each).
REGISTRY: dict[str, tuple[Callable[..., Agent], dict[str, Callable[[str], object]]]] = {
    "random": (RandomAgent, {"seed": int}),
    "greedy": (GreedyAgent, {"seed": int}),
}


def make(spec: str, **defaults: object) -> Agent:
    """The agent that *spec* describes; *defaults* hold for the options that it leaves open and its agent knows.

    >>> make("greedy:seed=3").choose(Position.initial()) in Position.initial().legal_actions()
    True
    """
    name, _, option_text = spec.partition(":") if isinstance(spec, str) else (spec, "", "")
    if name not in REGISTRY:
        close = get_close_matches(str(name), REGISTRY, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise AgentSpecError(f"agent {shown(name)} is unknown{hint}: expected one of {', '.join(sorted(REGISTRY))}")
    factory, readers = REGISTRY[name]
    options = {key: value for key, value in defaults.items() if key in readers}
    for item in filter(None, option_text.split(",")):
        key, equals, value = item.partition("=")
        if key not in readers or not equals:
            known = ", ".join(f"{option}=…" for option in readers)
            raise AgentSpecError(f"option {shown(item)} of agent {shown(spec)} is unknown: expected {known}")
        try:
            options[key] = readers[key](value)
        except ValueError:
            kind = "a whole number" if readers[key] is int else "a number"
            raise AgentSpecError(f"{key}={shown(value)} of agent {shown(spec)}: expected {kind}") from None
        if key == "seed" and int(str(options[key])) < 0:
            raise AgentSpecError(f"{key}={shown(value)} of agent {shown(spec)}: expected 0 or more")
    return factory(**options)
