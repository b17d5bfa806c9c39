"""The agents ``rl`` and ``rl-search``: a trained policy by itself, and alpha-beta over its value function.

``rl:runs/first/policy.zip`` plays the policy's best move; with ``temperature=1`` it draws from the policy. ``rl-search:…`` looks
*depth* plies ahead with the policy's value at the leaves. Without a file both use the package's own policy for the game, and
``rl:expert`` the one that expert iteration made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.files import WeightsError
from models.torch_evaluator import TorchAgent, TorchEvaluator, one_thread
from reversi_env import Position, Rules
from reversi_env.sealing import file_hash, read_once
from search.agent import Agent
from search.evaluation import file_name
from search.limits import SearchResult
from train.rl.files import DEFAULT, SHIPPED, SavedPolicy, read_policy, shipped
from train.rl.network import ValueOfBoards
from train.rl.players import policy_numbers


class _OfPolicy(Agent):
    """What both agents share: the policy of a file, or of the package for whatever game is asked for."""

    def __init__(self, weights: str | None) -> None:
        self._weights = weights

    def saved(self, rules: Rules) -> SavedPolicy:
        """The policy for a game, with the record of its training."""
        path = self._path(rules)
        found = read_once(path, read_policy)
        if (found.rules.size, found.rules.variant) != (rules.size, rules.variant):
            raise WeightsError(
                f"policy {str(path)!r} is for {found.rules.size}x{found.rules.size} {found.rules.variant}: "
                f"expected one for {rules.size}x{rules.size} {rules.variant}"
            )
        return found

    def _path(self, rules: Rules) -> Path:
        weights = self._weights or DEFAULT
        named = weights in SHIPPED and not Path(weights).exists()
        return shipped(rules, weights) if named else Path(weights)

    def ingredients(self, rules: Rules) -> dict[str, str]:
        """The file of the policy."""
        return {file_name("rl", self._weights or DEFAULT): file_hash(self._path(rules))}

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the policy cannot play that game."""
        self.saved(rules)

    prepare = check


class PolicyAgent(_OfPolicy):
    """Plays a trained policy without looking ahead, by its mean opinion over the eight symmetries of the board."""

    def __init__(self, weights: str | None = None, *, temperature: float = 0.0, seed: int = 0) -> None:
        super().__init__(weights)
        self._generator = np.random.default_rng(seed)
        self.temperature = temperature

    def choose(self, position: Position) -> int:
        """The policy's best action, or one drawn from it."""
        net = self.saved(position.rules).net
        actions = position.legal_actions()
        own, opp = (np.array([board], np.uint64) for board in (position.own, position.opp))
        with one_thread():
            of_legal = policy_numbers(net, own, opp, symmetric=True)[0, actions]
        if self.temperature > 0:
            of_legal = of_legal / self.temperature + self._generator.gumbel(size=of_legal.size)
        return actions[int(np.argmax(of_legal))]


class PolicySearchAgent(_OfPolicy):
    """Alpha-beta to *depth* plies over a policy's value function, and exact play from *exact* empty squares on."""

    def __init__(self, weights: str | None = None, *, depth: int = 2, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights)
        self._depth, self._exact, self._seed = depth, exact, seed
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_searchers": {}}

    def choose(self, position: Position) -> int:
        """The best action."""
        with one_thread():
            return self.searcher(position.rules).choose(position)

    def search(self, position: Position) -> SearchResult:
        """All that the search finds out; values in discs, all squares of the board for a certain win."""
        with one_thread():
            return self.searcher(position.rules).search(position)

    def searcher(self, rules: Rules) -> TorchAgent:
        """The searcher for that game."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            value = ValueOfBoards(self.saved(rules).net)
            evaluator = TorchEvaluator(value, rules, inputs="boards", scale=rules.square_count, name="rl")
            self._searchers[key] = TorchAgent(evaluator, self._depth, exact=self._exact, seed=self._seed)
        return self._searchers[key]
