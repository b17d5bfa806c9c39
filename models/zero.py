"""The agent ``zero``: a residual network that plays by its policy, with AlphaZero's tree search, or by alpha-beta over its values.

``zero:FILE`` plays the best move of the policy, averaged over the eight symmetries of the board.
``zero:FILE,simulations=64`` runs 64 simulations per move (`models.mcts.single`), on a GPU with ``device=cuda``.
``zero:FILE,time=1`` searches for a second per move.
``zero:FILE,depth=2`` searches two plies with the values of the network.
``reversi train alphazero`` writes such files; without a file the packaged network of the game plays.
"""

from __future__ import annotations

import math
from functools import cached_property
from threading import TIMEOUT_MAX, Event, Thread
from time import perf_counter
from typing import Any

import numpy as np

from models.bitboards import board_tensor
from models.evaluator import strongest_evaluator
from models.file_agents import FileAgent
from models.mcts.single import MAX_SIMULATIONS, SingleSearch
from models.residual.inference import HostNetwork, InferenceNetwork
from models.residual.net import PolicyValueFunction, ResidualNet, symmetrised
from models.torch_evaluator import single_torch_thread
from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import extra_libraries
from reversi_env.rules import PASS_NAME
from search.agents.base import TimedAgent
from search.engine.limits import Limits, MoveValue, SearchResult
from search.engine.solver import Solver, solve_batch
from search.engine.table import TranspositionTable
from search.evaluators import get_evaluator

with extra_libraries():
    import torch
    from torch import Tensor

#: Default of *exact* for the tree search, and for alpha-beta over the network's values.
EXACT_WITH_SEARCH, EXACT_WITH_DEPTH = 18, 10
#: Maximum empties of the leaves that are solved, which takes less time than the network.
MAX_LEAF_EMPTIES = 10
#: Share of a move's time after which the solver gives up, and the tree search has the rest.
SOLVE_SHARE = 0.5
#: Seconds between repeated requests to stop the solver.
POLL_SECONDS = 0.005


class ZeroAgent(FileAgent, TimedAgent):
    """Plays by a residual network: by its policy, with a tree search, or by alpha-beta to *depth* plies.

    The tree search ends after *simulations* or *time* in seconds. From *exact* empty squares on the agent plays perfectly, unless
    that takes more than half of the time (default: 18 with a tree search, 10 with *depth*, else 0); leaves with at most
    `MAX_LEAF_EMPTIES` of them get exact values. At a *temperature* moves are sampled with *seed*, from the policy or by Gumbel
    noise in the search. With *depth* and *seed*, equally good moves are chosen at random.
    """

    kind, prefix, training = "zero", "zero", "reversi train alphazero"
    has_symmetric_values = True

    def __init__(
        self,
        weights: str | None = None,
        *,
        simulations: int = 0,
        time: float | None = None,
        depth: int = 0,
        exact: int | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        device: str = "cpu",
    ) -> None:
        default = EXACT_WITH_DEPTH if depth else EXACT_WITH_SEARCH if simulations or time else 0
        super().__init__(weights, depth=depth, exact=default if exact is None else exact, seed=seed)
        others = {"simulations": simulations, "time": time, "temperature": temperature}
        for name, value in others.items():
            if depth and value:
                raise ReversiError(f"depth={depth} with {name}={value:g}: expected one of them")
        if device == "cuda" and not torch.cuda.is_available():
            raise ReversiError("device 'cuda': expected one that torch finds here, or device=cpu")
        self.limits, self.time = Limits(time=time, nodes=simulations or None), time
        self.temperature, self.device = temperature, device
        self._rng = np.random.default_rng(seed or 0)
        self._games: dict[tuple[int, str], _Game] = {}
        self._stopped = False

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_games": {}}

    def prepare(self, rules: Rules) -> None:
        game = self._game(rules)
        if self.limits != Limits():
            _ = game.search
        if self.exact and not self.depth:
            _ = game.solver

    def choose(self, position: Position) -> int:
        if position.must_pass():
            return position.rules.pass_action
        return position.rules.action_from_name(self.search(position).move or PASS_NAME)

    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        rng: np.random.Generator | None = None,
    ) -> SearchResult:
        """Return the move with its value. ``nodes`` of *limits* are simulations; time ends at the soft limit, if any."""
        self._stopped, limits, rng = False, limits or self.limits, rng or self._rng
        seconds = min(limits.soft or math.inf, limits.time or math.inf)
        with single_torch_thread():
            if self.depth:
                return self.alpha_beta(position.rules).search(position)
            began = perf_counter()
            if (solution := self._solution(position, SOLVE_SHARE * seconds)) is not None:
                return solution
            if limits.nodes is None and limits.time is None:
                return self._policy_move(position, rng)
            left = max(seconds - (perf_counter() - began), 1e-3)
            return self._tree_search(position, limits.nodes or MAX_SIMULATIONS, left, multi_pv, rng)

    def stop(self) -> None:
        self._stopped = True
        for game in list(self._games.values()):
            if "solver" in vars(game):
                game.solver.stop()

    def _solution(self, position: Position, seconds: float) -> SearchResult | None:
        """Return the exact result, or None if there are too many empty squares or the time is not sufficient."""
        if position.empties > self.exact or position.must_pass():
            return None
        solver = self._game(position.rules).solver
        ended = Event()

        def stop_in_time() -> None:
            wait_seconds = min(seconds, TIMEOUT_MAX)
            while not ended.wait(wait_seconds):
                solver.stop()  # again, since the first call may come before the solver begins
                wait_seconds = POLL_SECONDS

        timer = Thread(target=stop_in_time, daemon=True)
        timer.start()
        try:
            solution = solver.solve(position)
        finally:
            ended.set()
            timer.join()  # a late stop would end the next search
        if not solution.proven:
            return None
        line, score = solution.pv, float(solution.score)
        return SearchResult(solution.move, score, position.empties, 100, line, solution.nodes, solution.seconds)

    def _policy_move(self, position: Position, rng: np.random.Generator) -> SearchResult:
        began, rules = perf_counter(), position.rules
        boards = (board_tensor(np.array([side], np.uint64)).to(self.device) for side in (position.own, position.opp))
        logits, values = self._game(rules).policy(*boards)
        noise = torch.from_numpy(rng.gumbel(size=rules.square_count)).float()
        noisy: Tensor = logits[0] + self.temperature * noise.to(logits)
        best = max(position.legal_actions(), key=[*noisy.tolist(), 0.0].__getitem__)
        move = rules.name_of(best)
        return SearchResult(move, float(values[0]), 0, 0, (move,), 1, perf_counter() - began)

    def _tree_search(
        self, position: Position, simulations: int, seconds: float, multi_pv: int, rng: np.random.Generator
    ) -> SearchResult:
        began, rules = perf_counter(), position.rules
        if len(position.legal_actions()) == 1 and math.isfinite(seconds):
            simulations = 1
        output = self._game(rules).search.run(
            position,
            min(simulations, MAX_SIMULATIONS),
            self.temperature * rng.gumbel(size=rules.square_count + 1),
            seconds=seconds,
            is_stopped=lambda: self._stopped,
        )
        ranked = sorted(
            output.visits.nonzero()[0], key=lambda a: (a != output.action, -output.visits[a], -output.values[a])
        )
        values = (MoveValue(rules.name_of(int(a)), rules.square_count * float(output.values[a])) for a in ranked)
        pv = tuple(map(rules.name_of, output.pv))
        value, nodes = rules.square_count * output.value, int(output.visits.sum())
        moves = tuple(values)[:multi_pv] if multi_pv > 1 else ()
        return SearchResult(pv[0], value, len(pv), 0, pv, nodes, perf_counter() - began, moves)

    def _game(self, rules: Rules) -> _Game:
        key = (rules.size, rules.variant)
        if key not in self._games:
            self._games[key] = _Game(rules, self.load(rules).net, self.device, min(self.exact, MAX_LEAF_EMPTIES))
        return self._games[key]


class _Game:
    """The policy, tree search and solver of an agent for one game, each made on first use with its kernels loaded."""

    def __init__(self, rules: Rules, net: ResidualNet, device: str, leaf_empties: int) -> None:
        self._rules, self._net, self._device, self._leaf_empties = rules, net, device, leaf_empties

    @cached_property
    def policy(self) -> PolicyValueFunction:
        return symmetrised(InferenceNetwork(self._net, self._device).logits_and_values, self._rules)

    @cached_property
    def search(self) -> SingleSearch:
        search = SingleSearch(HostNetwork(self._net, self._device), self._rules, exact=self._leaf_empties)
        with single_torch_thread():
            search.run(Position.initial(self._rules), 2)
        if self._leaf_empties:  # the kernels that solve leaves
            own, opp = batch.random_positions(1, self._rules.square_count - 6, self._rules, seed=0)
            solve_batch(own, opp, self._rules, threads=1)
        return search

    @cached_property
    def solver(self) -> Solver:
        evaluator = get_evaluator(strongest_evaluator(self._rules))
        order = evaluator if evaluator.orders_endgames else None
        solver = Solver(self._rules, table=TranspositionTable(16), evaluator=order)
        solver.load_kernels()
        return solver
