"""Pondering: thinking on the opponent's time about the expected reply, so that the engine's tables know it when it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from play.background import POLL_SECONDS, in_background
from play.time_control import TimeControl
from reversi_env import Position
from search.limits import Limits

if TYPE_CHECKING:
    from play.thinker import Thinker
    from search.engine import Engine

#: Searches of one position, each in twice the time of the one before: whenever the reply comes, the tables hold a search that was
#: planned for about the time that it had. The last ends after some hundred times the time of a move.
ROUNDS = 7


def ponder(engine: Engine, position: Position, limits: Limits, is_over: Callable[[], bool]) -> None:
    """Search *position* as a move under *limits* is searched, and then on and on, until *is_over* and the engine is stopped.

    What ends it by itself: a solution, or limits without a time, which a longer one would not change.
    """
    for _ in range(ROUNDS):
        if is_over() or engine.search(position, limits).exact or limits.time is None:
            return
        limits = replace(limits, time=2 * limits.time, soft=None)


def expected_position(position: Position, line: Sequence[str]) -> Position | None:
    """Where the first moves of *line*, ours in *position* and the reply, lead to: what to think about; None if there is nothing.

    Where no reply is known it is the opponent's position.
    """
    after = position.play_all(line[:2])
    return None if not line or after.is_over() else after


class Ponderer:
    """Lets *thinker* ponder between moves; one that is not *on* does nothing.

    `expect` says which move was chosen, `begin` that nothing else is to be done, and `end`, before anything else is done with the
    thinker, returns when it rests. All three are called by one thread.
    """

    def __init__(self, thinker: Thinker, on: bool = True) -> None:
        self._thinker, self._on = thinker, on
        self._after: Position | None = None
        self._expected: Position | None = None
        self._work: Future[None] | None = None

    def expect(self, position: Position, line: Sequence[str]) -> None:
        """The move chosen in *position* is the first of *line*, and the next one the reply that is expected, if there is one."""
        if self._on and line:
            self._after, self._expected = position.play(line[0]), expected_position(position, line)

    def begin(self, present: Position, *, depth: int | None = None, clock: TimeControl | None = None) -> None:
        """Ponder, if *present* is the position after the move that was chosen; the limits are those of a move of ours."""
        if self._expected and present == self._after and not self._work:
            self._over = threading.Event()
            work = partial(self._thinker.ponder, self._expected, self._over.is_set, depth=depth, clock=clock)
            self._work = in_background(work)

    def end(self) -> None:
        """Stop pondering; it has when this returns."""
        while self._work and not self._work.done():
            self._over.set()
            self._thinker.stop()
            wait([self._work], POLL_SECONDS)
        self._work = None
