"""The agent ``zero``: a residual network that plays by its policy, with AlphaZero's tree search, or by alpha-beta over its values.

``zero:FILE`` plays the most likely move, in the mean over the eight symmetries of the board, without search.
``zero:FILE,simulations=64`` runs so many simulations per move (`models.mcts.search`), on a GPU with ``device=cuda``.
``zero:FILE,depth=2`` searches two plies ahead with the values of the network.
``reversi train alphazero`` makes such files; without one the package's own for the game is used.
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
from models.torch_evaluator import TorchAgent, TorchEvaluator, single_torch_thread
from reversi_env import Position, ReversiError, Rules, functional
from reversi_env.errors import extra_libraries
from search.engine.solver import MAX_GPU_EMPTIES, Solver
from search.engine.table import TranspositionTable

with extra_libraries():
    import torch
    from torch import Tensor

#: The package's networks, one for each game: ``zero-SIZExSIZE-VARIANT-HASH.safetensors``.
SHIPPED = FOLDER / "residual"
#: Empty squares from which on alpha-beta over the network's values plays perfectly, unless it is told another number.
EXACT_WITH_DEPTH = 10


class ZeroAgent(FileAgent[SavedResidual]):
    """Plays by the network in the file *weights*, with a search of so many *simulations*, or to *depth* plies; 0 for none.

    From *exact* empty squares on it plays perfectly, and so the leaves of its search are valued (default: 10 with *depth*, else 0).
    At a *temperature* moves are sampled by *seed*: from the policy, or by Gumbel noise in the search; 1 is as the network was
    trained. With *depth* and *seed*, equally good moves are chosen at random.
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
        super().__init__(weights)
        if depth and (simulations or temperature):
            other = f"simulations={simulations}" if simulations else f"temperature={temperature:g}"
            raise ReversiError(f"depth={depth} with {other}: expected one of them")
        exact = (EXACT_WITH_DEPTH if depth else 0) if exact is None else exact
        if device == "cuda" and simulations and exact > MAX_GPU_EMPTIES:
            raise ReversiError(
                f"exact={exact} with simulations on device 'cuda': expected at most {MAX_GPU_EMPTIES}, or device=cpu"
            )
        if device == "cuda" and not torch.cuda.is_available():
            raise ReversiError("device 'cuda': expected one that torch finds here, or device=cpu")
        self.simulations, self.depth, self.exact = simulations, depth, exact
        self.temperature, self.seed, self.device = temperature, seed, device
        self._generator = np.random.default_rng(seed or 0)
        self._kept: dict[tuple[int, str], tuple[InferenceNetwork, TreeSearch | None, Solver | None]] = {}
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}, "_searchers": {}}

    def path(self, rules: Rules) -> Path:
        """The file that was given, or the package's for the game."""
        if self._weights is not None:
            return Path(self._weights)
        game = f"{rules.size}x{rules.size}-{rules.variant}"
        files = sorted(SHIPPED.glob(f"*-{game}-*.safetensors"))
        if len(files) != 1:
            raise WeightsError(
                f"zero for {game.replace('-', ' ')}: the package has no network for it: expected zero:FILE, "
                f"which `reversi train alphazero` makes"
            )
        return files[0]

    def evaluator(self, rules: Rules, device: str = "cpu") -> TorchEvaluator:
        """The values of the network, each the mean over the eight symmetric images of a position."""
        value = ValueFromBoards(self.saved(rules).net, symmetric=True)
        return TorchEvaluator(value, rules, inputs="boards", device=device, name=self.kind)

    def choose(self, position: Position) -> int:
        """The best action, or one that is sampled."""
        if position.must_pass():
            return position.rules.pass_action
        with single_torch_thread():
            if self.depth:
                return self._searcher(position.rules).choose(position)
            player, search, solver = self._made(position.rules)
            if solver is not None and position.empties <= self.exact:
                return position.rules.action_from_name(str(solver.solve(position).move))
            own, opp = (board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp))
            state = functional.to(functional.from_boards(own, opp, position.rules), self.device)
            if search is None:
                logits = symmetrised(player.logits_and_values, position.rules)(state.own, state.opp)[0][0]
                noise = self._noise(logits.numel()).to(logits)
                legal = functional.legal(state)[0, :-1]
                return int(torch.where(legal, logits + self.temperature * noise, ILLEGAL_LOGIT).argmax())
            noise = self.temperature * self._noise(position.rules.square_count + 1)
            return int(search.run(state, noise[None].to(self.device)).action[0])

    def _noise(self, count: int) -> Tensor:
        return torch.from_numpy(self._generator.gumbel(size=count)).float()

    def _searcher(self, rules: Rules) -> TorchAgent:
        """Alpha-beta over the network's values."""
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            evaluator = self.evaluator(rules, self.device)
            self._searchers[key] = TorchAgent(evaluator, self.depth, exact=self.exact, seed=self.seed)
        return self._searchers[key]

    def _made(self, rules: Rules) -> tuple[InferenceNetwork, TreeSearch | None, Solver | None]:
        """The network on its device, and what searches with it."""
        key = (rules.size, rules.variant)
        if key not in self._kept:
            player, search = InferenceNetwork(self.saved(rules).net, self.device), None
            if self.simulations:
                search = TreeSearch(player.logits_and_values, rules, self.simulations, exact=self.exact)
            self._kept[key] = player, search, Solver(rules, table=TranspositionTable(16)) if self.exact else None
        return self._kept[key]
