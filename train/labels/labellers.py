"""Labellers: scores of positions, exact, by search, or by a residual network."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reversi_env import ReversiError, Rules
from reversi_env.errors import TrainError, quoted
from reversi_env.options import Options, option
from search import evaluators
from search.agents.searching import DEFAULT_DEPTH
from search.agents.spec import AgentSpec, make_agent
from search.engine.batch import MAX_DEPTH, search_batch
from search.engine.deepening import SOLVE_BEYOND_DEPTH
from search.engine.solver import MAX_GPU_EMPTIES, MAX_SOLVED_EMPTIES, solve_batch

Scores = NDArray[np.float32]
LabellerOptions = TypeVar("LabellerOptions", bound=Options)
#: Called with the number of positions labelled so far.
Counter = Callable[[int], None]
DEVICES = ("cpu", "cuda")
#: Name of the labeller that is a residual network, also the name of its agent, and its batch size.
RESIDUAL, RESIDUAL_ROWS = "zero", 1 << 14


@dataclass(frozen=True)
class LabellerPlan:
    """Positions with at most ``exact`` empties are solved; the others are searched, or valued by a residual network.

    ``depth``: plies of the search with ``evaluator``, 0 for the static values of a residual network. ``mean``: average of this
    many searches, the last of them to ``depth``, each a ply deeper than the one before. Odd and even depths err in opposite
    directions, and a bootstrap would accumulate the error. ``probcut``: margin of selective searches in standard deviations
    (`search.engine.batch.search_batch`), 0 for full ones.
    """

    exact: int
    evaluator: str | None = None
    depth: int = 0
    mean: int = 1
    probcut: float = 0.0

    @property
    def solved(self) -> int:
        """Maximum empties of a position that is solved, also by a search that reaches the end of every game."""
        return max(self.exact, self.depth)


def exact_scores(
    own: np.ndarray,
    opp: np.ndarray,
    rules: Rules,
    *,
    device: str = "cpu",
    threads: int | None = None,
    progress: Counter = lambda done: None,
) -> Scores:
    """Return the scores of perfect play, empty squares to the winner, by the solver on all cores or on a GPU."""
    check_device(device)
    if device == "cuda":
        return _solve_on_gpu(own, opp, rules, threads, progress)
    return solve_batch(own, opp, rules, threads=threads, progress=progress).astype(np.float32)


def check_device(device: str) -> None:
    if device not in DEVICES:
        raise TrainError(f"device {quoted(device)}: expected one of {', '.join(DEVICES)}")


def searched_scores(
    own: np.ndarray,
    opp: np.ndarray,
    rules: Rules,
    plan: LabellerPlan,
    *,
    threads: int | None = None,
    progress: Counter = lambda done: None,
) -> Scores:
    """Return the values of alpha-beta with the depth and evaluator of *plan*, exact where the game ends within it."""
    assert plan.evaluator is not None
    evaluator, count, total = evaluators.get_evaluator(plan.evaluator), len(own), np.zeros(len(own), np.float32)
    for number, plies in enumerate(range(plan.depth - plan.mean + 1, plan.depth + 1)):

        def report(done: int, before: int = number * count) -> None:
            progress((before + done) // plan.mean)  # a position is done when all its searches are

        total += search_batch(own, opp, evaluator, rules, plies, probcut=plan.probcut, threads=threads, progress=report)
    return total / np.float32(plan.mean)


def residual_scores(
    own: np.ndarray,
    opp: np.ndarray,
    rules: Rules,
    plan: LabellerPlan,
    *,
    device: str = "cpu",
    progress: Counter = lambda done: None,
) -> Scores:
    """Return the values of the residual network of *plan*, each the mean over the eight symmetric images of a position."""
    assert plan.evaluator is not None
    evaluator, scores = make_agent(plan.evaluator).evaluator(rules, device), np.zeros(len(own), np.float32)  # type: ignore[attr-defined]
    for start in range(0, len(own), RESIDUAL_ROWS):
        rows = slice(start, start + RESIDUAL_ROWS)
        scores[rows] = evaluator.static_values(own[rows], opp[rows], rules)
        progress(min(len(own), start + RESIDUAL_ROWS))
    return scores


def check_solvable(empties: int, rules: Rules, labeller: str, remedy: str = "", *, device: str = "cpu") -> None:
    """Raise if positions with this many empties cannot be solved on a device; *remedy* is added to the message."""
    maximum, where = MAX_SOLVED_EMPTIES[rules.size], f"the {rules.size}x{rules.size} board"
    if device == "cuda" and maximum > MAX_GPU_EMPTIES:
        maximum, where = MAX_GPU_EMPTIES, "a GPU"
    if empties > maximum:
        raise TrainError(
            f"positions with {empties} empties to be solved by labeller {quoted(labeller)}: "
            f"expected at most {maximum} on {where}{remedy}"
        )


@dataclass(frozen=True)
class _SearchLabeller(Options):
    depth: int = option(DEFAULT_DEPTH, "Search depth in plies.", low=1, high=MAX_DEPTH)
    mean: int = option(1, "Number of searches whose mean is the label.", low=1, high=8)
    exact: int | None = option(None, "Maximum empties of a position that is solved.", low=0, high=64)
    probcut: float = option(0.0, "ProbCut margin in standard deviations; 0 for none.", low=0, high=10)
    weights: str | None = option(None, "Weight file.")


@dataclass(frozen=True)
class _ResidualLabeller(Options):
    exact: int = option(SOLVE_BEYOND_DEPTH, "Maximum empties of a position that is solved.", low=0, high=64)
    weights: str | None = option(None, "Weight file.")


def labeller_plan(labeller: AgentSpec | str) -> LabellerPlan:
    """Parse ``exact``, ``evaluator[:depth=4,mean=2,exact=10,probcut=1,weights=FILE]`` or ``zero[:FILE,exact=10]``."""
    name = str(labeller).partition(":")[0]
    if name == RESIDUAL:
        spec = AgentSpec.parse(labeller)
        return LabellerPlan(_labeller_options(_ResidualLabeller, spec).exact, spec.evaluator)
    if name != "exact" and not evaluators.exists(name):
        evaluators.get_evaluator(name)  # raises an error that lists the evaluators
    spec = AgentSpec.parse(labeller)
    if str(spec) == "exact":
        return LabellerPlan(exact=64)
    options = _labeller_options(_SearchLabeller, spec)
    depth, mean = options.depth, options.mean
    if mean > depth:
        raise TrainError(f"mean={mean} of labeller {quoted(str(spec))}: expected no more than its depth, {depth}")
    exact = depth + SOLVE_BEYOND_DEPTH if options.exact is None else options.exact
    return LabellerPlan(exact, spec.evaluator, depth, mean, options.probcut)


def check_probcut(plan: LabellerPlan, rules: Rules) -> None:
    """Raise for selective searches with an evaluator without a ProbCut model."""
    if plan.probcut and not evaluators.get_evaluator(str(plan.evaluator)).probcut(rules):
        raise TrainError(
            f"probcut={plan.probcut:g} with evaluator {quoted(plan.evaluator)} on the {rules.size}x{rules.size} board: "
            f"expected 0, or weights that `reversi train probcut` wrote"
        )


def _labeller_options(kind: type[LabellerOptions], spec: AgentSpec) -> LabellerOptions:
    try:
        return kind.from_texts(spec.options)
    except TrainError as error:
        raise TrainError(f"labeller {quoted(str(spec))}: {error}") from None


def _solve_on_gpu(own: np.ndarray, opp: np.ndarray, rules: Rules, threads: int | None, progress: Counter) -> Scores:
    """Return the GPU solver's scores, or raise a `ReversiError` where no GPU can be used."""
    try:
        solver = importlib.import_module("search.gpu.solver")  # needs torch
        return np.asarray(solver.solve_batch_cuda(own, opp, rules, threads=threads, progress=progress), np.float32)
    except ReversiError:
        raise
    except Exception as error:  # numba's CUDA support fails in many ways, and late
        reason = str(error).strip().splitlines()
        raise TrainError(
            f"device cuda cannot be used ({reason[0] if reason else type(error).__name__}): "
            f"expected a CUDA GPU and the package's 'cuda' extra, or device cpu"
        ) from error
