"""Positions from the command line: OBF files, standard input, or a board typed out."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from play.commands.options import print_json

if TYPE_CHECKING:
    from reversi_env import Position
    from reversi_env.errors import ReversiError
    from reversi_env.notation import Problem


def read_lines(file: str) -> Iterator[str]:
    """The lines of a file, or of standard input for ``-`` as they come."""
    from reversi_env.errors import ReversiError, shown
    from reversi_env.notation.sources import text_lines

    if file == "-":
        if sys.stdin.isatty():
            print("reading positions from the terminal, one a line; Ctrl-D ends", file=sys.stderr)
        yield from text_lines(io.TextIOWrapper(sys.stdin.buffer, "utf-8", errors="replace"))
        return
    try:
        yield from text_lines(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(
            f"file {shown(file)} cannot be read, {reason}: expected OBF positions, or - for standard input"
        ) from None


def problems(file: str, variant: str) -> Iterator[tuple[int, Problem | ReversiError]]:
    """Every problem line with its number, as a problem or as the error that it is; blank lines and comments are skipped."""
    from reversi_env import Position, Rules
    from reversi_env.errors import ReversiError
    from reversi_env.notation import Problem, read_obf_line

    for number, line in enumerate(read_lines(file), start=1):
        if not line.strip() or line.lstrip().startswith(("%", "#")):
            continue
        try:
            problem = read_obf_line(line)
            position = problem.position
            rules = Rules(position.rules.size, variant)  # type: ignore[arg-type]
            yield (
                number,
                Problem(Position(rules, position.own, position.opp, position.turn), problem.scores, problem.comment),
            )
        except ReversiError as error:
            yield number, error


class BadLines:
    """The lines that could not be read: JSON objects among the results, or messages beside them, the first few only.

    How many more there were is said at the end of the ``with`` block.
    """

    MOST_SHOWN = 5

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.count = 0

    def __enter__(self) -> BadLines:
        return self

    def __exit__(self, *_: object) -> None:
        more = self.count - self.MOST_SHOWN
        if more > 0 and not self._as_json:
            print(f"… and {more} more line{'s' if more > 1 else ''} that cannot be read", file=sys.stderr)

    def report(self, line: int, error: ReversiError) -> None:
        """Say that *line* cannot be read, and why."""
        self.count += 1
        if self._as_json:
            print_json({"line": line, "error": str(error)})
        elif self.count <= self.MOST_SHOWN:
            print(f"line {line}: {error}", file=sys.stderr)


def typed_position(board: str, side: str, variant: str) -> Position:
    """A board of 16, 36 or 64 characters and the side to move, as typed."""
    from reversi_env import BLACK, WHITE, Position, Rules
    from reversi_env.errors import ReversiError, shown

    sides = {"x": BLACK, "b": BLACK, "black": BLACK, "*": BLACK, "o": WHITE, "w": WHITE, "white": WHITE}
    if side.lower() not in sides:
        raise ReversiError(f"side {shown(side)}: expected X (black) or O (white)")
    if board in ("start", "4", "6", "8"):
        rules = Rules(8 if board == "start" else int(board), variant)  # type: ignore[arg-type]
        return Position.from_colours(rules, *rules.start_boards, sides[side.lower()])
    plain = Position.from_text(board, sides[side.lower()])
    return Position(Rules(plain.rules.size, variant), plain.own, plain.opp, plain.turn)  # type: ignore[arg-type]
