"""A network as a player of many games at once: by its policy, or by a search over its value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.extras import extra_libraries
from train.games.batch import Numbers, Words, perfect_squares
from train.games.networks import PolicyPlayer, ValuePlayer
from train.judging.exact import Boards, by_action
from train.rl.network import BATCH, PolicyValueNet, action_numbers

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

    It is no player of `train.games`: the environment shows discs and masks, not boards, and asks for actions, passes too.

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


def policy_numbers(net: PolicyValueNet, own: Boards, opp: Boards, *, symmetric: bool = False) -> NDArray[np.float64]:
    """Numbers of all actions, (N, squares + 1), `ILLEGAL` where they are; *symmetric*: as `BatchPolicy` has it."""
    parts = []
    for start in range(0, len(own), BATCH):
        rows = slice(start, start + BATCH)
        with torch.inference_mode():
            numbers = action_numbers(net, *net.inputs(own[rows], opp[rows]), symmetric=symmetric)
        parts.append(numbers.to("cpu", torch.float64).numpy())
    return np.concatenate(parts)


# --- the value ------------------------------------------------------------------------------------


class ValueSearchPlayer(ValuePlayer):
    """Plays the move that a search of *depth* plies over the network's value finds best; perfectly from *exact* empties on."""

    def __init__(self, net: PolicyValueNet, rules: Rules, depth: int = 2, exact: int = 10) -> None:
        super().__init__(net, rules)
        self.net, self.depth, self.exact = net, depth, exact

    def numbers(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """The values of moves, in discs."""
        return network_move_values(self.net, own, opp, self.rules, self.depth).astype(np.float64)

    def choose(self, own: Boards, opp: Boards, games: Numbers, states: Words) -> Numbers:
        """A best square for every position."""
        squares = np.empty(len(own), np.int64)
        solved = self.rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= self.exact
        if solved.any():
            squares[solved] = perfect_squares(own[solved], opp[solved], self.rules, states[solved])
        rest = ~solved
        squares[rest] = super().choose(own[rest], opp[rest], games[rest], states[rest])
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
