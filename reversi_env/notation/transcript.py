"""Move transcripts: a game as one line of squares, ``f5d6c3d3c4``, the usual form of games in messages.

* A move is a column letter and a row number, a1 at the top left, in either case.
* A pass is ``--``, ``pa``, ``ps`` or ``pass``. It may be left out: where the side to move must pass and a square
  follows, the pass is understood.
* White space, single ``- , ; : / | .`` and move numbers with a dot (``12.``) may stand between moves.

The start and the rules (size, variant) are not part of a transcript; they come with the start position. Every move is
checked.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from reversi_env.errors import NotationError, quoted
from reversi_env.notation.game import Game, play_recorded
from reversi_env.notation.text import within
from reversi_env.position import Position
from reversi_env.rules import Rules

Passes = Literal["implicit", "explicit"]
WRITTEN_PASS = "--"

# The dashes of a pass come before the single dash, "pass" before its beginning "pa".
_TOKEN = re.compile(r"(?P<move>(?ai:[a-h][1-8]|--|pass|pa|ps))|[0-9]+\.|[\s,;:/|.-]")


def read_transcript(text: str, start: Position | None = None) -> Game:
    """Read the game that *text* records from *start*, by default the start of standard 8x8 Reversi with black to move.

    >>> read_transcript("F5 d6, c3").moves
    ('f5', 'd6', 'c3')
    """
    if not isinstance(text, str):
        raise NotationError(f"transcript {quoted(text)} is not text: expected moves like f5d6c3")
    start = Position.initial() if start is None else start
    position = start
    moves: list[str] = []
    with within(f"transcript {quoted(text)}"):
        for number, token in enumerate(_move_tokens(text), 1):
            with within(f"move {number}"):
                played, position = play_recorded(position, token)
            moves.extend(played)
    return Game(start, tuple(moves))


def write_transcript(moves: Game | Iterable[str], passes: Passes = "implicit") -> str:
    """Write the *moves* as one word; a pass is left out (*implicit*) or written ``--`` (*explicit*).

    Without its passes a record cannot show one that ended it: reading it back stops before that pass.

    >>> write_transcript(["f5", "D6", "c3"])
    'f5d6c3'
    """
    if passes not in get_args(Passes):
        raise NotationError(f"passes {quoted(passes)}: expected 'implicit' or 'explicit'")
    written_pass = WRITTEN_PASS if passes == "explicit" else ""
    frame = Rules()  # the names of a smaller board are names of the 8x8 board too
    names = moves.moves if isinstance(moves, Game) else moves
    actions = [frame.action_from_name(name) for name in names]
    return "".join(written_pass if action == frame.pass_action else frame.name_of(action) for action in actions)


def _move_tokens(text: str) -> Iterator[str]:
    offset = 0
    while offset < len(text):
        token = _TOKEN.match(text, offset)
        if token is None:
            excerpt = quoted(text[offset : offset + 8])
            raise NotationError(f"{excerpt} at character {offset + 1} is not a move: expected a1 to h8, or a pass")
        if token["move"]:
            yield token["move"]
        offset = token.end()
