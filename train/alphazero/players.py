"""`ZeroPlayer`: a network as a player of many games at once, by its policy alone or with a tree search."""

from __future__ import annotations

import numpy as np

from models.boards import board_tensor
from models.residual import PolicyValueFunction, best_policy_actions
from models.tree_search import TreeSearch
from reversi_env import Rules, functional
from reversi_env.extras import extra_libraries
from train.games.batch import Boards, Numbers, Words

with extra_libraries():
    import torch

#: Positions that are looked at together; on a GPU always so many, since what is compiled or recorded there has one shape.
FORWARD_BATCH = {"cuda": 1024, "cpu": 4096}


class ZeroPlayer:
    """Plays the most likely moves, or those of a *search*; nothing is left to chance."""

    def __init__(
        self, network: PolicyValueFunction, rules: Rules, device: torch.device, search: TreeSearch | None = None
    ) -> None:
        self._network, self.rules, self.device, self._search = network, rules, device, search
        self._squares = np.array(list(rules.squares()), np.int64)

    def choose(self, own: Boards, opp: Boards, games: Numbers, states: Words) -> Numbers:
        """Squares, as `train.games.batch.BatchPlayer` has them."""
        size = FORWARD_BATCH[self.device.type]
        parts = [slice(start, start + size) for start in range(0, own.size, size)]
        return self._squares[np.concatenate([self._actions(own[part], opp[part]) for part in parts])]

    def _actions(self, own: Boards, opp: Boards) -> Numbers:
        count = own.size
        if self.device.type == "cuda":  # filled with the last position
            own, opp = (np.pad(side, (0, FORWARD_BATCH["cuda"] - count), mode="edge") for side in (own, opp))
        state = functional.from_boards(board_tensor(own), board_tensor(opp), self.rules)
        state = functional.to(state, self.device)
        with torch.no_grad():
            if self._search is None:
                found = best_policy_actions(self._network, state.own, state.opp, self.rules)
            else:
                found = self._search.run(state).action
        return found.cpu().numpy()[:count]
