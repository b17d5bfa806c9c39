"""The agents ``rl`` and ``rl-search``: a policy trained by PPO without search, and alpha-beta over its values.

``rl:runs/first/policy.safetensors`` plays the best move of the policy; with ``temperature=1`` it samples from the policy.
``rl-search:…`` searches *depth* plies with the policy's values at the leaves. Without a file both use the packaged policy of the
game.
"""

import numpy as np

from models.bitboards import board_tensor
from models.file_agents import FileAgent
from models.residual.net import symmetrised
from models.torch_evaluator import single_torch_thread
from reversi_env import Position
from reversi_env.errors import extra_libraries
from search.engine.limits import SearchResult

with extra_libraries():
    import torch


class _PolicyFileAgent(FileAgent):
    kind, prefix, training = "rl", "ppo", "reversi train ppo"


class PolicyAgent(_PolicyFileAgent):
    """Plays by a policy without search, averaged over the eight symmetries of the board."""

    def __init__(self, weights: str | None = None, *, temperature: float = 0.0, seed: int = 0) -> None:
        super().__init__(weights)
        self._generator = np.random.default_rng(seed)
        self.temperature = temperature

    def choose(self, position: Position) -> int:
        if position.must_pass():
            return position.rules.pass_action
        actions, network = position.legal_actions(), symmetrised(self.load(position.rules).net, position.rules)
        boards = (board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp))
        with single_torch_thread(), torch.inference_mode():
            logits = network(*boards)[0][0, actions].numpy()
        noise = self.temperature * self._generator.gumbel(size=logits.size)
        return actions[int(np.argmax(logits + noise))]


class PolicySearchAgent(_PolicyFileAgent):
    """Alpha-beta to *depth* plies over a policy's values, and exact play from *exact* empty squares on."""

    def __init__(self, weights: str | None = None, *, depth: int = 2, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights, depth=max(1, depth), exact=exact, seed=seed)

    def choose(self, position: Position) -> int:
        with single_torch_thread():
            return self.alpha_beta(position.rules).choose(position)

    def search(self, position: Position) -> SearchResult:
        with single_torch_thread():
            return self.alpha_beta(position.rules).search(position)
