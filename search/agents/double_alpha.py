"""`DoubleAlpha`: the search of report 002, Double-Alpha Maximax with iterative deepening under the report's time control.

>>> maximax = DoubleAlpha("sixteen-weight", Rules(4, "reversed"))
>>> result = maximax.search(Position.initial(maximax.rules), Limits(depth=12))
>>> result.value  # Black wins; all squares stand for a proven win
16.0
"""

import math
import threading
from typing import Any

import numpy as np

from reversi_env import Position, Rules
from reversi_env.rules import PASS_NAME, checked_rules
from search.agents.searching import SearchAgent, spec_limits
from search.agents.simple import REPORT_002_EVALUATOR
from search.engine.limits import Limits, MoveValue, SearchResult, check_game
from search.engine.threads import NO_NODE_LIMIT
from search.engine.timer import SearchTimer, StopLatency, StopSwitch
from search.evaluators.registry import Evaluator, get_evaluator
from search.kernels.double_alpha import DOUBLE_ALPHA_STATE, ENTRY, search_position

#: Depth of the first iteration, in plies.
FIRST_DEPTH = 2
#: Share of the time that is used: the report's q. It only says that a fifth of the time was left over.
USABLE_SHARE = 0.8
#: Default number of table entries, the report's M. It gives no number; its program had 100 MB.
CAPACITY = 1_000_000
#: Legal moves by round, from round 4 on, by size: means of 20,000 random games, ``reversi experiment breadth``.
BREADTHS = {
    8: (
        *(4.0, 3.0, 4.7, 4.4, 5.9, 5.8, 6.7, 7.0, 7.6, 7.9, 8.4, 8.7, 9.1, 9.5, 9.7, 10.1, 10.3, 10.7, 10.7, 11.1),
        *(11.1, 11.5, 11.5, 11.7, 11.7, 11.9, 11.8, 12.0, 11.9, 12.0, 11.9, 11.9, 11.8, 11.7, 11.5, 11.5, 11.2, 11.1),
        *(10.8, 10.6, 10.3, 10.1, 9.7, 9.4, 9.0, 8.7, 8.2, 7.9, 7.4, 6.9, 6.4, 5.9, 5.3, 4.8, 4.1, 3.6, 2.9, 2.2),
        *(1.5, 0.8),
    ),
    6: (
        *(4.0, 3.0, 4.7, 4.4, 5.7, 5.6, 6.3, 6.3, 6.7, 6.8, 7.0, 7.1, 7.1, 7.1, 7.0, 7.1, 6.9, 6.8, 6.6, 6.4),
        *(6.1, 5.9, 5.5, 5.2, 4.7, 4.3, 3.7, 3.3, 2.7, 2.1, 1.4, 0.8),
    ),
    4: (4.0, 3.0, 3.7, 2.9, 3.4, 3.0, 2.8, 2.6, 2.1, 1.7, 1.2, 0.8),
}


def capacity_within(megabytes: float) -> int:
    """Return the maximum entries of a table of at most *megabytes* MiB. Half of its slots, a power of two, stay empty."""
    slots = int(megabytes * 2**20) // ENTRY.itemsize
    return 1 << slots.bit_length() - 2 if slots > 1 else 0


def average_breadth(position: Position, depth: int) -> float:
    """Return the mean breadth of the rounds that a search of *depth* plies from *position* reaches."""
    first = position.round - 4
    return float(np.mean(BREADTHS[position.rules.size][first : first + depth]))


def begins_iteration(used: float, soft: float, hard: float, breadth: float, best_changed: bool) -> bool:
    """Return whether another iteration begins after *used* seconds, or nodes, of a *hard* limit.

    It is expected to take *breadth* times as long as all before it, and must fit into the *soft* limit. If the best move changed in
    the last iteration, only the hard limit counts. `USABLE_SHARE` of both limits is used.
    """
    return used < USABLE_SHARE * hard and (best_changed or used * breadth < USABLE_SHARE * soft)


class DoubleAlpha:
    """Double-Alpha Maximax for positions of one game, with a table of *capacity* entries that is cleared before every search.

    `stop` may be called from any thread; the search then returns the result of its last complete iteration.
    """

    def __init__(self, evaluator: Evaluator | str, rules: Rules | None = None, *, capacity: int = CAPACITY) -> None:
        self.rules, self.evaluator = checked_rules(rules), get_evaluator(evaluator)
        self._nets = self.evaluator.record(self.rules)
        self._entries = np.zeros(1 << (2 * max(capacity, 1) - 1).bit_length(), ENTRY)
        self._thread_states = np.zeros(1, DOUBLE_ALPHA_STATE)
        self._thread_states["playable"], self._thread_states["square_count"] = (
            self.rules.playable,
            self.rules.square_count,
        )
        self._thread_states["sign"], self._thread_states["capacity"] = self.rules.sign, capacity
        self._switch, self._stop_latency = StopSwitch(self._thread_states), StopLatency()
        self._one_at_a_time = threading.Lock()
        self.search(Position.initial(self.rules), Limits(depth=FIRST_DEPTH))  # loads or compiles the kernels

    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        tie_rng: np.random.Generator | None = None,
    ) -> SearchResult:
        """Return the best move within *limits* (default: one second), and the values of the *multi_pv* best moves if more than one.

        A proven win has the value of all squares: the search finds who wins, not by how much. A node limit works as a clock that
        counts nodes. The first iteration is always completed. Of equally promising moves the first on the board is searched
        first, with *tie_rng* a random one. With *multi_pv* above 1 each move is searched with open bounds.
        """
        check_game(position, self.rules)
        if position.is_over():
            return SearchResult(None, float(position.score()), 0, 100, (), 0, 0.0)
        with self._one_at_a_time, self.evaluator.during_search(self.stop):
            self._switch.withdraw()
            self._begin(tie_rng)
            return self._deepen(position, limits or Limits(time=1.0), multi_pv)

    def stop(self) -> None:
        self._switch.request()

    def _begin(self, tie_rng: np.random.Generator | None) -> None:
        for counter in ("nodes", "stored"):
            self._thread_states[counter] = 0
        self._thread_states["search"] += 1
        self._thread_states["node_limit"] = NO_NODE_LIMIT
        self._thread_states["tie_order"] = np.arange(64) if tie_rng is None else tie_rng.permutation(64)

    def _deepen(self, position: Position, limits: Limits, multi_pv: int) -> SearchResult:
        usable = None if limits.time is None else USABLE_SHARE * limits.time
        timer = SearchTimer(Limits(time=usable), self._stop_latency, lambda: math.inf, self.stop)
        deepest = min(limits.depth or position.empties, position.empties)
        depth, last_move = min(FIRST_DEPTH, deepest), None
        while (moves := self._iterate(position, depth, multi_pv)) is None:
            self._thread_states["stop"] = 0  # stopped before there is a move
        if limits.nodes is not None:
            self._thread_states["node_limit"] = int(USABLE_SHARE * limits.nodes)
        timer.start()
        try:
            while depth < deepest and self._goes_on(position, limits, timer, depth, moves[0], last_move):
                deeper = self._iterate(position, depth + 1, multi_pv)
                if deeper is None:
                    break
                last_move, moves, depth = moves[0].move, deeper, depth + 1
        finally:
            timer.end()
        best, nodes = moves[0], int(self._thread_states["nodes"][0])
        listed = tuple(moves[:multi_pv]) if multi_pv > 1 else ()
        return SearchResult(best.move, best.value, depth, 0, (best.move,), nodes, timer.elapsed(), listed)

    def _goes_on(
        self, position: Position, limits: Limits, timer: SearchTimer, depth: int, best: MoveValue, last_move: str | None
    ) -> bool:
        is_proven = best.value == self.rules.square_count or not self._thread_states["estimates"][0]
        if is_proven or self._switch.requested:
            return False
        breadth, changed = average_breadth(position, depth + 1), best.move != last_move
        nodes, in_time = limits.nodes or math.inf, limits.time or math.inf
        return begins_iteration(
            timer.elapsed(), limits.soft or in_time, in_time, breadth, changed
        ) and begins_iteration(int(self._thread_states["nodes"][0]), nodes, nodes, breadth, changed)

    def _iterate(self, position: Position, depth: int, multi_pv: int) -> list[MoveValue] | None:
        """Return the best move with its value, or all moves, best first; None if stopped before the end."""
        self._thread_states["estimates"] = 0
        rules, must_pass = self.rules, position.must_pass()
        if multi_pv == 1 or must_pass:
            value = self._value(position, depth)
            best = int(self._thread_states["best"][0, position.empties])
            moves = [MoveValue(PASS_NAME if must_pass else rules.name_of(rules.action_of(best)), value)]
        else:
            after = [(rules.name_of(action), position.play(action)) for action in position.legal_actions()]
            moves = [MoveValue(name, -self._value(child, depth - 1)) for name, child in after]
            moves.sort(key=lambda entry: -entry.value)
        return None if self._thread_states["stop"][0] else moves

    def _value(self, position: Position, depth: int) -> float:
        boards = np.uint64(position.own), np.uint64(position.opp)
        return float(
            search_position(self._thread_states, self._nets, self._entries, *boards, int(position.turn), depth)
        )


class DoubleAlphaAgent(SearchAgent):
    """Double-Alpha Maximax with an evaluator and the time control of report 002; its table has at most *table* MiB.

    `engine` is an alpha-beta engine with the same evaluator, for analysis only.
    """

    ponders = False

    def __init__(self, evaluator: str, limits: Limits, table: float = 64, **options: Any) -> None:
        super().__init__(evaluator, limits, table=table, **options)
        self._searchers: dict[tuple[int, str], DoubleAlpha] = {}

    def _searcher(self, rules: Rules) -> DoubleAlpha:
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            self._searchers[key] = DoubleAlpha(self.evaluator, rules, capacity=capacity_within(self._table))
        return self._searchers[key]

    def prepare(self, rules: Rules) -> None:
        self._searcher(rules)

    def stop(self) -> None:
        super().stop()
        for searcher in list(self._searchers.values()):
            searcher.stop()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_searchers": {}}


def double_alpha_agent(
    *,
    evaluator: str = REPORT_002_EVALUATOR,
    depth: int | None = None,
    time: float | None = None,
    nodes: int | None = None,
    **options: Any,
) -> DoubleAlphaAgent:
    """Return the agent ``double-alpha`` by the options of a spec."""
    return DoubleAlphaAgent(evaluator, spec_limits(depth, time, nodes), **options)
