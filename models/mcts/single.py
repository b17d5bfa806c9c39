"""`SingleSearch`: the Gumbel search of `models.mcts.search.TreeSearch` for one game, with a compiled tree on the host.

Sequential halving visits all remaining actions of the root equally often, and the subtrees below them are independent. One visit to
each of them is therefore one batch for the network: 64 simulations are 16 calls of the network, one of them for the root. The
result equals that of a search that runs its simulations one by one.

With a limit of time, each round of sequential halving gets an equal share of the time instead of an equal share of the simulations.

Outputs of the network are cached by position, trees are not kept. Positions that an earlier search has evaluated cost no call of
the network, and the result is the same as without a cache.
"""

import math
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.kernels import tree as kernels
from models.mcts.search import MAX_DEPTH
from reversi_env import Position, Rules
from search.engine.solver import solve_batch
from search.kernels.thread_state import MAX_MOVES

#: Takes own and opponent's boards, uint64 ``(n,)``; returns ``(n, squares + 1)``: logits of all squares, legal or not, and the
#: value in discs in the last column.
NetworkOnBoards = Callable[[NDArray[np.uint64], NDArray[np.uint64]], NDArray[np.float32]]
#: Maximum number of simulations of a search, and of positions in the cache.
MAX_SIMULATIONS, MAX_CACHED = 100_000, 200_000


class SingleOutput(NamedTuple):
    """The result of a search: the *action* to play, and for all actions the improved *policy*, *visits* and *values*.

    ``value`` and ``values`` are shares of the board for the side to move; unvisited actions have the mixed value.
    ``pv``: the actions of the principal variation.
    """

    action: int
    policy: NDArray[np.float64]
    value: float
    visits: NDArray[np.int64]
    values: NDArray[np.float64]
    pv: tuple[int, ...]


class SingleSearch:
    """A search of one position at a time with a *network* of type `NetworkOnBoards`.

    The other arguments are those of `models.mcts.search.TreeSearch`.
    """

    def __init__(
        self,
        network: NetworkOnBoards,
        rules: Rules,
        *,
        max_considered_actions: int = 16,
        exact: int = 0,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.network, self.rules, self.exact = network, rules, exact
        self.max_considered_actions, self.max_depth = max_considered_actions, max_depth
        self._playable, self._sign = np.uint64(rules.playable), rules.sign
        self._cache: dict[tuple[int, int], NDArray[np.float32]] = {}
        self._discs = 0

    def run(
        self,
        position: Position,
        simulations: int = MAX_SIMULATIONS,
        gumbel: NDArray[np.float64] | None = None,
        *,
        seconds: float | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> SingleOutput:
        """Search *position*, whose game is not over.

        *gumbel*: Gumbel noise, one value per action; without it the search is deterministic. The search ends after *simulations* or
        *seconds*, or when *is_stopped* is true, and always after whole batches.
        """
        began = perf_counter()
        self._limit_cache(position)
        tree = np.zeros(simulations + 1, kernels.NODE)
        boards = np.uint64(position.own), np.uint64(position.opp)
        kernels.set_position(tree, 0, *boards, self._playable, self._sign)
        root, nodes = tree[0], np.zeros(1, np.int64)
        kernels.set_outputs(tree, nodes, self._outputs(*(np.array([side]) for side in boards)), self._playable)
        self._solve(tree, nodes)
        actions = [self._action_of(int(sq)) for sq in root["square"][: root["actions"]]]
        noise = np.zeros(len(actions)) if gumbel is None else np.asarray(gumbel, np.float64)[actions]
        size, seconds_per_leaf = 1, 0.0
        limit = math.inf if seconds is None else max(seconds, 1e-9)

        def elapsed_share(leaves: int) -> float:
            """Return the share of the time that will have passed when *leaves* more are evaluated; infinite after a stop."""
            if is_stopped():
                return math.inf
            return (perf_counter() - began + leaves * seconds_per_leaf) / limit

        count = min(self.max_considered_actions, len(actions))
        for visits, leaves in halving(count, simulations, elapsed_share):
            batch_began = perf_counter()
            chosen, paths = np.empty(leaves, np.int64), np.empty((leaves, self.max_depth + 1), np.int32)
            kernels.choose_considered(tree, noise, visits, chosen)
            first, size = size, kernels.select_leaves(tree, size, chosen, self._playable, self._sign, paths)
            self._evaluate(tree, np.arange(first, size))
            kernels.back_up(tree, paths)
            seconds_per_leaf = (perf_counter() - batch_began) / leaves
        return self._output(tree, actions, noise)

    def _evaluate(self, tree: NDArray[np.void], nodes: NDArray[np.int64]) -> None:
        nodes = nodes[tree["terminal"][nodes] == 0]
        nodes = nodes[~self._solve(tree, nodes)]
        if nodes.size:
            outputs = self._outputs(tree["own"][nodes], tree["opp"][nodes])
            kernels.set_outputs(tree, nodes, outputs, self._playable)

    def _solve(self, tree: NDArray[np.void], nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Write exact values of nodes with few empties; return a mask of these nodes."""
        own, opp = tree["own"][nodes], tree["opp"][nodes]
        solved = self.rules.square_count - np.bitwise_count(own | opp) <= self.exact
        if solved.any():
            scores = solve_batch(own[solved], opp[solved], self.rules, threads=1)
            tree["raw_value"][nodes[solved]] = scores / self.rules.square_count
            tree["terminal"][nodes[solved]] = 1
        return solved

    def _outputs(self, own: NDArray[np.uint64], opp: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the network's outputs, cached ones without a call of the network."""
        keys = list(zip(own.tolist(), opp.tolist(), strict=True))
        missing = [i for i, key in enumerate(keys) if key not in self._cache]
        if missing:
            for i, output in zip(missing, self.network(own[missing], opp[missing]), strict=True):
                self._cache[keys[i]] = output
        return np.stack([self._cache[key] for key in keys])

    def _limit_cache(self, position: Position) -> None:
        """Empty the cache if it is full, or if *position* has fewer discs than the last one and so is of another game."""
        discs = self.rules.square_count - position.empties
        if discs < self._discs or len(self._cache) > MAX_CACHED:
            self._cache.clear()
        self._discs = discs

    def _action_of(self, sq: int) -> int:
        return self.rules.pass_action if sq == kernels.PASS_SQUARE else self.rules.action_of(sq)

    def _output(self, tree: NDArray[np.void], actions: list[int], noise: NDArray[np.float64]) -> SingleOutput:
        values, count = np.zeros(MAX_MOVES), len(actions)
        _, max_visits = kernels.completed_values(tree, 0, values)
        root, values = tree[0], values[:count]
        improved = root["logit"][:count] + (kernels.MAXVISIT_INIT + max_visits) * kernels.VALUE_SCALE * values
        children = root["child"][:count]
        visits = np.where(children > 0, tree["visits"][children], 0)
        best = int(np.where(visits == max_visits, noise + improved, -np.inf).argmax())
        probs = np.exp(improved - improved.max())
        probs /= probs.sum()

        def by_action(each: NDArray[Any]) -> NDArray[Any]:
            result = np.zeros(self.rules.square_count + 1, each.dtype)
            result[actions] = each
            return result

        value, pv = float(probs @ values), tuple(self._pv(tree, best))
        return SingleOutput(actions[best], by_action(probs), value, by_action(visits), by_action(values), pv)

    def _pv(self, tree: NDArray[np.void], action: int) -> Iterator[int]:
        node = tree[0]
        while True:
            yield self._action_of(int(node["square"][action]))
            if not node["child"][action]:
                return
            node = tree[node["child"][action]]
            children = node["child"][: node["actions"]]
            if not children.any():
                return
            action = int(np.where(children > 0, tree["visits"][children], 0).argmax())


def halving(
    actions: int, simulations: int, elapsed_share: Callable[[int], float] = lambda leaves: 0.0
) -> Iterator[tuple[int, int]]:
    """Yield ``(visits, leaves)`` for each batch, which visits *leaves* root actions, all with *visits* visits so far, once more.

    The rounds share the simulations, and the time, equally (`models.mcts.search.considered_visits_sequence`).

    >>> list(halving(4, 12))
    [(0, 4), (1, 2), (2, 2), (3, 2), (4, 2)]
    """
    rounds, remaining, visits, done, number = max(1, (actions - 1).bit_length()), actions, 0, 0, 0
    while done < simulations:
        number += 1
        for _ in range(max(1, simulations // (rounds * remaining))):
            leaves = min(remaining, simulations - done)
            share = elapsed_share(leaves)
            if leaves == 0 or share >= 1:
                return
            yield visits, leaves
            visits, done = visits + 1, done + leaves
            if elapsed_share(0) >= number / rounds:
                break
        remaining = max(min(2, actions), remaining // 2)
