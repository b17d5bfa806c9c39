"""Networks as players of many games at once (`train.arena.batch`): a batch of boards goes to the network's device, moves come back.

`PolicyPlayer` plays by the logits of its moves, `ValuePlayer` to the position that it values lowest for the opponent. At a
temperature moves are drawn by the games' own lots, so that a game depends on itself alone.
`train.arena.network_players` has the same for
its own networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_planes, board_tensor
from models.mcts.search import TreeSearch
from models.policy.net import BATCH, PolicyValueNet, action_numbers, policy_numbers
from models.residual.net import PolicyValueFunction, best_policy_actions
from reversi_env import ReversiError, Rules, batch, functional
from reversi_env.errors import extra_libraries, quoted
from train.arena.batch import Boards, Indices, RngStates, perfect_moves, uniform_samples
from train.evaluation.exact_set import by_action

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

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        """Squares, as `train.arena.batch.BatchPlayer` has them."""
        numbers = self.numbers(own, opp)
        legal = numbers > -np.inf
        heat = self.temperature[games, None] if self.temperature.ndim else self.temperature
        if heat.ndim or heat > 0:
            drawn = numbers / np.where(heat > 0, heat, 1) + _gumbel(rng_states, numbers.shape[1])
            numbers = np.where(heat > 0, drawn, numbers)
        if self.noise > 0:
            lots = uniform_samples(rng_states, 1) < self.noise
            anything = np.where(legal, _gumbel(rng_states, numbers.shape[1]), -np.inf)
            numbers = np.where(lots, anything, numbers)
        return self._squares[numbers.argmax(axis=1)]


def _gumbel(rng_states: RngStates, count: int) -> Table:
    """Noise under which the largest of some numbers is a draw from their softmax."""
    return -np.log(-np.log(uniform_samples(rng_states, count)))


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


# --- policy-value networks -------------------------------------------------------------------------


with extra_libraries():
    import torch

#: Positions whose moves the search looks at together: some hundred thousand leaves.
CHUNK = 1024
#: Value of an action that is illegal.
NEVER = -np.inf

Values = NDArray[np.float32]
Counter = Callable[[int, int], None]


class BatchPolicy:
    """An opponent for the vector environment: plays the best moves, or draws from the policy at a *temperature*.

    It is no player of `train.arena`: the environment shows discs and masks, not boards, and asks for actions, passes too.

    If *symmetric*, it looks at every position under all eight symmetries: stronger, and eight times the work. Its generator is
    torch's own kind, seeded with *seed*, and part of what a checkpoint keeps.
    """

    def __init__(
        self, net: PolicyValueNet, temperature: float = 0.0, seed: int = 0, *, symmetric: bool = False
    ) -> None:
        self.net, self.temperature, self.symmetric = net, temperature, symmetric
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, discs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Legal actions for ``(n, 2, size, size)`` of discs and ``(n, size² + 1)`` of legal actions."""
        device = next(self.net.parameters()).device
        board, mask = (torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in (discs, masks))
        with torch.inference_mode():
            numbers = action_numbers(self.net, board, mask, symmetric=self.symmetric)
            if self.temperature > 0:  # the largest of the numbers plus Gumbel noise is a draw from their softmax
                uniform = torch.rand(numbers.shape, generator=self.generator).clamp_(1e-12, 1 - 1e-7)
                numbers = numbers / self.temperature - torch.log(-torch.log(uniform)).to(device)
            return numbers.argmax(1).cpu().numpy()


# --- the policy -----------------------------------------------------------------------------------


class BatchPolicyPlayer(PolicyPlayer):
    """Plays the network's policy in games in step; *temperature*, *noise*: as `NetworkPlayer` has them.

    *symmetric*: as `BatchPolicy` has it.
    """

    def __init__(
        self,
        net: PolicyValueNet,
        temperature: float | NDArray[np.float64] = 0.0,
        noise: float = 0.0,
        *,
        symmetric: bool = False,
    ) -> None:
        super().__init__(net, Rules(net.size), temperature, noise)
        self.net, self.symmetric = net, symmetric

    def answers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """Numbers of all actions."""
        return policy_numbers(self.net, own, opp, symmetric=self.symmetric)


# --- the value ------------------------------------------------------------------------------------


class ValueSearchPlayer(ValuePlayer):
    """Plays the move that a search of *depth* plies over the network's value finds best; perfectly from *exact* empties on."""

    def __init__(self, net: PolicyValueNet, rules: Rules, depth: int = 2, exact: int = 10) -> None:
        super().__init__(net, rules)
        self.net, self.depth, self.exact = net, depth, exact

    def numbers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """The values of moves, in discs."""
        return network_move_values(self.net, own, opp, self.rules, self.depth).astype(np.float64)

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        """A best square for every position."""
        squares = np.empty(len(own), np.int64)
        solved = self.rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= self.exact
        if solved.any():
            squares[solved] = perfect_moves(own[solved], opp[solved], self.rules, rng_states[solved])
        rest = ~solved
        squares[rest] = super().choose(own[rest], opp[rest], games[rest], rng_states[rest])
        return squares


def network_move_values(
    net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules, depth: int, *, progress: Counter = lambda *_: None
) -> Values:
    """Value of every move by a full search of *depth* plies, the move included, over the network's value; `NEVER` if illegal.

    A pass uses up no depth. All leaves below many positions go through the network together, so that nothing is cut off: at two or
    three plies that is faster than asking for a few at a time.
    """
    table = np.zeros((len(own), rules.square_count), np.float32)
    for start in range(0, len(own), CHUNK):
        rows = slice(start, start + CHUNK)
        children = batch.expand(own[rows], opp[rows], rules)
        values = _negamax(net, children.own, children.opp, rules, depth - 1)
        table[rows] = by_action(children, -values, len(own[rows]), rules, NEVER)
        progress(min(start + CHUNK, len(own)), len(own))
    return table


def _negamax(net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules, depth: int) -> Values:
    """Values in discs for the side to move; scores of games that are over."""
    over = batch.is_over(own, opp, rules)
    values = np.full(len(own), NEVER, np.float32)
    values[over] = batch.final_scores(own[over], opp[over], rules)
    if depth == 0:
        going = np.flatnonzero(~over)
        for start in range(0, going.size, BATCH):
            rows = going[start : start + BATCH]
            values[rows] = rules.square_count * net.of_boards(own[rows], opp[rows])[1].to("cpu", torch.float32).numpy()
        return values
    children = batch.expand(own, opp, rules)  # none of a game that is over, the pass alone where there is no move
    passes = batch.legal_moves(own, opp, rules)[children.parent] == 0
    below = np.empty(len(children.own), np.float32)
    for mask, left in ((passes, depth), (~passes, depth - 1)):
        if mask.any():
            below[mask] = _negamax(net, children.own[mask], children.opp[mask], rules, left)
    np.maximum.at(values, children.parent, -below)
    return values


# --- residual networks with tree search ------------------------------------------------------------


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

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        """Squares, as `train.arena.batch.BatchPlayer` has them."""
        size = FORWARD_BATCH[self.device.type]
        parts = [slice(start, start + size) for start in range(0, own.size, size)]
        return self._squares[np.concatenate([self._actions(own[part], opp[part]) for part in parts])]

    def _actions(self, own: Boards, opp: Boards) -> Indices:
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
