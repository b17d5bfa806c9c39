"""Labellers: what turns positions into scores, exactly or by search."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reversi_env import ReversiError, Rules
from reversi_env.errors import shown
from search import agents
from search.batch import DEEPEST, HasRecord, search_batch
from search.engine import SOLVE_BEYOND_DEPTH
from search.solver import solve_batch
from train.labels.options import LabelError
from train.labels.players import player_of

Kind = Literal["exact", "search"]
Scores = NDArray[np.float32]
#: Called with the number of positions labelled so far.
Counter = Callable[[int], None]
DEVICES = ("cpu", "cuda")


def _nobody(done: int) -> None:
    pass


class Labeller(Protocol):
    """Gives positions their scores."""

    @property
    def kind(self) -> Kind:
        """What its scores are."""
        ...

    @property
    def depth(self) -> int | None:
        """Plies searched; None: to the end of the game."""
        ...

    def label(self, own: np.ndarray, opp: np.ndarray, *, progress: Counter = _nobody) -> Scores:
        """Scores in discs for the side to move under the variant's objective."""
        ...


@dataclass(frozen=True)
class ExactLabeller:
    """Perfect play to the end, empties to the winner, by the solver on all cores or on a GPU."""

    rules: Rules
    device: str = "cpu"
    threads: int | None = None
    kind: Kind = "exact"
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise LabelError(f"device {shown(self.device)}: expected one of {', '.join(DEVICES)}")

    def label(self, own: np.ndarray, opp: np.ndarray, *, progress: Counter = _nobody) -> Scores:
        """Exact scores."""
        if self.device == "cuda":
            return _solve_on_gpu(own, opp, self.rules, self.threads, progress)
        return solve_batch(own, opp, self.rules, threads=self.threads, progress=progress).astype(np.float32)


@dataclass(frozen=True)
class SearchLabeller:
    """Alpha-beta to a fixed depth over an evaluator, given by its name or as it is: a network, for instance."""

    rules: Rules
    evaluator: HasRecord | str
    depth: int | None
    threads: int | None = None
    kind: Kind = "search"

    def label(self, own: np.ndarray, opp: np.ndarray, *, progress: Counter = _nobody) -> Scores:
        """Values after *depth* plies; exact where the game ends within them."""
        evaluator = player_of(self.evaluator) if isinstance(self.evaluator, str) else self.evaluator
        return search_batch(own, opp, evaluator, self.rules, self.depth or 0, threads=self.threads, progress=progress)


@dataclass(frozen=True)
class Plan:
    """Which labeller is for which positions: those with at most ``exact`` empties are solved, the others searched."""

    exact: int
    evaluator: str | None = None
    depth: int = 0


def labeller_plan(spec: str) -> Plan:
    """Read ``exact`` or ``evaluator[:depth=4,exact=10,weights=FILE]``; anything else raises and says what was expected."""
    if spec == "exact":
        return Plan(exact=64)
    name, options = agents.parse_spec(spec)
    if "weights" in options:
        name = f"{name}:weights={options.pop('weights')}"
    player_of(name)
    for key in options:
        if key not in ("depth", "exact"):
            raise LabelError(f"option {shown(key)} of labeller {shown(spec)}: expected depth, exact or weights")
    numbers = {key: _number(spec, key, text) for key, text in options.items()}
    depth = numbers.get("depth", agents.DEFAULT_DEPTH)
    return Plan(numbers.get("exact", depth + SOLVE_BEYOND_DEPTH), name, depth)


def _number(spec: str, key: str, text: str) -> int:
    least, most = (1, DEEPEST) if key == "depth" else (0, 64)
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise LabelError(
            f"{key}={shown(text)} of labeller {shown(spec)}: expected a whole number from {least} to {most}"
        )
    return int(text)


def _solve_on_gpu(own: np.ndarray, opp: np.ndarray, rules: Rules, threads: int | None, progress: Counter) -> Scores:
    """The GPU solver's scores, or one clear error where there is no GPU to use."""
    try:
        solver = importlib.import_module("search.gpu.solver")  # needs torch
        return np.asarray(solver.solve_batch_cuda(own, opp, rules, threads=threads, progress=progress), np.float32)
    except ReversiError:
        raise
    except Exception as error:  # numba's CUDA support fails in many ways, and late
        reason = str(error).strip().splitlines()
        raise LabelError(
            f"device cuda cannot be used ({reason[0] if reason else type(error).__name__}): "
            f"expected a CUDA GPU and the package's 'cuda' extra, or device cpu"
        ) from error
