"""Options of building and checking an opening book; the help of the commands reads them, so imports are light."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reversi_env.errors import TrainError, quoted
from reversi_env.options import GameOptions, option
from reversi_env.rules import Start

if TYPE_CHECKING:
    from search.evaluators.base import Evaluator

#: Plies by which the first search of a position, which excludes bad moves, is shallower; an even number.
FIRST_SEARCH_REDUCTION = 8


@dataclass(frozen=True)
class SearchOptions(GameOptions):
    """How the positions of a book are searched.

    A value is the mean of two searches, to ``depth`` and to one ply less, because searches of odd and of even depth err in
    opposite directions, and a book compares positions of different plies.
    """

    depth: int = option(14, "Search depth in plies; a value is the mean of it and one ply less.", low=1, high=40)
    evaluator: str = option("network", "Evaluator of the search.")

    def __post_init__(self) -> None:
        from search.agents.spec import AgentSpec

        super().__post_init__()
        for name in AgentSpec.parse(self.evaluator).options:
            if name != "weights":
                raise TrainError(f"option {quoted(name)} of evaluator {quoted(self.evaluator)}: expected weights alone")
        self.search_evaluator.record(self.rules)  # raises for a game without weights

    @property
    def search_evaluator(self) -> Evaluator:
        from search import evaluators
        from search.agents.spec import AgentSpec

        return evaluators.get_evaluator(AgentSpec.parse(self.evaluator).evaluator)

    @property
    def content_hashes(self) -> dict[str, str]:
        """A hash of the evaluator's weights."""
        evaluator = self.search_evaluator
        return {f"{evaluator.family}_sha256": evaluator.sha256(self.rules)}


@dataclass(frozen=True)
class BookOptions(SearchOptions):
    """The size of a book, the searches of its positions, and the order of expansion.

    ``margin``: a move that loses more discs is not in the book. Leaves are expanded by drop-out expansion: first the one to which
    the fewest moves lead, where each disc lost by either side counts as ``loss_plies`` more moves, at most ``batch`` at a time.
    """

    positions: int = option(75_000, "Approximate number of positions.", low=1, high=10_000_000)
    margin: float = option(3.0, "Maximum loss of a book move against the best move, in discs.", low=0, high=64)
    loss_plies: float = option(2.0, "Expansion order: cost of one lost disc, in plies.", low=0, high=100)
    batch: int = option(256, "Maximum number of leaves expanded at a time.", low=1, high=65_536)

    @property
    def first_depth(self) -> int:
        """Plies of the first search of a position; promising ones are searched to ``depth``."""
        return max(1, self.depth - FIRST_SEARCH_REDUCTION)


@dataclass(frozen=True)
class CheckOptions(SearchOptions):
    """Which positions of a book are searched deeper, and how deep."""

    depth: int = option(20, "Search depth in plies; a value is the mean of it and one ply less.", low=2, high=40)
    positions: int = option(100, "Number of randomly sampled positions.", low=1, high=10_000_000)
    seed: int = option(0, "Random seed of the sampled positions.", low=0)


@dataclass(frozen=True)
class SolvedBookOptions(GameOptions):
    """The size of a solved book, which has all positions up to a ply."""

    size: int = option(6, "Board size: 4 or 6.")
    plies: int = option(5, "Last ply of the book; only the positions of this ply are solved.", low=1, high=36)
    start: Literal["standard", "parallel", "both"] = option("standard", "Start position of the book, or both.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size == 8:
            raise TrainError("size 8: expected 4 or 6; positions near the start of 8x8 cannot be solved")

    @property
    def starts(self) -> tuple[Start, ...]:
        return ("standard", "parallel") if self.start == "both" else (self.start,)
