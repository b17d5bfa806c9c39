"""`Search`: one search of an `Engine`: iterative deepening, aspiration windows, and selectivity levels near the end of the game."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from reversi_env import Position
from reversi_env.errors import check_integer, quoted
from reversi_env.kernels.frame import squares_of
from reversi_env.rules import PASS_NAME
from search.engine.limits import Limits, LimitsError, MoveValue, SearchResult, check_game
from search.engine.probcut import EXACT_LEVEL, SELECTIVITIES
from search.engine.solver import Solution
from search.engine.threads import NO_NODE_LIMIT, sharing
from search.engine.timer import IterationHistory, SearchTimer
from search.kernels import midgame
from search.kernels.evaluate import INFINITY, UNIT
from search.kernels.table import NO_MOVE

if TYPE_CHECKING:
    from search.engine.engine import Engine

#: Half the width of an iteration's first window, around the last iteration's value, in units; a value outside widens it.
ASPIRATION_WINDOW = 3 * UNIT
#: The solver's expected nodes with *e* empties are ``SOLVE_NODES * SOLVE_GROWTH ** e``, fitted to tournament endgames, and those of
#: the first selectivity level ``FIRST_LEVEL_NODES * FIRST_LEVEL_GROWTH ** e``.
SOLVE_NODES, SOLVE_GROWTH = 1.0, 2.15
FIRST_LEVEL_NODES, FIRST_LEVEL_GROWTH = 30.0, 1.58
SOLVE_NODES_PER_SECOND = 12e6
#: A solution, or the first selectivity level, is begun if its expected time is at most this multiple of the time limit; the same
#: multiple applies to a node limit, for a solution only. The first level is often much faster than expected, but not with
#: multi-PV, which needs the values of all moves.
MAX_SOLVE_BUDGET, MAX_FIRST_LEVEL_BUDGET, MAX_FIRST_LEVEL_BUDGET_MULTI_PV = 0.4, 4.0, 0.5
#: A midgame search to this depth comes before a solution, or before selective endgame search. It gives a fallback move and move
#: ordering. It also takes SHARE_BEFORE_SELECTIVE of the time limit, if the first level is expected to exceed RISKY_TIME_SHARE.
#: Trials with 26 empties and 0.1 s: docs/lab/search.md.
DEPTH_BEFORE_SOLVING, DEPTH_BEFORE_SELECTIVE = 8, 10
RISKY_TIME_SHARE, SHARE_BEFORE_SELECTIVE = 0.5, 0.3
#: A search to depth *d* solves positions with up to *d* + SOLVE_BEYOND_DEPTH empties, because the solver is much faster.
SOLVE_BEYOND_DEPTH = 6
#: Maximum empties at which a search without limits solves at once.
UNLIMITED_SOLVE_EMPTIES = 12
MAX_DEPTH = 60
#: Nodes, a few milliseconds, before other threads join the iterations: to wake them takes a millisecond.
SINGLE_THREAD_NODES = 20_000
#: A whole tree to depth *d* has about ``DEPTH_NODES * DEPTH_GROWTH ** d`` nodes. The table has one
#: entry per NODES_PER_ENTRY nodes at most: a small table stays in the processor's caches.
DEPTH_NODES, DEPTH_GROWTH, NODES_PER_ENTRY = 30.0, 2.6, 2
#: Another iteration is begun if this multiple of the last one's time is left: enough for its first move.
FIRST_MOVE_SHARE = 0.4
#: Easy move: under a game clock, a move this far ahead of all others is played after this share of the soft limit. A search two
#: plies less deep compares them. Of 400 midgame positions at 0.1 s, 102 had one; in 2 of these the whole time gave another move.
EASY_MOVE_MARGIN = 4 * UNIT
EASY_MOVE_TIME_SHARE = 0.2


def _are_all_levels(levels: Sequence[int]) -> bool:
    return len(levels) == EXACT_LEVEL + 1


class Search:
    """One search: its timer, its root moves, and its results so far; the parameters are those of `Engine.search`."""

    def __init__(
        self,
        engine: Engine,
        position: Position,
        limits: Limits,
        multi_pv: int,
        tie_rng: np.random.Generator | None = None,
        keep_estimates: bool = False,
        exclude: Sequence[str] = (),
        on_iteration: Callable[[SearchResult], None] | None = None,
    ) -> None:
        check_game(position, engine.rules)
        check_integer("multi_pv", multi_pv, 1, 1000)
        self.engine, self.position, self.limits = engine, position, limits
        self.thread_states = engine.thread_states
        self.timer = SearchTimer(limits, engine.stop_latency, self._target_seconds, engine.stop)
        self.boards = (np.uint64(position.own), np.uint64(position.opp))
        self.squares = self._root_squares(exclude)
        self.is_restricted, self.on_iteration = bool(exclude), on_iteration
        if tie_rng is not None:  # the first move searched wins a tie
            tie_rng.shuffle(self.squares)
        self.values, self.unsearched = np.zeros_like(self.squares), np.full_like(self.squares, -INFINITY)
        #: Number of root moves that get a value in the midgame search; the others get an upper bound.
        self.lines, self.multi_pv = min(multi_pv, self.squares.size), multi_pv
        #: Number of root moves to search to the end: the best one, or all, because the best few are not known in advance.
        self.lines_to_value = 1 if self._needs_best_only() else max(1, self.squares.size)
        self.keep_estimates = keep_estimates
        self.depth = 0
        self.confidence = 0
        self.pv: tuple[str, ...] = ()
        self.solver_nodes = 0
        self.history = IterationHistory()
        self.searches_to_end = False

    def run(self) -> SearchResult:
        """Search until a limit is reached or the value is proven."""
        self._prepare()
        if self.position.is_over():
            self.confidence = 100
            return self._result(None, self.position.score())
        if not self.squares.size:
            return self._after_pass()
        self.timer.start()
        try:
            levels = self.selectivity_levels()
            self.searches_to_end = len(levels) > 0
            self._deepen_iteratively(levels)
            if not levels and self._one_ply_is_left():
                levels = self._levels_to_solve()
            if not self.confidence and not self._should_stop():
                self._search_to_end(levels)
        finally:
            self.timer.end()
        return self._best_result()

    def _root_squares(self, exclude: Sequence[str]) -> np.ndarray:
        squares = squares_of(self.position.legal_board())
        if not exclude:
            return np.array(squares, np.int64)
        left = [sq for sq in squares if self._name(sq) not in exclude]
        if unknown := sorted(set(exclude) - {self._name(sq) for sq in squares}):
            raise LimitsError(f"exclude {quoted(unknown[0])}: expected legal moves of the position")
        if not left:
            raise LimitsError(f"exclude {', '.join(exclude)}: expected at least one other legal move")
        return np.array(left, np.int64)

    def _needs_best_only(self) -> bool:
        """Return whether the value of the position is enough, and no values of its moves are needed."""
        return self.multi_pv == 1 and not self.is_restricted

    # --- limits -----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        engine = self.engine
        if self.multi_pv > 1 and not self.keep_estimates:
            engine.clear_estimates()
        engine.set_active_margin(engine.margin_for(self.limits))
        engine.table.reserve(self._expected_nodes() / NODES_PER_ENTRY)
        engine.table.new_search()
        engine.table.attach(self.thread_states, "estimates")
        self.thread_states["nodes"], self.thread_states["probcut_nesting"] = 0, 0
        self.thread_states["node_limit"] = self.limits.nodes or NO_NODE_LIMIT

    def _expected_nodes(self) -> float:
        limits = self.limits
        to_depth = DEPTH_NODES * DEPTH_GROWTH ** min(limits.depth or MAX_DEPTH, MAX_DEPTH)
        in_time = SOLVE_NODES_PER_SECOND * limits.time if limits.time is not None else math.inf
        return len(self.thread_states) * min(to_depth, in_time, limits.nodes or math.inf)

    def _should_stop(self) -> bool:
        return self.engine.switch.requested or max(self._visited()) > int(self.thread_states["node_limit"][0])

    def _should_solve(self) -> bool:
        """Return whether to solve: by the limits, or if it is expected to finish in time."""
        empties, limits = self.position.empties, self.limits
        if limits.empties_exact is not None:
            return empties <= limits.empties_exact
        if limits.depth is not None or limits.nodes is not None:
            if empties > (limits.depth or 0) + SOLVE_BEYOND_DEPTH:
                return False
        elif limits.time is None:
            return empties <= UNLIMITED_SOLVE_EMPTIES
        nodes = self.lines_to_value * SOLVE_NODES * SOLVE_GROWTH**empties
        in_time = limits.time is None or nodes / SOLVE_NODES_PER_SECOND <= MAX_SOLVE_BUDGET * limits.time
        return in_time and (limits.nodes is None or nodes <= MAX_SOLVE_BUDGET * limits.nodes)

    def selectivity_levels(self) -> Sequence[int]:
        """Return the selectivity levels at which the endgame is searched; none if it is too far away.

        All levels if the exact one may not be finished; otherwise those that solve the position in the least time.
        """
        solver, limits = self.engine.solver, self.limits
        if self._only_move() and limits.soft is not None:
            return ()
        if self._should_solve():
            return self._levels_to_solve()
        if limits.time is None or limits != Limits(time=limits.time, soft=limits.soft):
            return ()
        if not solver.selective or self.engine.margin == 0:
            return ()
        share = MAX_FIRST_LEVEL_BUDGET if self.multi_pv == 1 else MAX_FIRST_LEVEL_BUDGET_MULTI_PV
        return range(EXACT_LEVEL + 1) if self._first_level_seconds() <= share * limits.time else ()

    def _first_level_seconds(self) -> float:
        nodes = self.lines_to_value * FIRST_LEVEL_NODES * FIRST_LEVEL_GROWTH**self.position.empties
        return nodes / SOLVE_NODES_PER_SECOND

    def _levels_to_solve(self) -> Sequence[int]:
        return self.engine.solver.selectivity_levels(self.position) if self.engine.margin != 0 else (EXACT_LEVEL,)

    def _starts_selective_now(self, levels: Sequence[int]) -> bool:
        if not _are_all_levels(levels) or self.depth < DEPTH_BEFORE_SELECTIVE:
            return False
        limit = self.limits.time or math.inf
        share = SHARE_BEFORE_SELECTIVE if self._first_level_seconds() > RISKY_TIME_SHARE * limit else 0.0
        return self.timer.elapsed() >= share * limit

    def _max_depth(self) -> int:
        return self.limits.depth or (MAX_DEPTH if self.limits.empties_exact is not None else self.position.empties - 1)

    def _one_ply_is_left(self) -> bool:
        """Return whether only the last ply is left, so that the solver should prove the value."""
        return self.limits.empties_exact is None and self.depth == self.position.empties - 1

    def _worth_another_iteration(self, last: float) -> bool:
        """Return whether the next iteration, which takes longer than the *last* (seconds), may complete its first move."""
        return self._target_seconds() - self.timer.elapsed() > FIRST_MOVE_SHARE * last

    def _target_seconds(self) -> float:
        soft, hard = self.limits.soft, self.limits.time or math.inf
        return hard if soft is None or self.searches_to_end or not self.history.is_settled else min(soft, hard)

    def _is_easy_move(self) -> bool:
        """Return whether one move is far ahead of all others by a search two plies less deep than the last iteration."""
        soft = self.limits.soft
        if soft is None or self.limits.depth is not None or self.multi_pv > 1:
            return False
        if not self.history.has_same_reply or self.timer.elapsed() < EASY_MOVE_TIME_SHARE * soft:
            return False
        low, others = int(self.values[0]) - EASY_MOVE_MARGIN, np.ascontiguousarray(self.squares[1:])
        values = np.full(others.size, -INFINITY, np.int64)
        arguments = (self.engine.nets, *self.boards, others, values, low - 1, low, self.depth - 2, 1)
        return int(midgame.search_root(self.thread_states[:1], *arguments)) == others.size and int(values.max()) < low

    # --- searching --------------------------------------------------------------------------------

    def _deepen_iteratively(self, levels: Sequence[int]) -> None:
        solves_at_once = bool(levels) and not _are_all_levels(levels)
        max_depth = DEPTH_BEFORE_SOLVING if solves_at_once else self._max_depth()
        parallel = len(self.thread_states) > 1 and not solves_at_once
        for depth in range(1, min(max_depth, self.position.empties) + 1):
            began = self.timer.elapsed()
            if not self._iterate(depth, helpers=parallel and self._nodes() > SINGLE_THREAD_NODES):
                break
            self.depth = depth
            if depth >= self.position.empties:  # ProbCut prunes no search to the end of the game
                self.confidence = SELECTIVITIES[EXACT_LEVEL].confidence
            self._report()
            if self.confidence or self._should_stop() or self._starts_selective_now(levels):
                break
            if self._only_move() and self.limits.time is not None:
                break
            if self.limits.soft is not None:
                self.history.add_iteration(self._principal_variation(), int(self.values[0]) / UNIT)
            if not self._worth_another_iteration(self.timer.elapsed() - began) or self._is_easy_move():
                break

    def _only_move(self) -> bool:
        return self.squares.size == 1 and self.multi_pv == 1

    def _iterate(self, depth: int, *, helpers: bool) -> bool:
        """Search all root moves to *depth* with an aspiration window that widens as needed; return False after a stop."""
        full = depth == 1 or self.lines > 1
        centre = int(self.values[0])
        low, high = (-INFINITY, INFINITY) if full else (centre - ASPIRATION_WINDOW, centre + ASPIRATION_WINDOW)
        while True:
            values = self.unsearched.copy()
            completed = self._search_root(values, low, high, depth, helpers)
            best = max(values.tolist())
            if completed == self.squares.size or (completed and best >= high):
                if best <= low and low > -INFINITY:
                    low = -INFINITY
                    self.history.failed_low()
                elif best >= high and high < INFINITY:
                    high = INFINITY
                    self._bring_to_front(values)
                else:
                    self._apply_iteration(values)
                    return True
                continue
            if best > low and self.lines == 1:
                self._bring_to_front(values)
            return False

    def _search_root(self, values: np.ndarray, low: int, high: int, depth: int, helpers: bool) -> int:
        arguments = (self.engine.nets, *self.boards, self.squares)
        if not helpers:
            return int(midgame.search_root(self.thread_states[:1], *arguments, values, low, high, depth, self.lines))
        thread_values = np.full((len(self.thread_states), values.size), -INFINITY, np.int64)
        finished = [0] * len(self.thread_states)

        def is_complete(k: int) -> bool:
            return finished[k] == values.size or int(thread_values[k].max()) >= high

        def search(k: int) -> bool:
            thread_values[k] = -INFINITY
            roots = midgame.search_root(
                self.thread_states[k : k + 1], *arguments, thread_values[k], low, high, depth, self.lines
            )
            finished[k] = int(roots)
            return is_complete(k)

        with sharing(self.thread_states):
            self.engine.thread_group.run(search)
        if not self._should_stop():
            self.engine.switch.release()
        best = max(range(len(self.thread_states)), key=lambda k: (is_complete(k), int(thread_values[k].max())))
        values[:] = thread_values[best]
        return finished[best]

    def _apply_iteration(self, values: np.ndarray) -> None:
        """Sort the moves by the values of a complete iteration; moves with only an upper bound stay behind the best."""
        order = (-values).argsort(kind="stable")
        self.squares, self.values = self.squares[order], values[order]

    def _bring_to_front(self, values: np.ndarray) -> None:
        """Put the best move of an incomplete iteration first: it failed high, or beats all that were searched before it."""
        order = np.argsort(np.arange(values.size) != values.argmax(), kind="stable")
        self.squares, self.values = self.squares[order], self.values[order]
        self.values[0] = values.max()

    def _search_to_end(self, levels: Sequence[int]) -> None:
        if not levels:
            return
        self.engine.solver.prepare_search(hints=self.engine.table, node_limit=self._nodes_left())
        for selectivity in levels:
            guess = round(int(self.values[0]) / UNIT)
            # a proven win or draw is useful even if there is no time for the score
            if selectivity == EXACT_LEVEL and _are_all_levels(levels) and guess >= 0 and self._needs_best_only():
                self._bring_to_front_by_name(self.engine.solver.winning_move(self.position, guess))
            search_level = self._best_move_at if self._needs_best_only() else self._all_moves_at
            if not (values := search_level(selectivity, guess)):
                return
            self._apply_values(values, selectivity)
            self._report()

    def _best_move_at(self, selectivity: int, guess: int) -> dict[str, int]:
        solution = self._solve_at(self.position, selectivity, guess)
        lost = solution.upper == -self.position.rules.square_count  # every move loses by the maximum score
        move = solution.move or (self._name(int(self.squares[0])) if lost or selectivity < EXACT_LEVEL else None)
        if solution.lower == solution.upper and move:
            self.pv = solution.pv
            return {move: solution.score}
        if solution.lower >= guess and solution.move:  # proven at this level to keep the value of the last one
            self._bring_to_front_by_name(solution.move)
        return {}

    def _all_moves_at(self, selectivity: int, guess: int) -> dict[str, int]:
        values = {}
        for sq in self.squares:
            move = self._name(int(sq))
            solution = self._solve_at(self.position.play(move), selectivity, -guess)
            if solution.lower != solution.upper:
                return {}
            values[move] = -solution.score
        return values

    def _solve_at(self, position: Position, selectivity: int, guess: int) -> Solution:
        solution = self.engine.solver.solve_at(position, selectivity, guess)
        self.solver_nodes = solution.nodes
        return solution

    def _nodes_left(self) -> int | None:
        return None if self.limits.nodes is None else max(0, self.limits.nodes - max(self._visited()))

    def _nodes(self) -> int:
        return sum(self._visited()) + self.solver_nodes

    def _visited(self) -> list[int]:
        visited: list[int] = self.thread_states["nodes"].tolist()
        return visited

    def _apply_values(self, values: dict[str, int], selectivity: int) -> None:
        names = [self._name(int(sq)) for sq in self.squares]
        best = max(values.values())
        scores = np.array([values.get(name, best) for name in names], np.int64) * UNIT
        order = np.argsort([(-values[name] if name in values else 1000) for name in names], kind="stable")
        self.squares, self.values = self.squares[order], scores[order]
        self.depth, self.confidence = self.position.empties, SELECTIVITIES[selectivity].confidence

    def _bring_to_front_by_name(self, move: str | None) -> None:
        if move not in (None, self._name(int(self.squares[0]))):
            self.pv = ()
            self.squares = np.array(sorted(self.squares, key=lambda sq: self._name(int(sq)) != move), np.int64)

    def _after_pass(self) -> SearchResult:
        after = self.position.play(PASS_NAME)
        passed = Search(self.engine, after, self.limits, self.multi_pv, keep_estimates=self.keep_estimates).run()
        moves = (MoveValue(PASS_NAME, -passed.value),) if self.multi_pv > 1 else ()
        line, value = (PASS_NAME, *passed.pv), -passed.value
        return replace(passed, move=PASS_NAME, value=value, pv=line, seconds=self.timer.elapsed(), moves=moves)

    # --- the result -------------------------------------------------------------------------------

    def _report(self) -> None:
        if self.on_iteration is not None:
            self.on_iteration(self._best_result())

    def _best_result(self) -> SearchResult:
        return self._result(self._name(int(self.squares[0])), self.values[0] / UNIT)

    def _name(self, sq: int) -> str:
        return self.position.rules.name_of(self.position.rules.action_of(sq))

    def _result(self, move: str | None, value: float) -> SearchResult:
        listed = list(zip(self.squares, self.values, strict=True))[: self.multi_pv] if self.multi_pv > 1 else []
        moves = tuple(MoveValue(self._name(int(sq)), float(v) / UNIT) for sq, v in listed)
        line = self.pv or (self._principal_variation() if move else ())
        return SearchResult(
            move, float(value), self.depth, self.confidence, line, self._nodes(), self.timer.elapsed(), moves
        )

    def _principal_variation(self) -> tuple[str, ...]:
        line = np.empty(max(1, self.depth), np.int64)
        plies = midgame.table_pv(self.thread_states[:1], *self.boards, self.squares[0], line)
        return tuple(self._name(sq) if sq != NO_MOVE else PASS_NAME for sq in line[:plies].tolist())
