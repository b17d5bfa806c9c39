"""`Solver`: exact values of one position, of all its moves, or of arrays of positions on all cores."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from reversi_env import Position, ReversiError, Rules
from reversi_env.batch import checked_boards
from reversi_env.errors import check_integer, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.kernels.parallel import core_count
from reversi_env.rules import PASS_NAME, checked_rules
from search import evaluators
from search.engine.limits import check_game
from search.engine.probcut import EXACT_LEVEL, SELECTIVITIES, load_probcut
from search.engine.table import TranspositionTable
from search.engine.threads import (
    NO_NODE_LIMIT,
    ThreadGroup,
    attach_shallow_tables,
    checked_threads,
    make_thread_states,
    run_in_threads,
    sharing,
)
from search.engine.timer import StopSwitch
from search.evaluators.registry import Evaluator
from search.kernels import endgame, midgame

#: Positions that a thread of `solve_batch` takes at a time.
BATCH_CHUNK = 64
#: Minimum empties at which the first selectivity level is searched before the exact one, and at which LONG_LEVELS are searched
#: (trials: docs/lab/search.md).
SELECTIVE_EMPTIES, LONG_EMPTIES = 16, 24
LONG_LEVELS = (0, 2, 4, EXACT_LEVEL)
#: Table of a solver's own midgame searches, in MiB.
ESTIMATE_TABLE_MIB = 16
#: Table of each `solve_batch` thread, in MiB: small enough for the processor's cache.
BATCH_TABLE_MIB = 1.0
#: Maximum empties of a position that is solved on a GPU (`search.gpu.endgame`).
MAX_GPU_EMPTIES = 16
#: Maximum empties of a position that is solved for a label or a regret, by board size. One core takes about a minute,
#: in the reversed game several (8x8, 24 empties, table of `solve_batch`: more than 600 million nodes).
MAX_SOLVED_EMPTIES = {4: 12, 6: 26, 8: 24}


@dataclass(frozen=True)
class Solution:
    """A solved position, seen from the side to move.

    ``score``: the value in discs under perfect play (empties to the winner; positive: the side to move wins; for
    ``wld`` only its sign). ``move`` and ``pv``: a best move and line by names; ``move`` is None when the game is over.
    ``lower`` and ``upper`` differ only after a stop or at the node limit. ``pv`` may then be incomplete; if it is empty,
    ``move`` is not proven to be best. ``confidence`` in per cent is below 100 after a selective search.
    """

    score: int
    move: str | None
    pv: tuple[str, ...]
    nodes: int
    seconds: float
    lower: int
    upper: int
    confidence: int = 100

    @property
    def proven(self) -> bool:
        return self.lower >= self.upper and self.confidence == 100


class Solver:
    """Solves positions of one board size and variant exactly, and keeps its transposition table between them.

    *threads* share the table. An *evaluator* orders the moves: a network reduces the nodes to a fifth, and values do not
    depend on it. If it has ProbCut coefficients for searches to the end (`search.engine.probcut`), a *selective* solver uses them
    for a first guess of value and moves. `stop` and `bounds` may be called from any thread. One position is solved at a time: a
    second call waits for the first.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        threads: int = 1,
        table: TranspositionTable | None = None,
        evaluator: Evaluator | str | None = None,
        selective: bool = True,
    ) -> None:
        self.rules = checked_rules(rules)
        self.table = table or TranspositionTable()
        self.thread_states = make_thread_states(self.rules, checked_threads(threads))
        self._evaluator = None if evaluator is None else evaluators.get_evaluator(evaluator)
        if self._evaluator is None:
            self._nets = np.zeros(1, endgame.NO_EVALUATOR)
        else:
            self._nets = self._evaluator.record(self.rules)
            self.thread_states["rank_empties"] = endgame.RANK_EMPTIES
            if selective:
                load_probcut(self.thread_states, self._evaluator, self.rules)
        self._shallow_tables = attach_shallow_tables(self.thread_states)
        self._window = -self.rules.square_count, self.rules.square_count
        #: Table of ProbCut's shallow searches, unless the caller passes *hints*.
        self._estimates: TranspositionTable | None = None
        self.switch = StopSwitch(self.thread_states)
        self._thread_group = ThreadGroup(self.thread_states, self.switch)
        self._one_at_a_time = threading.Lock()

    def solve(
        self,
        position: Position,
        *,
        wld: bool = False,
        guess: int | None = None,
        window: tuple[int, int] | None = None,
        node_limit: int | None = None,
    ) -> Solution:
        """Solve *position* and return its value and a best line.

        ``wld=True`` solves for win, loss or draw only. MTD(f) begins at *guess*, an estimate of the value. *window* is a range
        known to contain the value (if it does not, the nearer end may be returned). With *node_limit* (per thread) the bounds
        may not meet.
        """
        with self._one_at_a_time:
            self.switch.withdraw()
            return self._solve(position, wld, guess, window, node_limit)

    def narrow(self, position: Position, window: tuple[int, int], guess: int | None = None) -> tuple[int, int]:
        """Return proven bounds of the value, which meet if it is inside *window*; a window of two discs tests one bound.

        No best line is searched for, which makes this faster than `solve`.
        """
        check_game(position, self.rules)
        low, high = self._checked_window(window, wld=False)
        most = self.rules.square_count
        with self._one_at_a_time:
            self.switch.withdraw()
            self.prepare_search()
            lower, upper = self._narrow_by_levels(position, low, high, guess)
        return lower if lower > low else -most, upper if upper < high else most

    @property
    def selective(self) -> bool:
        """Whether the evaluator has the ProbCut coefficients that the selectivity levels below the last need."""
        return bool(self.thread_states["end_depth"].any())

    def _solve(
        self,
        position: Position,
        wld: bool = False,
        guess: int | None = None,
        window: tuple[int, int] | None = None,
        node_limit: int | None = None,
    ) -> Solution:
        # `solve` and `solve_all_moves` withdraw an earlier stop; between the positions of one job it stays in force
        began, most = perf_counter(), self.rules.square_count
        check_game(position, self.rules)
        if guess is not None:
            check_integer("guess", guess, -(1 << 63))
            guess = max(-most, min(most, int(guess)))
        if node_limit is not None:
            check_integer("node_limit", node_limit, 0, (1 << 63) - 1)
        search_window = self._window = self._checked_window(window, wld)
        self.prepare_search(node_limit=node_limit)
        for selectivity in self.selectivity_levels(position):
            lower, upper = self._narrow_bounds(position, *search_window, guess, selectivity=selectivity)
            guess = lower
        if wld:
            lower, upper = int(np.sign(lower)), int(np.sign(upper))
        elif lower > upper:
            raise ReversiError(f"window {quoted(window)}: expected a range that the value lies in")
        pv: tuple[str, ...] = ()
        if lower == upper and not wld:
            pv = self._principal_variation(position, lower)
        elif lower == upper >= 0:  # any move that wins or draws
            pv = self._principal_variation(position, 2 * lower, max_plies=1)
        solution = self._solution(position, (lower, upper), pv, EXACT_LEVEL, began)
        move = solution.move or next(iter(position.legal_moves()), None)
        return replace(solution, move=move, pv=() if wld else pv)

    def selectivity_levels(self, position: Position) -> tuple[int, ...]:
        """Return the selectivity levels that solve *position* in the least time: each gives moves and a guess to the next."""
        if not self.selective or position.empties < SELECTIVE_EMPTIES:
            return (EXACT_LEVEL,)
        return LONG_LEVELS if position.empties >= LONG_EMPTIES else (0, EXACT_LEVEL)

    def solve_at(self, position: Position, selectivity: int, guess: int | None) -> Solution:
        """Solve at one selectivity level after `prepare_search`; the table keeps the results of lower levels."""
        began = perf_counter()
        most = self.rules.square_count
        lower, upper = self._narrow_bounds(position, -most, most, guess, selectivity=selectivity)
        if selectivity < EXACT_LEVEL and lower > upper:  # selective results may contradict each other
            upper = lower
        pv: tuple[str, ...] = ()
        if lower == upper and selectivity == EXACT_LEVEL:
            pv = self._principal_variation(position, lower)
        elif lower == upper:
            pv = _line(position, lambda position, plies: self._table_move(position))
        return self._solution(position, (lower, upper), pv, selectivity, began)

    def winning_move(self, position: Position, guess: int) -> str | None:
        """Return a move that is proven to win, or to draw if none wins; call `prepare_search` first.

        None means that all moves lose or that a limit was reached.
        """
        lower, upper = self._narrow_bounds(position, -2, 2, guess, selectivity=EXACT_LEVEL)
        line = self._principal_variation(position, lower, max_plies=1) if lower >= max(0, upper) else ()
        return line[0] if line else None

    def _solution(
        self, position: Position, bounds: tuple[int, int], pv: tuple[str, ...], selectivity: int, began: float
    ) -> Solution:
        move = pv[0] if pv else self._table_move(position)
        nodes, confidence = int(self.thread_states["nodes"].sum()), SELECTIVITIES[selectivity].confidence
        return Solution(bounds[0], move, pv, nodes, perf_counter() - began, *bounds, confidence)

    def best_move(self, position: Position, score: int | None = None) -> str | None:
        """Return a best move by name; after `stop` one without proof. *score* is the exact score of the position, if it is known.

        The score of the best move is not proven from above, and that of the others not from below. With a known score they need
        no search (docs/lab/solved.md).
        """
        most = self.rules.square_count
        with self._one_at_a_time:
            self.switch.withdraw()
            check_game(position, self.rules)
            self.prepare_search()
            if score is not None:
                self._narrow_by_levels(position, max(score - 2, -most), score, score)
                line = self._principal_variation(position, score, max_plies=1)
                return line[0] if line else self._table_move(position) or next(iter(position.legal_moves()), None)
            levels = self.selectivity_levels(position)
            score, _ = self._narrow_by_levels(position, -most, most, None, levels[:-1] or levels)
            score -= score % 2  # all scores are even
            move = self._table_move(position)
            return move if self._is_best(position, move, score) else self._solve(position, guess=score).move

    def _is_best(self, position: Position, move: str | None, score: int) -> bool:
        """Return whether *move* has at least this score and all others have at most this score, by null-window searches."""
        most = self.rules.square_count
        for name in sorted(position.legal_moves(), key=lambda name: name != move):
            low, high = (-score, min(most, 2 - score)) if name == move else (max(-most, -2 - score), -score)
            lower, upper = self._narrow_by_levels(position.play(name), low, high, -score)
            if upper > -score if name == move else lower < -score:
                return False
        return move is not None

    def _narrow_by_levels(
        self, position: Position, low: int, high: int, guess: int | None, levels: tuple[int, ...] = ()
    ) -> tuple[int, int]:
        lower, upper = low, high
        for selectivity in levels or self.selectivity_levels(position):
            lower, upper = self._narrow_bounds(position, low, high, guess, selectivity=selectivity)
            guess = lower
        return lower, upper

    def solve_all_moves(self, position: Position) -> dict[str, int]:
        """Return the exact value of every legal move by name, best first; after `stop` only of those proven before."""
        values: dict[str, int] = {}
        guess: int | None = None
        with self._one_at_a_time:
            self.switch.withdraw()
            for move in position.legal_moves():
                solution = self._solve(position.play(move), guess=None if guess is None else -guess)
                if solution.proven:
                    values[move] = -solution.score
                    guess = max(values.values())
        return dict(sorted(values.items(), key=lambda item: -item[1]))

    def load_kernels(self) -> None:
        nearly_over = Position.from_text("XO-".ljust(self.rules.square_count, "X"), rules=self.rules)
        solver = Solver(self.rules, table=TranspositionTable(0.001), evaluator=self._evaluator, selective=False)
        solver.solve(nearly_over)
        endgame.table_move(solver.thread_states, np.uint64(nearly_over.own), np.uint64(nearly_over.opp))
        self._register_negamax()

    def _register_negamax(self) -> None:
        if self.selective and not self.thread_states["negamax"][0]:
            midgame.register_negamax(self.thread_states, self._nets)

    def stop(self) -> None:
        """Make a running solver return as soon as it can; callable from any thread."""
        self.switch.request()

    def bounds(self) -> tuple[int, int, int]:
        """Return the proven bounds of the position that is being solved, and the nodes so far."""
        lower, upper = self._window
        if self.thread_states["selectivity"][0] == EXACT_LEVEL:
            lower, upper = int(self.thread_states["lower"].max()), int(self.thread_states["upper"].min())
        return lower, upper, int(self.thread_states["nodes"].sum())

    def clear(self) -> None:
        self.table.clear()
        if self._estimates:
            self._estimates.clear()

    def prepare_search(self, hints: TranspositionTable | None = None, node_limit: int | None = None) -> None:
        """Attach the tables. *hints* is a table of estimates whose best moves are tried first."""
        self._shallow_tables[:] = 0
        self.table.new_search()
        self.table.attach_endgame(
            self.thread_states, f"values at the end of {self.rules.size}x{self.rules.size} {self.rules.variant}"
        )
        self.switch.release()
        self.thread_states["nodes"] = 0
        self.thread_states["node_limit"] = NO_NODE_LIMIT if node_limit is None else node_limit
        self._register_negamax()
        if hints is None and self.selective:
            hints = self._estimates = self._estimates or TranspositionTable(ESTIMATE_TABLE_MIB)
            hints.new_search()
        if hints is None:
            self.thread_states["table"] = 0
        else:
            hints.attach(self.thread_states, "estimates")

    def _narrow_bounds(
        self, position: Position, lower: int, upper: int, guess: int | None, *, selectivity: int
    ) -> tuple[int, int]:
        thread_states, boards = self.thread_states, (np.uint64(position.own), np.uint64(position.opp))
        thread_states["lower"], thread_states["upper"] = lower, upper
        thread_states["selectivity"], thread_states["end_margin"] = selectivity, SELECTIVITIES[selectivity].margin
        start = guess if guess is not None else endgame.NO_GUESS if self.selective else 0
        if len(thread_states) == 1 or position.empties <= endgame.SHARE_EMPTIES + 2:
            endgame.solve_one(thread_states[:1], self._nets, *boards, start)
        else:
            self._narrow_bounds_in_parallel(boards, start)
        if selectivity == EXACT_LEVEL:
            return int(thread_states["lower"].max()), int(thread_states["upper"].min())
        # selective bounds may differ between threads: take those of the thread that completed its search
        ended = int(np.argmax(thread_states["lower"] >= thread_states["upper"]))
        return int(thread_states["lower"][ended]), int(thread_states["upper"][ended])

    def _narrow_bounds_in_parallel(self, boards: tuple[np.uint64, np.uint64], guess: int) -> None:
        thread_states = self.thread_states

        def run_mtdf(k: int) -> bool:
            endgame.solve_one(thread_states[k : k + 1], self._nets, *boards, guess)
            return bool(thread_states["lower"][k] >= thread_states["upper"][k])

        with sharing(thread_states):
            self._thread_group.run(run_mtdf)
        if int(thread_states["nodes"].max()) <= int(thread_states["node_limit"][0]):
            self.switch.release()

    def _principal_variation(self, position: Position, score: int, max_plies: int = 200) -> tuple[str, ...]:
        def best_move(position: Position, plies: int) -> str | None:
            if self.switch.requested or plies == max_plies:
                return None
            boards, value = (np.uint64(position.own), np.uint64(position.opp)), -score if plies % 2 else score
            sq = int(endgame.best_move_with_value(self.thread_states[:1], self._nets, *boards, value))
            return self._name_of(sq)

        return _line(position, best_move)

    def _checked_window(self, window: tuple[int, int] | None, wld: bool) -> tuple[int, int]:
        most = self.rules.square_count
        if window is None:
            return (-2, 2) if wld else (-most, most)
        try:
            lower, upper = window
            check_integer("lower bound", lower, -most, most)
            check_integer("upper bound", upper, lower, most)
        except (TypeError, ValueError):
            raise ReversiError(
                f"window {quoted(window)}: expected two ascending integers from {-most} to {most}"
            ) from None
        return lower - lower % 2, upper + upper % 2  # all scores are even

    def _table_move(self, position: Position) -> str | None:
        moves = position.legal_moves()
        if len(moves) < 2:
            return moves[0] if moves else None
        sq = int(endgame.table_move(self.thread_states[:1], np.uint64(position.own), np.uint64(position.opp)))
        return self._name_of(sq)

    def _name_of(self, sq: int) -> str | None:
        return None if sq == PASS_SQUARE else self.rules.name_of(self.rules.action_of(sq))


def solve(
    position: Position,
    *,
    threads: int = 1,
    wld: bool = False,
    table: TranspositionTable | None = None,
    evaluator: Evaluator | str | None = None,
) -> Solution:
    """Return the exact value of *position* and a best line; *wld*: win, loss or draw only; *evaluator*: for move ordering."""
    return Solver(position.rules, threads=threads, table=table, evaluator=evaluator).solve(position, wld=wld)


def solve_all_moves(position: Position, *, threads: int = 1, table: TranspositionTable | None = None) -> dict[str, int]:
    """Return the exact value of every legal move by name, best first."""
    return Solver(position.rules, threads=threads, table=table).solve_all_moves(position)


def solve_batch(
    own: np.ndarray,
    opp: np.ndarray,
    rules: Rules | None = None,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """Return exact scores (int8, side to move) of arrays of positions, solved on all cores with the GIL released.

    *progress* is called with the number of positions solved so far. *threads* is by default the number of cores. If *progress*
    raises, or on Ctrl-C, the solving ends.
    """
    rules = checked_rules(rules)
    own, opp = checked_boards(own, opp, rules)
    scores = np.zeros(own.size, np.int8)
    count = checked_threads(core_count() if threads is None else threads)
    thread_states = make_thread_states(rules, count)
    _shallow_tables = attach_shallow_tables(thread_states)  # stays referenced: the records have its address
    tables = [TranspositionTable(BATCH_TABLE_MIB) for _ in range(count)]
    for k, table in enumerate(tables):
        table.attach_endgame(thread_states[k : k + 1], "exact values")
    nets = np.zeros(1, endgame.NO_EVALUATOR)

    def solve_chunk(k: int, start: int) -> int:
        rows = slice(start, min(start + BATCH_CHUNK, own.size))
        endgame.solve_many(thread_states[k : k + 1], nets, own[rows], opp[rows], scores[rows])
        return rows.stop - rows.start

    run_in_threads(solve_chunk, range(0, own.size, BATCH_CHUNK), thread_states, progress)
    return scores


def _line(position: Position, best_move: Callable[[Position, int], str | None]) -> tuple[str, ...]:
    """Return the best moves and passes from *position* on, until *best_move* of a position and the plies before it is None."""
    names: list[str] = []
    while not position.is_over():
        move = PASS_NAME if position.must_pass() else best_move(position, len(names))
        if move is None:
            break
        names.append(move)
        position = position.play(move)
    return tuple(names)
