"""The agent ``zero``: a residual network that plays by its policy, with AlphaZero's tree search, or by alpha-beta over its values.

``zero:FILE`` plays the best move of the policy, averaged over the eight symmetries of the board.
``zero:FILE,simulations=64`` runs 64 simulations per move (`models.mcts.search`), on a GPU with ``device=cuda``.
``zero:FILE,depth=2`` searches two plies with the values of the network.
``reversi train alphazero`` writes such files; without a file the packaged network of the game plays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.bitboards import board_tensor
from models.evaluator import FOLDER
from models.file_agents import FileAgent
from models.files import WeightsError
from models.mcts.search import ILLEGAL_LOGIT, TreeSearch
from models.residual.inference import InferenceNetwork
from models.residual.net import SavedResidual, ValueFromBoards, read_residual, symmetrised
from models.torch_evaluator import TorchEvaluator, single_torch_thread
from reversi_env import Position, ReversiError, Rules, functional
from reversi_env.errors import extra_libraries
from search.engine.solver import MAX_GPU_EMPTIES, Solver
from search.engine.table import TranspositionTable

with extra_libraries():
    import torch
    from torch import Tensor

#: The packaged networks, one for each game: ``zero-SIZExSIZE-VARIANT-HASH.safetensors``.
PACKAGED_FOLDER = FOLDER / "residual"
#: Default of *exact* for alpha-beta over the network's values.
EXACT_WITH_DEPTH = 10


class ZeroAgent(FileAgent[SavedResidual]):
    """Plays by a residual network: by its policy, with a tree search of *simulations*, or by alpha-beta to *depth* plies.

    From *exact* empty squares on it plays perfectly, and leaves of the tree search get exact values (default: 10 with *depth*, else
    0). At a *temperature* moves are sampled with *seed*, from the policy or by Gumbel noise in the search. With *depth* and
    *seed*, equally good moves are chosen at random.
    """

    kind = "zero"
    read = staticmethod(read_residual)

    def __init__(
        self,
        weights: str | None = None,
        *,
        simulations: int = 0,
        depth: int = 0,
        exact: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        device: str = "cpu",
    ) -> None:
        exact = (EXACT_WITH_DEPTH if depth else 0) if exact is None else exact
        super().__init__(weights, depth=depth, exact=exact, seed=seed)
        if depth and (simulations or temperature):
            other = f"simulations={simulations}" if simulations else f"temperature={temperature:g}"
            raise ReversiError(f"depth={depth} with {other}: expected one of them")
        if device == "cuda" and simulations and exact > MAX_GPU_EMPTIES:
            raise ReversiError(
                f"exact={exact} with simulations on device 'cuda': expected at most {MAX_GPU_EMPTIES}, or device=cpu"
            )
        if device == "cuda" and not torch.cuda.is_available():
            raise ReversiError("device 'cuda': expected one that torch finds here, or device=cpu")
        self.simulations, self.temperature, self.device = simulations, temperature, device
        self._rng = np.random.default_rng(seed or 0)
        self._loaded: dict[tuple[int, str], tuple[InferenceNetwork, TreeSearch | None, Solver | None]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_loaded": {}}

    def path(self, rules: Rules) -> Path:
        """Return the given file, or the packaged one of the game."""
        if self._weights is not None:
            return Path(self._weights)
        game = f"{rules.size}x{rules.size}-{rules.variant}"
        files = sorted(PACKAGED_FOLDER.glob(f"*-{game}-*.safetensors"))
        if len(files) != 1:
            raise WeightsError(
                f"zero for {game.replace('-', ' ')}: the package has no network for it: expected zero:FILE, "
                f"which `reversi train alphazero` makes"
            )
        return files[0]

    def evaluator(self, rules: Rules, device: str | None = None) -> TorchEvaluator:
        """Return the network's values, each the mean over the eight symmetric images of a position."""
        value = ValueFromBoards(self.load(rules).net, symmetric=True)
        return TorchEvaluator(value, rules, inputs="boards", device=device or self.device, name=self.kind)

    def choose(self, position: Position) -> int:
        """Return the best action, or one that is sampled."""
        rules = position.rules
        if position.must_pass():
            return rules.pass_action
        with single_torch_thread():
            if self.depth:
                return self.alpha_beta(rules).choose(position)
            network, search, solver = self._players(rules)
            if solver is not None and position.empties <= self.exact:
                return rules.action_from_name(str(solver.solve(position).move))
            own, opp = (board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp))
            state = functional.to(functional.from_boards(own, opp, rules), self.device)
            if search is None:
                logits = symmetrised(network.logits_and_values, rules)(state.own, state.opp)[0][0]
                noise = self._noise(logits.numel()).to(logits)
                legal = functional.legal(state)[0, :-1]
                return int(torch.where(legal, logits + self.temperature * noise, ILLEGAL_LOGIT).argmax())
            noise = self.temperature * self._noise(rules.square_count + 1)
            return int(search.run(state, noise[None].to(self.device)).action[0])

    def _noise(self, count: int) -> Tensor:
        return torch.from_numpy(self._rng.gumbel(size=count)).float()

    def _players(self, rules: Rules) -> tuple[InferenceNetwork, TreeSearch | None, Solver | None]:
        key = (rules.size, rules.variant)
        if key not in self._loaded:
            network, search = InferenceNetwork(self.load(rules).net, self.device), None
            if self.simulations:
                search = TreeSearch(network.logits_and_values, rules, self.simulations, exact=self.exact)
            solver = Solver(rules, table=TranspositionTable(16)) if self.exact else None
            self._loaded[key] = network, search, solver
        return self._loaded[key]
