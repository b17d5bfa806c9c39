"""`Engine`: the tables, threads and ProbCut parameters of searches with one evaluator; `search.engine.deepening` runs one search.

Timers are in Python (`search.engine.timer`); kernels count nodes and check a stop flag. On one thread, a fixed depth or node limit
gives the same result every time from the same state of the table.
"""

from collections.abc import Callable, Sequence

import numpy as np

from reversi_env import Position, Rules
from reversi_env.rules import checked_rules
from search.engine.deepening import Search
from search.engine.limits import Limits, SearchResult
from search.engine.probcut import END_FIELDS, MARGIN, PROBCUT_FIELDS, checked_margin, load_probcut
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
from search.engine.threads import ThreadGroup, checked_threads, make_thread_states
from search.engine.timer import StopLatency, StopSwitch
from search.evaluators.base import Evaluator
from search.evaluators.registry import get_evaluator
from search.kernels.thread_state import SHARING_THREAD_STATE

#: Minimum depth at which threads defer positions that another one is searching.
SHARE_DEPTH = 5


class Engine:
    """Searches positions of one board size and variant with one evaluator, and keeps its two tables from move to move.

    ``table`` holds midgame estimates, and ``solver.table`` holds values of searches to the end. Each table takes at most
    *megabytes* MiB. *threads* threads search together on the same tables. `stop` may be called from any thread. The search then
    returns its best move so far. One position is searched at a time: a second call, also of the engine's ``solver``, waits until
    the first call returns. An engine that is not *selective* ignores the ProbCut coefficients of its evaluator.
    """

    def __init__(
        self,
        evaluator: Evaluator | str,
        rules: Rules | None = None,
        *,
        threads: int = 1,
        megabytes: float = 64,
        selective: bool = True,
        preload: bool = True,
    ) -> None:
        self.rules = checked_rules(rules)
        self.evaluator = get_evaluator(evaluator)
        self.nets = self.evaluator.record(self.rules)
        self.table = TranspositionTable(megabytes, grows=True)
        if checked_threads(threads) == 1:
            self.thread_states = make_thread_states(self.rules)
        else:
            self.thread_states = make_thread_states(self.rules, threads, SHARING_THREAD_STATE)
            self.thread_states["share_depth"] = SHARE_DEPTH
        order = self.evaluator if self.evaluator.orders_endgames else None
        self.solver = Solver(
            self.rules, threads=threads, table=TranspositionTable(megabytes), evaluator=order, selective=selective
        )
        self.switch = StopSwitch(self.thread_states)
        self.thread_group = ThreadGroup(self.thread_states, self.switch)
        self._one_at_a_time = self.solver._one_at_a_time  # a search uses the solver's records too
        self.stop_latency = StopLatency()
        #: ProbCut's margin in standard deviations; None: `margin_for` chooses it by the limits.
        self.margin: float | None = None
        #: The smallest margin of the searches whose results are in the table; 0: none was selective.
        self._pruned_at = 0.0
        if selective:
            load_probcut(self.thread_states, self.evaluator, self.rules)
        if preload:
            self.load_search_kernels()
            self.solver.load_kernels()

    def search(
        self,
        position: Position,
        limits: Limits | None = None,
        *,
        multi_pv: int = 1,
        tie_rng: np.random.Generator | None = None,
        keep_estimates: bool = False,
        exclude: Sequence[str] = (),
        on_iteration: Callable[[SearchResult], None] | None = None,
    ) -> SearchResult:
        """Search within *limits* (default: one second); *multi_pv* is the number of best moves that get values.

        The moves to *exclude*, by name, are not searched. *on_iteration* is called with the result of every completed iteration.

        All listed values have the depth of the result. Table entries of deeper searches would give some moves values of another
        depth, so a multi-PV search starts with an empty table. Set *keep_estimates* only if the table has only results of shallower
        searches of the same position.

        Of moves with equal values the first one searched is played; with *tie_rng* a random one, except in the endgame search.
        """
        with self._one_at_a_time, self.evaluator.during_search(self.stop):
            self.switch.withdraw()
            self.solver.switch.withdraw()
            options = (multi_pv, tie_rng, keep_estimates, exclude, on_iteration)
            return Search(self, position, limits or Limits(time=1.0), *options).run()

    def selectivity_levels(self, position: Position, limits: Limits, *, multi_pv: int = 1) -> Sequence[int]:
        """Return the selectivity levels at which `search` would search to the end; none if it would not."""
        return Search(self, position, limits, multi_pv).selectivity_levels()

    def stop(self) -> None:
        """Make a running search return as soon as it can; callable from any thread."""
        self.switch.request()
        self.solver.stop()

    def clear(self) -> None:
        """Clear the tables after the end of a running search."""
        with self._one_at_a_time:
            self.clear_estimates()
            self.solver.clear()

    def clear_estimates(self) -> None:
        self.table.clear()
        self._pruned_at = 0.0

    def set_probcut(self, margin: float, coefficients: np.ndarray | None = None) -> None:
        """Prune by ProbCut at *margin* standard deviations (0: never), with any limits.

        The coefficients are those of `search.engine.probcut_fit.fit`, or the evaluator's own. By default an engine prunes if its
        evaluator has coefficients and time or nodes are limited, but not the depth.
        """
        checked_margin(margin)
        with self._one_at_a_time:
            if coefficients is not None:
                if self._pruned_at:
                    self.clear_estimates()
                for field in PROBCUT_FIELDS:
                    self.thread_states[field] = coefficients[field]
                for field in END_FIELDS if self.evaluator.orders_endgames else ():
                    self.solver.thread_states[field] = coefficients[field]
            self.margin = checked_margin(margin, self.thread_states["probcut_depth"].any())

    def margin_for(self, limits: Limits) -> float:
        """Return the ProbCut margin of a search with these limits."""
        if self.margin is not None:
            return self.margin
        budget = limits.time is not None or limits.nodes is not None
        return MARGIN if budget and limits.depth is None and self.thread_states["probcut_depth"].any() else 0.0

    def set_active_margin(self, margin: float) -> None:
        """Prune with *margin*. If the table has results of searches that pruned more, it is cleared first."""
        if self._pruned_at and not 0 < margin <= self._pruned_at:
            self.clear_estimates()
        self._pruned_at = margin or self._pruned_at
        self.thread_states["probcut_margin"] = margin

    def load_search_kernels(self) -> None:
        """Compile or load the kernels of the midgame search."""
        self.search(Position.initial(self.rules), Limits(depth=2, empties_exact=0))
        with self._one_at_a_time:
            self.table.load_kernels()
            self.clear_estimates()
