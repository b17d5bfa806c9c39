"""The one reader of positions and games on the command line.

A POSITION is ``start``, a board, moves such as ``f5d6c3``, an OBF line, GGF text, a file of any of these or a WTHOR file, or ``-``
for standard input. A file of OBF may have many lines; each is a position of its own.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from play.cli.output import print_json

if TYPE_CHECKING:
    from play.game import Game
    from reversi_env import Position, Rules
    from reversi_env.notation import Problem
    from reversi_env.rules import Variant

POSITION_HELP = (
    "start, a board of 16, 36 or 64 characters X, O and -, moves such as f5d6c3, an OBF line, GGF text, "
    "a file of these or a WTHOR file, or - for standard input."
)
PositionText = Annotated[str, Parameter(help=POSITION_HELP, allow_leading_hyphen=True)]
#: How the moves of a game begin; no board does, because it has no digits.
_MOVES = re.compile(r"\s*(?:1\.\s*)?[a-hA-H][1-8]")
#: Characters of a board that is typed, and of one with its side to move behind it, as OBF has it.
_BOARD = re.compile(r"[-._XxOo*0BbWw●○\s]+")
_OBF = re.compile(r"\s*(?:[-._XxOo*0BbWw●○]\s*){16,64}\s[XxOo*0BbWw●○]\s*(?:;|$)")
#: Files with games are known by their names, even if they are missing.
_GAME_FILES = (".ggf", ".txt", ".wtb")
#: Maximum number of messages about lines that cannot be read.
MAX_BAD_LINES = 5


class Asked(NamedTuple):
    """The options that belong to a POSITION; None: not given. ``after`` counts moves, passes included."""

    variant: Variant = "normal"
    size: int | None = None
    side: str | None = None
    game: int | None = None
    after: int | None = None

    @property
    def rules(self) -> Rules:
        """The rules of a text that does not give its own."""
        from reversi_env import Rules

        return Rules(8 if self.size is None else self.size, self.variant)


def read_position(text: str, asked: Asked) -> Position:
    """Return the position of *text*, the first one if it has several lines."""
    for _, problem in read_problems(text, asked, as_json=False):
        return problem.position
    from reversi_env.errors import ReversiError, quoted

    raise ReversiError(f"{quoted(text, 300)} has no position: expected at least one")


def read_problems(text: str, asked: Asked, *, as_json: bool) -> Iterator[tuple[int | None, Problem]]:
    """Yield every position of *text* with its line; None for one that was typed, or that is a game's.

    Lines that cannot be read are JSON objects among the results, or messages on standard error, the first few only. After the last
    position the command ends with status 1 if there were any.
    """
    if text == "-":
        yield from _problems_of_stream(asked, as_json)
    elif isfile(text):  # noqa: PTH113 - a Path refuses a text that is too long for a name
        yield from _problems_of_file(text, asked, as_json)
    elif _is_game(text) or text.lower().endswith(_GAME_FILES):
        yield None, _problem_of_game(text, asked)
    else:
        yield None, _typed_problem(text, asked)


def read_game(text: str, asked: Asked) -> Game:
    """Return the game of moves, GGF text, a file or standard input; its own rules must not contradict the options."""
    from play.game import Game
    from reversi_env.errors import ReversiError, quoted

    if text == "-":
        return _game_of_text(_standard_input(), asked, "standard input")
    if isfile(text):  # noqa: PTH113 - as above; a file may be called g2.txt
        if text.lower().endswith(".wtb"):
            return _wthor_game(text, asked)
        from play.terminal.saved_games import load

        game, count = load(text, asked.game or 1, Game(asked.rules))
        _tell_first(text, asked, count)
        return _agreeing(game, asked)
    if text.lower().endswith(_GAME_FILES):
        raise ReversiError(f"file {quoted(text, 300)} cannot be read: no such file or directory")
    if asked.game is not None:
        raise ReversiError(f"--game {asked.game} with a typed game: expected a file with games")
    if text == "start":
        return Game(asked.rules)
    if not _is_game(text):
        raise ReversiError(
            f"{quoted(text, 300)} is no game: expected moves such as f5d6c3, GGF text, or a file of these"
        )
    return _game_of_text(text, asked, "GGF text")


def read_start(text: str, asked: Asked) -> Game:
    """Return a game to continue: that of *text* after its last move or ``--after``, or one that begins at a position."""
    from play.game import Game
    from reversi_env.errors import ReversiError

    if text == "-":
        raise ReversiError(
            "position '-': expected a position, moves or a file, because standard input is for your moves"
        )
    if not _holds_game(text):
        return Game(read_position(text, asked))
    game = read_game(text, asked)
    _problem_after(game, asked)  # refuses options that do not fit the game
    while asked.after is not None and len(game.moves) > asked.after:
        game.undo()
    return game


def _holds_game(text: str) -> bool:
    if not isfile(text):  # noqa: PTH113 - as above
        return _is_game(text) or text.lower().endswith(_GAME_FILES)
    from reversi_env.notation.text import decoded

    contents = b"" if text.lower().endswith(".wtb") else Path(text).read_bytes()
    return not contents.strip() or _is_game(decoded(contents))


def _is_game(text: str) -> bool:
    return bool(_MOVES.match(text)) or text.lstrip().startswith("(;")


def _game_of_text(text: str, asked: Asked, place: str) -> Game:
    from play.game import Game
    from reversi_env.notation import read_ggf
    from reversi_env.notation.text import within

    if not text.lstrip().startswith("(;"):
        return Game.from_transcript(text, asked.rules)
    with within(place):
        games = list(read_ggf(text.splitlines()))
    return _agreeing(Game.from_record(games[_place_of(len(games), asked, place)]), asked)


def _wthor_game(file: str, asked: Asked) -> Game:
    from play.game import Game
    from reversi_env.notation import read_wthor

    found = read_wthor(Path(file))
    return _agreeing(Game.from_record(found.game(_place_of(len(found), asked, file))), asked)


def _place_of(count: int, asked: Asked, place: str) -> int:
    """Return the index of the game that is asked for among *count* games."""
    from reversi_env.errors import ReversiError

    number = asked.game or 1
    if not 1 <= number <= count:
        raise ReversiError(f"--game {number} of {place}: expected a number from 1 to {count}")
    _tell_first(place, asked, count)
    return number - 1


def _tell_first(place: str, asked: Asked, count: int) -> None:
    if asked.game is None and count > 1:
        print(f"reversi: the first of {count} games in {place}; --game N selects another", file=sys.stderr)


def _agreeing(game: Game, asked: Asked) -> Game:
    _check_agreement(game.rules, asked)
    return game


def _check_agreement(own: Rules, asked: Asked) -> None:
    """Refuse options that contradict the rules that a text has of its *own*; the normal game is the default, which says nothing."""
    from reversi_env import ReversiError

    if asked.size not in (None, own.size):
        raise ReversiError(f"--size {asked.size} with a game on {own.size}x{own.size}: expected the same")
    if asked.variant == "reversed" and own.variant == "normal":
        raise ReversiError("--variant reversed with a normal game: expected the same")


def _problem_of_game(text: str, asked: Asked) -> Problem:
    return _problem_after(read_game(text, asked), asked)


def _problem_after(game: Game, asked: Asked) -> Problem:
    from reversi_env.errors import ReversiError, count_noun
    from reversi_env.notation import Problem

    if asked.side is not None:
        raise ReversiError(f"--side {asked.side} with the moves of a game: expected no side, the moves tell it")
    if asked.after is not None and asked.after > len(game.moves):
        length = count_noun(len(game.moves), "move")
        raise ReversiError(f"--after {asked.after} in a game of {length}: expected no more than these")
    return Problem(game.position if asked.after is None else game.positions[asked.after])


def _refuse(given: str, expected: str, **options: object) -> None:
    """Refuse options that do not fit what was given."""
    from reversi_env.errors import ReversiError

    for name, value in options.items():
        if value is not None:
            raise ReversiError(f"--{name} {value} with {given}: expected {expected}")


def _typed_problem(text: str, asked: Asked) -> Problem:
    """Return the position of ``start``, a board or an OBF line."""
    from reversi_env import BLACK, WHITE, Position, Rules
    from reversi_env.errors import ReversiError, quoted
    from reversi_env.notation import Problem

    _refuse("a board", "the moves of a game, or a file with one", game=asked.game, after=asked.after)
    turn = WHITE if asked.side == "white" else BLACK
    if text == "start":
        return Problem(Position.from_colours(asked.rules, *asked.rules.start_boards, turn))
    if _OBF.match(text) and asked.side is None:
        return _problem_of_line(text, asked)
    if len(text) not in (16, 36, 64) and not _BOARD.fullmatch(text):
        raise ReversiError(
            f"{quoted(text, 300)} is neither a board nor moves, and no such file is there: expected X, O and - for every "
            "square, moves such as f5d6c3, or a file"
        )
    plain = Position.from_text(text, turn)
    position = Position(Rules(plain.rules.size, asked.variant), plain.own, plain.opp, plain.turn)
    _check_agreement(position.rules, asked)
    return Problem(position)


def _is_bare_board(line: str) -> bool:
    return bool(_BOARD.fullmatch(line)) and len("".join(line.split())) in (16, 36, 64)


def _problem_of_line(line: str, asked: Asked) -> Problem:
    from reversi_env import Position, Rules
    from reversi_env.notation import Problem, read_obf_line

    problem = Problem(Position.from_text(line)) if _is_bare_board(line) else read_obf_line(line)
    plain = problem.position
    rules = Rules(plain.rules.size, asked.variant)
    _check_agreement(rules, asked)
    return Problem(Position(rules, plain.own, plain.opp, plain.turn), problem.scores, problem.comment)


# --- many lines -----------------------------------------------------------------------------------


def _problems_of_file(file: str, asked: Asked, as_json: bool) -> Iterator[tuple[int | None, Problem]]:
    from reversi_env.notation.text import decoded

    if _holds_game(file):
        yield None, _problem_of_game(file, asked)
    else:
        text = decoded(Path(file).read_bytes())
        yield from _problems_of_lines(io.StringIO(text, newline=None), file, asked, as_json)


def _problems_of_stream(asked: Asked, as_json: bool) -> Iterator[tuple[int | None, Problem]]:
    """Yield the positions of standard input, those of OBF lines as they come."""
    if sys.stdin.isatty():
        print("reading positions from the terminal, one per line; end with Ctrl-D", file=sys.stderr)
    stream = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="replace")
    blank: list[str] = []
    for line in stream:
        if _is_game(line):
            text = "".join(chain(blank, [line], stream))
            yield None, _problem_after(_game_of_text(text, asked, "standard input"), asked)
            return
        blank.append(line)
        if line.strip():
            break
    yield from _problems_of_lines(chain(blank, stream), "standard input", asked, as_json)


def _standard_input() -> str:
    return io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="replace").read()


def _problems_of_lines(
    lines: Iterable[str], place: str, asked: Asked, as_json: bool
) -> Iterator[tuple[int | None, Problem]]:
    """Yield every OBF line with its number; blank lines and comments are skipped."""
    from reversi_env.errors import ReversiError

    _refuse("OBF lines", "a file with games, or a board", game=asked.game, after=asked.after, side=asked.side)
    is_empty, bad = True, 0
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.lstrip().startswith(("%", "#")):
                continue
            is_empty = False
            try:
                problem = _problem_of_line(line.rstrip("\r\n"), asked)
            except ReversiError as error:
                bad += 1
                if as_json:
                    print_json({"line": number, "error": str(error)})
                elif bad <= MAX_BAD_LINES:
                    print(f"line {number}: {error}", file=sys.stderr)
                continue
            yield number, problem
    finally:
        more = bad - MAX_BAD_LINES
        if more > 0 and not as_json:
            print(f"… and {more} more line{'s' if more > 1 else ''} that cannot be read", file=sys.stderr)
    if is_empty:
        print(f"reversi: no positions in {place}", file=sys.stderr)
    if bad:
        sys.exit(1)
