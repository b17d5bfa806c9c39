"""`analyse`: the value of every move of a game, and the discs that it lost.

>>> from reversi_env.notation import read_transcript
>>> review = analyse(read_transcript("f5d6c3d3c4f4c5b4"), depth=2)
>>> len(review), review[0].move, review[0].verdict
(8, 'f5', 'best')
"""

from collections.abc import Callable, Sequence
from dataclasses import InitVar, asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

from models.evaluator import strongest_evaluator
from reversi_env import Position, ReversiError
from reversi_env.errors import quoted
from reversi_env.notation import Game, read_transcript
from reversi_env.rules import PASS_NAME
from search.agents.book import solved_result
from search.agents.simple import SMALL_SIZE
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN
from train import charts

Verdict = Literal["best", "good", "inaccuracy", "mistake", "blunder"]
#: Minimum loss in discs of an inaccuracy, a mistake and a blunder, by board size.
VERDICT_THRESHOLDS = {4: (1, 3, 5), 6: (2, 4, 8), 8: (2, 5, 10)}
#: Losses below this, in discs, count as none: searched values are rounded.
NEGLIGIBLE_LOSS = 0.01
#: Minimum plies: the played move is searched one ply less deep than the best one.
MIN_DEPTH = 2
#: Maximum nodes of the search after the played move, as a multiple of those of the search for the best move.
MAX_NODE_RATIO = 4


@dataclass(frozen=True)
class MoveReview:
    """One move of a game; values in discs for the side that made it.

    ``number`` counts from 1, passes included; ``colour`` is black or white. ``value_before`` is the value of the position, which
    ``best`` keeps, ``value_after`` that of the ``move``, ``loss`` the difference, 0 or more. ``exact``: both are proven. A move
    that turns a proven win into less, or a draw into a loss, is a mistake whatever its loss. ``position`` is before the move.
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
        object.__setattr__(self, "position", position)  # not a field: tables have only numbers and words

    @property
    def value_for_black(self) -> float:
        """The value after the move in discs for black, whoever made it."""
        return self.value_after * (1 if self.colour == "black" else -1)


@dataclass(frozen=True)
class Review(Sequence[MoveReview]):
    """The moves of a game without its passes; a sequence of plain dataclasses, as ``pandas.DataFrame`` takes them."""

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
        """Return the discs that one side, ``black`` or ``white``, lost in total."""
        if colour not in ("black", "white"):
            raise ReversiError(f"colour {quoted(colour)}: expected black or white")
        return sum(move.loss for move in self.moves if move.colour == colour)

    def as_dicts(self) -> list[dict[str, Any]]:
        return [asdict(move) for move in self.moves]

    def table(self) -> str:
        """Return all moves as text, one per line, each with the value for black of the position after it."""
        lines = [f"{'':>3}  {'':5}  move   black   loss  best  verdict"]
        for move in self.moves:
            digits, kind = (0, "exact") if move.exact else (1, "")
            figures = f"{round(move.value_for_black, digits) + 0.0:+7.{digits}f}  {move.loss:5.{digits}f}"  # no -0.0
            words = "" if move.verdict in ("best", "good") else move.verdict
            lines.append(
                f"{move.number:3}  {move.colour:5}  {move.move:4} {figures}  {move.best:4}  {words:10}  {kind}"
            )
        return "\n".join(line.rstrip() for line in lines)

    def plot(self, path: str | Path | None = None) -> charts.Figure:
        """Return a plot of the value for black by move, with errors marked; write it to *path* (SVG, PNG or PDF) if given."""
        figure = charts.Figure("review", "Value for black after every move, in discs.", self._draw)
        if path is not None:
            figure.save(Path(path))
        return figure

    def _draw(self, figure: Any) -> None:
        (axis,) = charts.panels(figure, 1)
        axis.axhline(0, color=charts.GREY, linewidth=0.6)
        numbers = [move.number for move in self.moves]
        values = [move.value_for_black for move in self.moves]
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
    """Judge every move of a *game*, of a transcript such as ``f5d6c3``, or of a sequence of moves.

    Positions are searched *depth* plies (2 or more; 8 without *time*) or *time* seconds each, and solved from *exact* empty
    squares on (default: chosen by the engine; on 4x4 all). Positions of a packaged solved book (6x6) are exact unless *exact* is 0.
    *evaluator*: by default the strongest one for the game.
    """
    if not isinstance(game, Game):
        game = read_transcript(game if isinstance(game, str) else "".join(game))
    if depth is not None and depth < MIN_DEPTH:
        raise ReversiError(f"depth={depth}: expected {MIN_DEPTH} plies or more")
    if exact is None and game.start.rules.size == SMALL_SIZE:
        exact = game.start.rules.square_count
    limits = Limits(time=time, depth=8 if depth is None and time is None else depth, empties_exact=exact)
    engine = Engine(evaluator or strongest_evaluator(game.start.rules), game.start.rules, threads=threads)
    if limits.depth is None and engine.evaluator.probcut(game.start.rules):
        engine.set_probcut(MARGIN)  # for the searches to a fixed depth after a timed one, which uses ProbCut
    moves = []
    for number, (position, move) in enumerate(zip(game.positions(), game.moves, strict=False), 1):
        if move != PASS_NAME:
            moves.append(_judge_move(engine, position, move, number, limits))
        progress(number, len(game.moves))
    return Review(game, tuple(moves))


def _judge_move(engine: Engine, position: Position, move: str, number: int, limits: Limits) -> MoveReview:
    engine.clear()  # the table has entries of other depths
    solved = None if limits.empties_exact == 0 else solved_result(position, position.rules.square_count)
    result = solved or engine.search(position, limits)
    best, before, after = str(result.move), result.value, result.value
    if solved:
        after = next(entry.value for entry in solved.moves if entry.move == move)
    elif move != best:
        child = position.play(move)
        # The child is searched as deep as the best move was, solved if that was, and takes about the same time.
        child_limits = Limits(depth=max(1, result.depth - 1), empties_exact=child.empties if result.exact else 0)
        if limits.time is not None and not result.exact:
            child_limits = replace(child_limits, nodes=MAX_NODE_RATIO * result.nodes)
        if 0 < result.confidence < 100:
            child_limits = limits
        after = -child.score() if child.is_over() else -engine.search(child, child_limits).value
        before = max(before, after)
    loss = before - after
    judgement = verdict(loss, before, after, result.exact, position.rules.size)
    best = move if judgement == "best" else best
    return MoveReview(number, str(position.turn), move, best, before, after, loss, judgement, result.exact, position)


def verdict(loss: float, before: float, after: float, exact: bool, size: int) -> Verdict:
    """Return the verdict on a move that loses *loss* discs.

    >>> verdict(1, 1, 0, True, 8), verdict(1, 9, 8, True, 8)
    ('mistake', 'good')
    """
    inaccuracy, mistake, blunder = VERDICT_THRESHOLDS[size]
    if loss >= blunder:
        return "blunder"
    changes_result = exact and (before > 0) - (before < 0) != (after > 0) - (after < 0)
    if loss >= mistake or changes_result:
        return "mistake"
    return "inaccuracy" if loss >= inaccuracy else "good" if loss >= NEGLIGIBLE_LOSS else "best"
