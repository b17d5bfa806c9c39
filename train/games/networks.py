"""Networks as players of many games at once (`train.games.batch`), wherever they are: on a GPU, a batch of positions goes there.

`PolicyPlayer` plays by the logits of its moves, `ValuePlayer` to the position that it values lowest for the opponent. At a
temperature moves are drawn by the games' own lots, so that a game depends on itself alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.boards import board_planes, board_tensor
from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import shown
from reversi_env.extras import extra_libraries
from train.games.batch import Boards, Numbers, Words, gumbel

with extra_libraries():
    import torch

Network = Callable[[torch.Tensor], torch.Tensor]


class NetworkPlayer(ABC):
    """What both have in common: *network* is given planes (N, 2, S, S) from the side to move, in its own precision.

    At *temperature* 0 the best move is played, of equally good ones the first; else one drawn from the softmax of
    ``numbers / temperature``.
    """

    def __init__(self, network: Network, rules: Rules, temperature: float = 0.0) -> None:
        if isinstance(temperature, bool) or not 0 <= temperature < float("inf"):
            raise ReversiError(f"temperature={shown(temperature)}: expected a number of 0 or more")
        self.network, self.rules, self.temperature = network, rules, temperature

    @abstractmethod
    def numbers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """How good a move to every square of the 8x8 frame is, (N, 64); minus infinity where none is legal."""

    def choose(self, own: Boards, opp: Boards, games: Numbers, states: Words) -> Numbers:
        """Squares, as `train.games.batch.BatchPlayer` has them."""
        numbers = self.numbers(own, opp)
        if self.temperature > 0:
            numbers = numbers / self.temperature + gumbel(states, numbers.shape[1])
        return numbers.argmax(axis=1)

    def answers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """What the network says of positions."""
        parameter = next(self.network.parameters(), None) if isinstance(self.network, torch.nn.Module) else None
        like = torch.empty(0) if parameter is None else parameter
        boards = torch.stack([board_tensor(own), board_tensor(opp)], dim=1).to(like.device)
        with torch.inference_mode():
            return self.network(board_planes(boards, self.rules.size).to(like.dtype)).to("cpu", torch.float64).numpy()


class PolicyPlayer(NetworkPlayer):
    """Plays by the network's logits, (N, S*S+1); the last one is the pass's."""

    def numbers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """The logits of legal moves."""
        squares = np.array(list(self.rules.squares()))
        legal = batch.legal_moves(own, opp, self.rules)[:, None] >> squares.astype(np.uint64) & np.uint64(1)
        table = np.full((len(own), 64), -np.inf)
        table[:, squares] = np.where(legal, self.answers(own, opp)[:, :-1], -np.inf)
        return table


class ValuePlayer(NetworkPlayer):
    """Plays by the positions that moves lead to: the network gives one number each, higher for better, to the side to move."""

    def numbers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """The values of moves."""
        children = batch.expand(own, opp, self.rules)
        table = np.full((len(own), 64), -np.inf)
        table[children.parent, children.square] = -self.answers(children.own, children.opp).reshape(-1)
        return table
