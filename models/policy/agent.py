"""The agents ``rl`` and ``rl-search``: a trained policy by itself, and alpha-beta over its value function.

``rl:runs/first/policy.safetensors`` plays the policy's best move; with ``temperature=1`` it samples from the policy.
``rl-search:…`` looks *depth* plies ahead with the policy's value at the leaves. Without a file both use the packaged
policy of the game.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.file_agents import FileAgent, SearchingFileAgent
from models.policy.files import SHIPPED, SavedPolicy, read_policy, shipped
from models.policy.net import ValueFromBoards, policy_numbers
from models.torch_evaluator import TorchEvaluator, single_torch_thread
from reversi_env import Position, Rules
from reversi_env.storage.checksummed import file_hash
from search.evaluators.base import file_name


class _OfPolicy(FileAgent[SavedPolicy]):
    """What both agents share: the policy of a file, or of the package for whatever game is asked for."""

    kind = "policy"
    read = staticmethod(read_policy)

    def path(self, rules: Rules) -> Path:
        """Return the file that was given, or the packaged one of the game."""
        return shipped(rules) if self._weights is None else Path(self._weights)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        """The file of the policy."""
        return {file_name("rl", self._weights or SHIPPED): file_hash(self.path(rules))}


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
        with single_torch_thread():
            of_legal = policy_numbers(net, own, opp, symmetric=True)[0, actions]
        if self.temperature > 0:
            of_legal = of_legal / self.temperature + self._generator.gumbel(size=of_legal.size)
        return actions[int(np.argmax(of_legal))]


class PolicySearchAgent(SearchingFileAgent[SavedPolicy], _OfPolicy):
    """Alpha-beta to *depth* plies over a policy's value function, and exact play from *exact* empty squares on."""

    def __init__(self, weights: str | None = None, *, depth: int = 2, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights, depth=depth, exact=exact, seed=seed)

    def evaluator(self, rules: Rules) -> TorchEvaluator:
        """The policy's value in discs, all squares of the board for a certain win."""
        value = ValueFromBoards(self.saved(rules).net)
        return TorchEvaluator(value, rules, inputs="boards", scale=rules.square_count, name="rl")
