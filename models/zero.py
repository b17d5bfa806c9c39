"""The agent ``zero``: a residual network that plays by its policy, or with AlphaZero's tree search.

``zero:FILE`` plays the most likely move, in the mean over the eight symmetries of the board, and never looks ahead;
``zero:FILE,simulations=64`` searches so many positions for each move (`models.tree_search`), on a GPU with ``device=cuda``.
``reversi rl zero`` makes such files; without one the package's own for the game is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.boards import board_tensor
from models.player import Player
from models.residual import symmetric_answers
from models.teacher import ResidualAgent
from models.torch_evaluator import one_thread
from models.tree_search import NEVER, TreeSearch
from reversi_env import Position, ReversiError, Rules, functional
from reversi_env.extras import extra_libraries
from search.solver import MOST_ON_GPU, Solver
from search.table import Table

with extra_libraries():
    import torch
    from torch import Tensor


class ZeroAgent(ResidualAgent):
    """Plays by the network in the file *weights*, with a search of so many *simulations*, 0 for none.

    From *exact* empty squares on it plays perfectly, and so the leaves of its search are valued. At a *temperature* moves are
    drawn by *seed*: from the policy, or by Gumbel's noise in the search; 1 is as the network was trained.
    """

    kind, makes = "zero", "reversi rl zero"

    def __init__(
        self,
        weights: str | None = None,
        *,
        simulations: int = 0,
        exact: int = 0,
        temperature: float = 0.0,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(weights)
        if device == "cuda" and simulations and exact > MOST_ON_GPU:
            raise ReversiError(
                f"exact={exact} with simulations on device 'cuda': expected at most {MOST_ON_GPU}, or device=cpu"
            )
        if device == "cuda" and not torch.cuda.is_available():
            raise ReversiError("device 'cuda': expected one that torch finds here, or device=cpu")
        self.simulations, self.exact, self.temperature, self.device = simulations, exact, temperature, device
        self._generator = np.random.default_rng(seed)
        self._kept: dict[tuple[int, str], tuple[Player, TreeSearch | None, Solver | None]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def choose(self, position: Position) -> int:
        """The best action, or one that is drawn."""
        if position.must_pass():
            return position.rules.pass_action
        with one_thread():
            player, search, solver = self._made(position.rules)
            if solver is not None and position.empties <= self.exact:
                return position.rules.action_from_name(str(solver.solve(position).move))
            own, opp = (board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp))
            state = functional.to(functional.from_boards(own, opp, position.rules), self.device)
            if search is None:
                numbers = symmetric_answers(player.answers, position.rules)(state.own, state.opp)[0][0]
                noise = self._noise(numbers.numel()).to(numbers)
                legal = functional.legal(state)[0, :-1]
                return int(torch.where(legal, numbers + self.temperature * noise, NEVER).argmax())
            noise = self.temperature * self._noise(position.rules.square_count + 1)
            return int(search.run(state, noise[None].to(self.device)).action[0])

    def _noise(self, count: int) -> Tensor:
        return torch.from_numpy(self._generator.gumbel(size=count)).float()

    def _made(self, rules: Rules) -> tuple[Player, TreeSearch | None, Solver | None]:
        """The network on its device, and what searches with it."""
        key = (rules.size, rules.variant)
        if key not in self._kept:
            player, search = Player(self.saved(rules).net, self.device), None
            if self.simulations:
                search = TreeSearch(player.answers, rules, self.simulations, exact=self.exact)
            self._kept[key] = player, search, Solver(rules, table=Table(16)) if self.exact else None
        return self._kept[key]
