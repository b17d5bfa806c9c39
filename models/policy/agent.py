"""The agents ``rl`` and ``rl-search``: a trained policy without search, and alpha-beta over its value function.

``rl:runs/first/policy.safetensors`` plays the best move of the policy; with ``temperature=1`` it samples from the policy.
``rl-search:…`` searches *depth* plies with the policy's value at the leaves. Without a file both use the packaged policy of the
game.
"""

from pathlib import Path

import numpy as np

from models.file_agents import FileAgent
from models.policy.files import PACKAGED_NAME, SavedPolicy, packaged_policy, read_policy
from models.policy.net import ValueFromBoards, policy_logits
from models.torch_evaluator import TorchEvaluator, single_torch_thread
from reversi_env import Position, Rules
from reversi_env.storage.checksummed import file_hash
from search.engine.limits import SearchResult
from search.evaluators.base import file_name


class _PolicyFileAgent(FileAgent[SavedPolicy]):
    kind = "policy"
    read = staticmethod(read_policy)

    def path(self, rules: Rules) -> Path:
        return packaged_policy(rules) if self._weights is None else Path(self._weights)

    def content_hashes(self, rules: Rules) -> dict[str, str]:
        return {file_name("rl", self._weights or PACKAGED_NAME): file_hash(self.path(rules))}


class PolicyAgent(_PolicyFileAgent):
    """Plays by a policy without search, averaged over the eight symmetries of the board."""

    def __init__(self, weights: str | None = None, *, temperature: float = 0.0, seed: int = 0) -> None:
        super().__init__(weights)
        self._generator = np.random.default_rng(seed)
        self.temperature = temperature

    def choose(self, position: Position) -> int:
        net = self.load(position.rules).net
        actions = position.legal_actions()
        own, opp = (np.array([board], np.uint64) for board in (position.own, position.opp))
        with single_torch_thread():
            logits = policy_logits(net, own, opp, symmetric=True)[0, actions]
        if self.temperature > 0:
            logits = logits / self.temperature + self._generator.gumbel(size=logits.size)
        return actions[int(np.argmax(logits))]


class PolicySearchAgent(_PolicyFileAgent):
    """Alpha-beta to *depth* plies over a policy's value function, and exact play from *exact* empty squares on."""

    def __init__(self, weights: str | None = None, *, depth: int = 2, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights, depth=max(1, depth), exact=exact, seed=seed)

    def evaluator(self, rules: Rules) -> TorchEvaluator:
        """Return the policy's value in discs: the number of squares for a certain win."""
        value = ValueFromBoards(self.load(rules).net)
        return TorchEvaluator(value, rules, inputs="boards", scale=rules.square_count, name="rl")

    def choose(self, position: Position) -> int:
        with single_torch_thread():
            return self.alpha_beta(position.rules).choose(position)

    def search(self, position: Position) -> SearchResult:
        with single_torch_thread():
            return self.alpha_beta(position.rules).search(position)
