"""Books as text, a line a position."""

from __future__ import annotations

from collections.abc import Iterator

from reversi_env import Position
from reversi_env.notation import Problem, write_obf_line
from search.book import Book


def exported(book: Book, format: str = "moves") -> Iterator[str]:
    """Every position of *book* once, from the start on, best moves first.

    ``moves``: the moves that lead there, its value in discs for the side to move, and the plies of the search behind it, 0 where it
    follows from the moves. ``obf``: the board and its moves with their values in whole discs, as OBF has them.
    """
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Position, tuple[str, ...]]] = [(Position.initial(book.rules), ())]
    while waiting:
        position, moves = waiting.pop()
        canonical, entry = position.canonical(), book.find(position)
        if entry is None or (canonical.own, canonical.opp) in seen:
            continue
        seen.add((canonical.own, canonical.opp))
        found = book.moves(position)
        if format == "obf":
            most = book.rules.square_count
            scores = tuple((move.move, max(-most, min(most, round(move.value)))) for move in found)
            yield write_obf_line(Problem(position, scores, f"{entry.value:+.2f}, depth {entry.depth}"))
        else:
            yield f"{''.join(moves) or 'start'} {entry.value:+.2f} {entry.depth}"
        waiting.extend((position.play(move.move), (*moves, move.move)) for move in reversed(found))
