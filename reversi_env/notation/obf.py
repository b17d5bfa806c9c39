"""OBF, Othello board files: test positions with the exact scores of their moves, one problem per line.

::

    --XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X; G8:+18; H1:+12; H7:+6;   % comment

* The first field is the board row by row from a1, ``X`` black, ``O`` white, ``-`` empty, and the side to move. The
  number of squares (16, 36 or 64) gives the size of the board.
* The other fields are moves with their scores: discs by which the side to move wins (+) or loses (-) after that move
  and best play. Some moves or all of them may be missing. A pass is ``PS``.
* Every field ends with ``;``; it may be missing behind the last one.
* ``%`` starts a comment. Blank lines and lines with only a comment hold no problem.

What is written has upper-case moves and signed scores as in the FFO test files, which come back byte for byte.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reversi_env.errors import IllegalMoveError, NotationError, quoted
from reversi_env.notation.text import TextSource, text_lines, within
from reversi_env.position import Position
from reversi_env.rules import BLACK, PASS_NAME, WHITE, Colour, Rules

WRITTEN_PASS = "PS"
_SCORE = re.compile(r"[+-]?[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Problem:
    """A position and the scores of its moves, in the order of the file.

    A score is in discs for the side to move, positive if it wins, after the move named and best play by both.
    """

    position: Position
    scores: tuple[tuple[str, int], ...] = ()
    comment: str = ""

    def __post_init__(self) -> None:
        rules = self.position.rules
        scores = tuple((rules.name_of(rules.action_from_name(move)), score) for move, score in self.scores)
        object.__setattr__(self, "scores", scores)
        legal = self.position.legal_moves()
        for move, score in scores:
            if move not in legal:
                expected = " ".join(legal) or "none, the game is over"
                raise IllegalMoveError(f"{move} by {self.position.turn} is illegal: the legal moves are {expected}")
            if abs(score) > rules.square_count:
                raise NotationError(f"score {score} of {move}: expected at most {rules.square_count} discs")
        if len(dict(scores)) < len(scores):
            raise NotationError(f"a move is scored twice in {quoted(scores)}: expected every move once")
        if "\n" in self.comment or "\r" in self.comment:
            raise NotationError(f"comment {quoted(self.comment)} has more than one line: expected one")

    @property
    def best_score(self) -> int | None:
        """The highest score, the value of the position if no move is missing; ``None`` without scores."""
        return max((score for _, score in self.scores), default=None)


def read_obf_line(line: str, rules: Rules | None = None) -> Problem:
    """Read the problem on one line; *rules* set the variant, and require a size.

    >>> read_obf_line("OX--OXX-OOX--XXX O; C1:+6; D1:-4; D2:-4; D3:-4;").best_score
    6
    """
    if not isinstance(line, str):
        raise NotationError(f"OBF line {quoted(line)} is not text: expected '<board> <side>; <move>:<score>; …'")
    with within(f"OBF line {quoted(line)}"):
        fields, _, comment = line.partition("%")
        board, *scores = (text.strip() for text in fields.split(";"))
        if scores and not scores[-1]:
            scores.pop()
        position = _read_position(board, rules)
        return Problem(position, tuple(_read_score(text) for text in scores), comment.strip())


def write_obf_line(problem: Problem) -> str:
    """Write the line of *problem*, without a line end."""
    position = problem.position
    fields = [f"{position.to_text()} {'X' if position.turn == BLACK else 'O'};"]
    fields += [f"{WRITTEN_PASS if move == PASS_NAME else move.upper()}:{score:+d};" for move, score in problem.scores]
    if problem.comment:
        fields.append(f"% {problem.comment}")
    return " ".join(fields)


def read_obf(source: TextSource, rules: Rules | None = None) -> Iterator[Problem]:
    """Yield the problems of a file (by its path) or of lines of text, one after the other; errors name the line."""
    for number, line in enumerate(text_lines(source), 1):
        if line.partition("%")[0].strip():
            with within(f"line {number}"):
                problem = read_obf_line(line, rules)
            yield problem


def _read_position(field: str, rules: Rules | None) -> Position:
    if not field:
        raise NotationError("no position: expected '<board> <side>; <move>:<score>; …'")
    return Position.from_text(field[:-1], side_from_character(field[-1]), rules)


def _read_score(field: str) -> tuple[str, int]:
    name, _, score = (part.strip() for part in field.partition(":"))
    if not _SCORE.fullmatch(score):
        raise NotationError(f"field {quoted(field)}: expected a move and its score in discs, like G8:+18")
    return name, int(score)


_COLOURS = dict.fromkeys("Xx*Bb", BLACK) | dict.fromkeys("Oo0Ww", WHITE)


def side_from_character(character: str) -> Colour:
    """Return the side to move: ``X x * B b`` is black, ``O o 0 W w`` is white."""
    if character not in _COLOURS:
        raise NotationError(f"side to move {quoted(character)}: expected X or * for black, O for white")
    return _COLOURS[character]
