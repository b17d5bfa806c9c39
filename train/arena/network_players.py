"""Networks as players of many games at once (`train.arena.batch`), on the network's device.

`PolicyPlayer` and `ValuePlayer` take any network on planes. The others play by the project's own residual networks: `ZeroPlayer` by
the policy, with or without tree search, `ValueSearchPlayer` by alpha-beta over the value.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_planes, board_tensor
from models.mcts.search import TreeSearch
from models.residual.net import PolicyValueFunction, best_policy_actions
from reversi_env import ReversiError, Rules, batch, functional
from reversi_env.errors import extra_libraries, quoted
from train.arena.batch import Boards, Indices, RngStates, perfect_moves, uniform_samples

with extra_libraries():
    import torch
    from torch import Tensor

#: Positions whose moves are searched together, with some hundred thousand leaves.
CHUNK = 1024
#: Positions in one forward pass or tree search; on a GPU always that many, since compiled functions have one shape there.
FORWARD_BATCH = {"cuda": 1024, "cpu": 4096}

CPU = torch.device("cpu")
Table = NDArray[np.float64]


class NetworkPlayer(ABC):
    """Plays the move with the highest score, or samples from the softmax of ``scores / temperature``.

    The noise comes from the generator of each game, so that no game depends on the others.
    """

    def __init__(self, rules: Rules, temperature: float = 0.0) -> None:
        if isinstance(temperature, bool) or not isinstance(temperature, (int, float)) or not 0 <= temperature < np.inf:
            raise ReversiError(f"temperature={quoted(temperature)}: expected a number of at least 0")
        self.rules, self.temperature = rules, temperature
        self._squares = np.array(list(rules.squares()), np.int64)

    @abstractmethod
    def move_scores(self, own: Boards, opp: Boards) -> Table:
        """Return a score for every move, ``(n, squares)``; far below all others if it is illegal."""

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        scores = self.move_scores(own, opp)
        if self.temperature:
            gumbel = -np.log(-np.log(uniform_samples(rng_states, scores.shape[1])))
            scores = scores / self.temperature + gumbel
        return self._squares[scores.argmax(axis=1)]


class PlanesPlayer(NetworkPlayer):
    """Plays by a *network* on planes ``(n, 2, size, size)``, own discs and the opponent's, in the network's own precision."""

    def __init__(self, network: Callable[[Tensor], Tensor], rules: Rules, temperature: float = 0.0) -> None:
        super().__init__(rules, temperature)
        self.network = network

    def network_output(self, own: Boards, opp: Boards) -> Table:
        parameter = next(self.network.parameters(), None) if isinstance(self.network, torch.nn.Module) else None
        like = torch.empty(0) if parameter is None else parameter
        boards = torch.stack([board_tensor(own), board_tensor(opp)], dim=1).to(like.device)
        with torch.inference_mode():
            output = self.network(board_planes(boards, self.rules.size).to(like.dtype))
        return output.detach().to("cpu", torch.float64).numpy()


class PolicyPlayer(PlanesPlayer):
    """Plays by a policy network: logits ``(n, size² + 1)``, the last one for the pass."""

    def move_scores(self, own: Boards, opp: Boards) -> Table:
        legal = batch.legal_moves(own, opp, self.rules)[:, None] >> self._squares.astype(np.uint64) & np.uint64(1)
        return np.where(legal, self.network_output(own, opp)[:, :-1], -np.inf)


class ValuePlayer(PlanesPlayer):
    """Plays to the position with the lowest value for the opponent, by a network with one value per position."""

    def move_scores(self, own: Boards, opp: Boards) -> Table:
        """Return the negated values of the positions after the moves."""
        children = batch.expand(own, opp, self.rules)
        values = -self.network_output(children.own, children.opp).reshape(-1)
        return batch.by_action(children, values, len(own), self.rules, -np.inf)


class ValueSearchPlayer(NetworkPlayer):
    """Plays by a search of *depth* plies over a network's value; perfectly from *exact* empties on."""

    def __init__(self, network: PolicyValueFunction, rules: Rules, depth: int = 2, exact: int = 10) -> None:
        super().__init__(rules)
        self.network, self.depth, self.exact = network, depth, exact

    def move_scores(self, own: Boards, opp: Boards) -> Table:
        return network_move_values(self.network, own, opp, self.rules, self.depth).astype(np.float64)

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        squares = np.empty(len(own), np.int64)
        solved = self.rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= self.exact
        if solved.any():
            squares[solved] = perfect_moves(own[solved], opp[solved], self.rules, rng_states[solved])
        rest = ~solved
        squares[rest] = super().choose(own[rest], opp[rest], games[rest], rng_states[rest])
        return squares


def network_move_values(
    network: PolicyValueFunction, own: Boards, opp: Boards, rules: Rules, depth: int
) -> NDArray[np.float32]:
    """Return the value of every move in discs by a search of *depth* plies over the network's value; -inf if illegal.

    A pass does not reduce the depth. All leaves below many positions go through the network together, without cut-offs: at two or
    three plies that is faster than alpha-beta with small batches.
    """
    table = np.zeros((len(own), rules.square_count), np.float32)
    for start in range(0, len(own), CHUNK):
        rows = slice(start, start + CHUNK)
        children = batch.expand(own[rows], opp[rows], rules)
        values = _negamax(network, children.own, children.opp, rules, depth - 1)
        table[rows] = batch.by_action(children, -values, len(own[rows]), rules, -np.inf)
    return table


def _negamax(network: PolicyValueFunction, own: Boards, opp: Boards, rules: Rules, depth: int) -> NDArray[np.float32]:
    """Return values in discs for the side to move; the final score where the game is over."""
    over = batch.is_over(own, opp, rules)
    values = np.full(len(own), -np.inf, np.float32)
    values[over] = batch.final_scores(own[over], opp[over], rules)
    if depth == 0:
        leaves = np.flatnonzero(~over)
        for start in range(0, leaves.size, FORWARD_BATCH["cpu"]):
            rows = leaves[start : start + FORWARD_BATCH["cpu"]]
            with torch.inference_mode():
                values[rows] = network(board_tensor(own[rows]), board_tensor(opp[rows]))[1].numpy()
        return values
    children = batch.expand(own, opp, rules)  # finished games have none
    passes = batch.legal_moves(own, opp, rules)[children.parent] == 0
    below = np.empty(len(children.own), np.float32)
    for mask, left in ((passes, depth), (~passes, depth - 1)):
        if mask.any():
            below[mask] = _negamax(network, children.own[mask], children.opp[mask], rules, left)
    np.maximum.at(values, children.parent, -below)
    return values


class ZeroPlayer:
    """Plays by a residual network on *device*: the best actions of its policy, or those of a *search*, without noise."""

    def __init__(
        self,
        network: PolicyValueFunction,
        rules: Rules,
        device: torch.device = CPU,
        search: TreeSearch | None = None,
    ) -> None:
        self._network, self.rules, self.device, self._search = network, rules, device, search
        self._squares = np.array(list(rules.squares()), np.int64)

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        size = FORWARD_BATCH[self.device.type]
        parts = [slice(start, start + size) for start in range(0, own.size, size)]
        return self._squares[np.concatenate([self._actions(own[part], opp[part]) for part in parts])]

    def _actions(self, own: Boards, opp: Boards) -> Indices:
        count = own.size
        if self.device.type == "cuda":  # padded with the last position
            own, opp = (np.pad(side, (0, FORWARD_BATCH["cuda"] - count), mode="edge") for side in (own, opp))
        state = functional.to(functional.from_boards(board_tensor(own), board_tensor(opp), self.rules), self.device)
        with torch.no_grad():
            if self._search is None:
                actions = best_policy_actions(self._network, state.own, state.opp, self.rules)
            else:
                actions = self._search.run(state).action
        return actions.cpu().numpy()[:count]
