"""Any torch module as an evaluator in alpha-beta, for networks without a kernel in the search.

A forward pass costs far more than a position in it, so all children of a node are evaluated in one batch: they are the leaves at
the last ply, and their values order the moves before it. One core evaluates some thousand positions per second, compared with
millions with a compiled network.

>>> module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2 * 6 * 6, 1))
>>> agent = TorchAgent(TorchEvaluator(module, Rules(6)), depth=2)
>>> start = Position.initial(Rules(6))
>>> agent.choose(start) in start.legal_actions()
True
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.bitboards import board_planes, board_tensor
from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import extra_libraries, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.rules import checked_rules
from search.agents.base import Agent
from search.engine.limits import MoveValue, SearchResult, check_game
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.evaluators.function import PythonEvaluator

with extra_libraries():
    import torch
    from torch import nn

#: Maximum positions in a forward pass.
BATCH = 4096
Boards = NDArray[np.uint64]


@contextmanager
def single_torch_thread() -> Iterator[None]:
    """Limit torch to one thread within the context: for a few positions more threads are slower, and spin while waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class TorchEvaluator(PythonEvaluator):
    """An evaluator of one game by a module, in discs for the side to move.

    With *inputs* ``"planes"`` the module maps ``(n, 2, size, size)`` of own and opponent's discs, 0 and 1, to n values; with
    ``"boards"``, two int64 tensors of boards (as `PatternModule`). Its outputs times *scale* are discs: for a value head between
    -1 and 1 the scale is the number of squares. The module is set to evaluation mode.

    ``Engine(TorchEvaluator(module))`` evaluates one position at a time, `TorchAgent` all children of a node in one batch.
    """

    def __init__(
        self,
        module: nn.Module,
        rules: Rules | None = None,
        *,
        inputs: Literal["planes", "boards"] = "planes",
        scale: float = 1.0,
        device: str | torch.device = "cpu",
        name: str = "torch",
    ) -> None:
        if inputs not in ("planes", "boards"):
            raise ReversiError(f"inputs={quoted(inputs)}: expected 'planes' or 'boards'")
        super().__init__(name)
        self.module, self.rules = module.to(device).eval(), checked_rules(rules)
        self._inputs, self._scale, self._device = inputs, scale, torch.device(device)

    def static_value(self, position: Position) -> float:
        return float(self.static_values([position.own], [position.opp], position.rules)[0])

    def static_values(self, own: ArrayLike, opp: ArrayLike, rules: Rules | None = None) -> NDArray[np.float64]:
        self._check(rules or self.rules)
        own, opp = batch.checked_boards(np.asarray(own, np.uint64), np.asarray(opp, np.uint64), self.rules)
        parts = [self._outputs(own[i : i + BATCH], opp[i : i + BATCH]) for i in range(0, own.size, BATCH)]
        limit = self.rules.square_count - 0.5
        return np.clip(self._scale * np.concatenate([np.zeros(0), *parts]), -limit, limit)

    def record(self, rules: Rules) -> np.ndarray:
        self._check(rules)
        return super().record(rules)

    def _check(self, rules: Rules) -> None:
        if (rules.size, rules.variant) != (self.rules.size, self.rules.variant):
            raise ReversiError(f"positions of {rules}: expected those of {self.rules}")

    def _outputs(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        mine, theirs = (board_tensor(side).to(self._device) for side in (own, opp))
        with torch.inference_mode():
            if self._inputs == "boards":
                values = self.module(mine, theirs)
            else:
                discs = board_planes(torch.stack([mine, theirs], dim=1), self.rules.size)
                values = self.module(discs.to(torch.float32))
        if values.numel() != own.size:
            raise ReversiError(f"module output of shape {tuple(values.shape)}: expected {own.size} values")
        outputs = values.reshape(-1).to("cpu", torch.float64).numpy()
        if np.isnan(outputs).any():
            raise ReversiError(f"evaluator {self.name}: a value is not a number: expected finite values")
        return outputs


class TorchAgent(Agent):
    """Alpha-beta to *depth* plies with a `TorchEvaluator`, and exact play from *exact* empty squares on.

    A pass does not reduce the depth. With *seed*, equally good moves are chosen at random.
    """

    def __init__(self, evaluator: TorchEvaluator, depth: int = 2, *, exact: int = 10, seed: int | None = None) -> None:
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ReversiError(f"depth={quoted(depth)}: expected an integer of at least 1")
        if not isinstance(evaluator, TorchEvaluator):
            raise ReversiError(f"evaluator of type {type(evaluator).__name__}: expected TorchEvaluator(module)")
        self.evaluator, self.depth, self.exact = evaluator, depth, exact
        self._ties = None if seed is None else np.random.default_rng(seed)
        self._solver: Solver | None = None
        self._nodes = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solver": None}  # a copy makes its own on first use

    def choose(self, position: Position) -> int:
        return position.rules.action_from_name(self.search(position).move or "pass")

    def search(self, position: Position) -> SearchResult:
        """Return the best move with its value; the values of other moves are upper bounds."""
        began, rules = perf_counter(), position.rules
        check_game(position, self.evaluator.rules)
        if position.is_over():
            return SearchResult(None, float(position.score()), 0, 100, (), 0, 0.0)
        if position.empties <= self.exact and not position.must_pass():
            self._solver = self._solver or Solver(rules, table=TranspositionTable(16))
            exact = self._solver.solve(position)
            return SearchResult(exact.move, exact.score, position.empties, 100, exact.pv, exact.nodes, exact.seconds)
        self._nodes = 1
        squares, own, opp, values = self._ordered_children(np.uint64(position.own), np.uint64(position.opp), self._ties)
        if squares[0] == PASS_SQUARE:
            values = np.array([-self._negamax(own[0], opp[0], -np.inf, np.inf, self.depth)])
        elif self.depth > 1:
            values = self._root_values(own, opp)
        best = int(np.argmax(values))
        names = [rules.name_of(rules.action_of(int(sq))) if sq != PASS_SQUARE else "pass" for sq in squares]
        moves = tuple(MoveValue(name, float(value)) for name, value in zip(names, values, strict=True))
        elapsed = perf_counter() - began
        return SearchResult(
            names[best], float(values[best]), self.depth, 0, (names[best],), self._nodes, elapsed, moves
        )

    def _root_values(self, own: Boards, opp: Boards) -> NDArray[np.float64]:
        """Return the values of the root's moves for the side to move at the root; upper bounds for all but the best."""
        values = np.full(own.size, -np.inf)
        for i in range(own.size):
            values[i] = -self._negamax(own[i], opp[i], -np.inf, -values[:i].max(initial=-np.inf), self.depth - 1)
        return values

    def _negamax(self, own: np.uint64, opp: np.uint64, alpha: float, beta: float, depth: int) -> float:
        """Return the value for the side to move if it is between *alpha* and *beta*; otherwise a bound."""
        self._nodes += 1
        if batch.is_over([own], [opp], self.evaluator.rules)[0]:
            return float(batch.final_scores([own], [opp], self.evaluator.rules)[0])
        squares, owns, opps, values = self._ordered_children(own, opp)
        if squares[0] == PASS_SQUARE:
            return -self._negamax(owns[0], opps[0], -beta, -alpha, depth)
        if depth == 1:
            return float(values.max())
        best = -np.inf
        for child_own, child_opp in zip(owns, opps, strict=True):
            best = max(best, -self._negamax(child_own, child_opp, -beta, -max(alpha, best), depth - 1))
            if best >= beta:
                break
        return best

    def _ordered_children(
        self, own: np.uint64, opp: np.uint64, tie_rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Boards, Boards, NDArray[np.float64]]:
        """Return squares, children (own, opp) and their values for the side to move here, best first."""
        rules = self.evaluator.rules
        children = batch.expand([own], [opp], rules)
        self._nodes += children.own.size
        over = batch.is_over(children.own, children.opp, rules)
        values = -batch.final_scores(children.own, children.opp, rules).astype(np.float64)
        values[~over] = -self.evaluator.static_values(children.own[~over], children.opp[~over])
        order = np.arange(values.size) if tie_rng is None else tie_rng.permutation(values.size)
        order = order[np.argsort(-values[order], kind="stable")]
        return children.square[order], children.own[order], children.opp[order], values[order]
