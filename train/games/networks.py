"""Networks as players of many games at once (`train.games.batch`): a batch of boards goes to the network's device, moves come back.

`PolicyPlayer` plays by the logits of its moves, `ValuePlayer` to the position that it values lowest for the opponent. At a
temperature moves are drawn by the games' own lots, so that a game depends on itself alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from models.boards import board_planes, board_tensor, legal_moves
from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import shown
from reversi_env.extras import extra_libraries
from train.games.batch import Boards, Numbers, Words, fractions

with extra_libraries():
    import torch
    from torch import Tensor


class NetworkPlayer(ABC):
    """What both have in common: *network* is given planes (N, 2, S, S) from the side to move, in its own precision.

    At *temperature* 0 the best move is played, of equally good ones the first; else one drawn from the softmax of
    ``numbers / temperature``.
    """

    def __init__(self, network: Callable[[Tensor], Tensor], rules: Rules, temperature: float = 0.0) -> None:
        is_number = isinstance(temperature, (int, float)) and not isinstance(temperature, bool)
        if not is_number or not 0 <= temperature < float("inf"):
            raise ReversiError(f"temperature={shown(temperature)}: expected a number of 0 or more")
        self.network, self.rules, self.temperature = network, rules, temperature
        self._squares = np.array(list(rules.squares()), np.int64)

    @abstractmethod
    def numbers(self, own: Boards, opp: Boards) -> Tensor:
        """How good every move is, float64 (N, S*S) on the network's device; minus infinity if it is illegal."""

    def choose(self, own: Boards, opp: Boards, games: Numbers, states: Words) -> Numbers:
        """Squares, as `train.games.batch.BatchPlayer` has them."""
        with torch.inference_mode():
            numbers = self.numbers(own, opp)
            if self.temperature == 0:
                return self._squares[numbers.argmax(1).cpu().numpy()]
            sums = torch.softmax(numbers / self.temperature, dim=1).cumsum(1)
            lots = torch.from_numpy(fractions(states, 1)).to(sums.device) * sums[:, -1:]
            return self._squares[torch.searchsorted(sums, lots)[:, 0].cpu().numpy()]

    def answers(self, own: Boards, opp: Boards) -> tuple[Tensor, Tensor]:
        """The positions, int64 (N, 2), and what the network says of them, float64, both where it is."""
        parameter = next(self.network.parameters(), None) if isinstance(self.network, torch.nn.Module) else None
        like = torch.empty(0) if parameter is None else parameter
        boards = torch.stack([board_tensor(own), board_tensor(opp)], dim=1).to(like.device)
        return boards, self.network(board_planes(boards, self.rules.size).to(like.dtype)).double()


class PolicyPlayer(NetworkPlayer):
    """Plays by the network's logits, (N, S*S+1); the last one is the pass's."""

    def numbers(self, own: Boards, opp: Boards) -> Tensor:
        """The logits of legal moves."""
        boards, logits = self.answers(own, opp)
        legal = board_planes(legal_moves(boards[:, 0], boards[:, 1], self.rules.playable), self.rules.size).flatten(1)
        return logits[:, :-1].masked_fill(legal == 0, -torch.inf)


class ValuePlayer(NetworkPlayer):
    """Plays by the positions that moves lead to: the network gives one number each, higher for better, to the side to move."""

    def numbers(self, own: Boards, opp: Boards) -> Tensor:
        """The values of moves."""
        children = batch.expand(own, opp, self.rules)
        _, values = self.answers(children.own, children.opp)
        table = torch.full((len(own), 64), -torch.inf, dtype=values.dtype, device=values.device)
        parent, square = (torch.from_numpy(part.astype(np.int64)) for part in (children.parent, children.square))
        table[parent.to(values.device), square.to(values.device)] = -values.reshape(-1)
        return table[:, self._squares]
