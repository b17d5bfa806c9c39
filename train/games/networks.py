"""Networks as players of many games at once (`train.games.batch`): a batch of boards goes to the network's device, moves come back.

`PolicyPlayer` plays by the logits of its moves, `ValuePlayer` to the position that it values lowest for the opponent. At a
temperature moves are drawn by the games' own lots, so that a game depends on itself alone. `train.rl.players` has the same for
its own networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.boards import board_planes, board_tensor
from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import quoted
from reversi_env.extras import extra_libraries
from train.games.batch import Boards, Numbers, Words, fractions
from train.judging.exact import by_action

with extra_libraries():
    import torch
    from torch import Tensor

Table = NDArray[np.float64]


class NetworkPlayer(ABC):
    """What all have in common: *network* is given planes (N, 2, S, S) from the side to move, in its own precision.

    At *temperature* 0 the best move is played, of equally good ones the first; else one drawn from the softmax of
    ``numbers / temperature``. An array has one for every game. With the probability *noise* any legal move is played instead.
    """

    def __init__(
        self,
        network: Callable[[Tensor], Tensor],
        rules: Rules,
        temperature: float | NDArray[np.float64] = 0.0,
        noise: float = 0.0,
    ) -> None:
        heat = np.asarray(temperature)
        if heat.dtype.kind not in "iuf" or not np.all((heat >= 0) & (heat < np.inf)):
            raise ReversiError(f"temperature={quoted(temperature)}: expected a number of 0 or more")
        if not isinstance(noise, (int, float)) or not 0 <= noise <= 1:
            raise ReversiError(f"noise={quoted(noise)}: expected a number from 0 to 1")
        self.network, self.rules, self.temperature, self.noise = network, rules, heat, noise
        self._squares = np.array(list(rules.squares()), np.int64)

    @abstractmethod
    def numbers(self, own: Boards, opp: Boards) -> Table:
        """How good every move is, (N, S*S); minus infinity if it is illegal."""

    def answers(self, own: Boards, opp: Boards) -> Table:
        """What the network says of positions."""
        parameter = next(self.network.parameters(), None) if isinstance(self.network, torch.nn.Module) else None
        like = torch.empty(0) if parameter is None else parameter
        boards = torch.stack([board_tensor(own), board_tensor(opp)], dim=1).to(like.device)
        with torch.inference_mode():
            said = self.network(board_planes(boards, self.rules.size).to(like.dtype))
        return said.detach().to("cpu", torch.float64).numpy()

    def choose(self, own: Boards, opp: Boards, games: Numbers, states: Words) -> Numbers:
        """Squares, as `train.games.batch.BatchPlayer` has them."""
        numbers = self.numbers(own, opp)
        legal = numbers > -np.inf
        heat = self.temperature[games, None] if self.temperature.ndim else self.temperature
        if heat.ndim or heat > 0:
            drawn = numbers / np.where(heat > 0, heat, 1) + _gumbel(states, numbers.shape[1])
            numbers = np.where(heat > 0, drawn, numbers)
        if self.noise > 0:
            lots = fractions(states, 1) < self.noise
            anything = np.where(legal, _gumbel(states, numbers.shape[1]), -np.inf)
            numbers = np.where(lots, anything, numbers)
        return self._squares[numbers.argmax(axis=1)]


def _gumbel(states: Words, count: int) -> Table:
    """Noise under which the largest of some numbers is a draw from their softmax."""
    return -np.log(-np.log(fractions(states, count)))


class PolicyPlayer(NetworkPlayer):
    """Plays by the network's logits, (N, S*S+1); the last one is the pass's."""

    def numbers(self, own: Boards, opp: Boards) -> Table:
        """The logits of legal moves."""
        legal = batch.legal_moves(own, opp, self.rules)[:, None] >> self._squares.astype(np.uint64) & np.uint64(1)
        return np.where(legal, self.answers(own, opp)[:, :-1], -np.inf)


class ValuePlayer(NetworkPlayer):
    """Plays by the positions that moves lead to: the network gives one number each, higher for better, to the side to move."""

    def numbers(self, own: Boards, opp: Boards) -> Table:
        """The values of moves."""
        children = batch.expand(own, opp, self.rules)
        values = -self.answers(children.own, children.opp).reshape(-1)
        return by_action(children, values, len(own), self.rules, -np.inf)
