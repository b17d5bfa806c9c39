"""`analyse`: a game looked at afterwards: what every move was worth, and what it gave away.

>>> from reversi_env.notation import read_transcript
>>> review = analyse(read_transcript("f5d6c3d3c4f4c5b4"), depth=2)
>>> len(review), review[0].move, review[0].verdict
(8, 'f5', 'best')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

from models.evaluator import strongest_evaluator
from reversi_env import Position, ReversiError
from reversi_env.errors import quoted
from reversi_env.notation import Game, read_transcript
from reversi_env.rules import PASS_NAME
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN
from train import charts

Verdict = Literal["best", "good", "inaccuracy", "mistake", "blunder"]
#: Discs that a move may give away, by the size of the board, before it is an inaccuracy, a mistake, a blunder.
VERDICT_THRESHOLDS = {4: (1, 3, 5), 6: (2, 4, 8), 8: (2, 5, 10)}
#: What counts as nothing, in discs: searched values are rounded.
NEGLIGIBLE_LOSS = 0.01
#: Plies, at least: a move is compared with the best one, a ply less deep.
MIN_DEPTH = 2
#: How many times the nodes of the search for the best move may be visited below the one that was played, to reach the same depth.
MAX_NODE_RATIO = 4


@dataclass(frozen=True)
class MoveReview:
    """One move of a game, judged; values in discs for the side that made it.

    ``number`` counts from 1, passes included; ``colour`` is black or white. ``value_before`` is what the position was worth, which
    ``best`` would have kept, ``value_after`` what the ``move`` is worth, ``loss`` the difference, 0 or more. ``exact``: both are
    proven. A move that turns a proven win into less, or a draw into a loss, is a mistake however few discs it costs.
    ``position`` is the one before the move.
    """

    number: int
    colour: str
    move: str
    best: str
    value_before: float
    value_after: float
    loss: float
    verdict: Verdict
    exact: bool
    position: InitVar[Position]

    def __post_init__(self, position: Position) -> None:
        object.__setattr__(self, "position", position)  # not a field: tables have numbers and words


@dataclass(frozen=True)
class Review(Sequence[MoveReview]):
    """The moves of a game, judged, without its passes; a sequence of plain dataclasses, as ``pandas.DataFrame`` takes them."""

    game: Game
    moves: tuple[MoveReview, ...]

    @overload
    def __getitem__(self, index: int) -> MoveReview: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MoveReview, ...]: ...
    def __getitem__(self, index: int | slice) -> MoveReview | tuple[MoveReview, ...]:
        return self.moves[index]

    def __len__(self) -> int:
        return len(self.moves)

    def lost(self, colour: str) -> float:
        """Discs that one side, ``black`` or ``white``, gave away in all."""
        if colour not in ("black", "white"):
            raise ReversiError(f"colour {quoted(colour)}: expected black or white")
        return sum(move.loss for move in self.moves if move.colour == colour)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The moves as JSON has them."""
        return [asdict(move) for move in self.moves]

    def table(self) -> str:
        """All moves, a line each, as text."""
        lines = [f"{'':>3}  {'':5}  move  value   loss  best  verdict"]
        for move in self.moves:
            digits, kind = (0, "exact") if move.exact else (1, "")
            figures = f"{move.value_after:+6.{digits}f}  {move.loss:5.{digits}f}"
            words = "" if move.verdict in ("best", "good") else move.verdict
            lines.append(
                f"{move.number:3}  {move.colour:5}  {move.move:4} {figures}  {move.best:4}  {words:10}  {kind}"
            )
        return "\n".join(line.rstrip() for line in lines)

    def plot(self, path: str | Path | None = None) -> charts.Figure:
        """Black's value in the course of the game, its errors marked; written to *path* (SVG, PNG or PDF) if that is given."""
        figure = charts.Figure("review", "Value for black after every move, in discs.", self._draw)
        if path is not None:
            figure.save(Path(path))
        return figure

    def _draw(self, figure: Any) -> None:
        (axis,) = charts.panels(figure, 1)
        signs = {"black": 1, "white": -1}
        axis.axhline(0, color=charts.GREY, linewidth=0.6)
        numbers = [move.number for move in self.moves]
        values = [signs[move.colour] * move.value_after for move in self.moves]
        axis.plot(numbers, values, color=charts.BLUE)
        shown = {"inaccuracy": charts.SKY, "mistake": charts.ORANGE, "blunder": charts.VERMILION}
        for verdict, colour in shown.items():
            rows = [i for i, move in enumerate(self.moves) if move.verdict == verdict]
            if rows:
                xs, ys = [numbers[i] for i in rows], [values[i] for i in rows]
                axis.plot(xs, ys, color=colour, marker="o", linestyle="none", label=verdict)
        axis.set(xlabel="move", ylabel="value for black, discs")
        if axis.get_legend_handles_labels()[0]:
            axis.legend()


def analyse(
    game: Game | str | Sequence[str],
    evaluator: str | None = None,
    *,
    depth: int | None = None,
    time: float | None = None,
    exact: int | None = None,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Review:
    """Judge every move of a *game*, or of a transcript such as ``f5d6c3``, or of such moves one by one.

    Positions are searched *depth* plies (2 or more; 8 if there is no *time*) or *time* seconds each, and solved from *exact* empty
    squares on; by default where the engine finds that quick enough. *evaluator*: by default the strongest that knows the game.
    """
    if not isinstance(game, Game):
        game = read_transcript(game if isinstance(game, str) else "".join(game))
    if depth is not None and depth < MIN_DEPTH:
        raise ReversiError(f"depth={depth}: expected {MIN_DEPTH} plies or more")
    limits = Limits(time=time, depth=8 if depth is None and time is None else depth, empties_exact=exact)
    engine = Engine(evaluator or strongest_evaluator(game.start.rules), game.start.rules, threads=threads)
    if limits.depth is None and engine.evaluator.probcut(game.start.rules):
        engine.set_probcut(
            MARGIN
        )  # a search by the clock prunes, and the one to its depth that follows has to prune alike
    moves = []
    for number, (position, move) in enumerate(zip(game.positions(), game.moves, strict=False), 1):
        if move != PASS_NAME:
            moves.append(_judge_move(engine, position, move, number, limits))
        progress(number, len(game.moves))
    return Review(game, tuple(moves))


def _judge_move(engine: Engine, position: Position, move: str, number: int, limits: Limits) -> MoveReview:
    engine.clear()  # what an earlier position has left is of another depth
    found = engine.search(position, limits)
    best, before, after = str(found.move), found.value, found.value
    if move != best:
        child = position.play(move)
        # as deep as the best move was looked at, proven where that is, and likely in the same time
        same = Limits(depth=max(1, found.depth - 1), empties_exact=child.empties if found.exact else 0)
        if limits.time is not None and not found.exact:
            same = replace(same, nodes=MAX_NODE_RATIO * found.nodes)
        if 0 < found.confidence < 100:
            same = limits
        after = -child.score() if child.is_over() else -engine.search(child, same).value
        before = max(before, after)
    loss = before - after
    said = verdict(loss, before, after, found.exact, position.rules.size)
    best = move if said == "best" else best
    return MoveReview(number, str(position.turn), move, best, before, after, loss, said, found.exact, position)


def verdict(loss: float, before: float, after: float, exact: bool, size: int) -> Verdict:
    """What a move is called that gives away *loss* discs.

    >>> verdict(1, 1, 0, True, 8), verdict(1, 9, 8, True, 8)
    ('mistake', 'good')
    """
    inaccuracy, mistake, blunder = VERDICT_THRESHOLDS[size]
    if loss >= blunder:
        return "blunder"
    turned = exact and (before > 0) - (before < 0) != (after > 0) - (after < 0)
    if loss >= mistake or turned:
        return "mistake"
    return "inaccuracy" if loss >= inaccuracy else "good" if loss >= NEGLIGIBLE_LOSS else "best"
