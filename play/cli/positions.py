"""Positions and games on the command line, for all commands.

A POSITION is ``start``, a board, moves such as ``f5d6c3``, an OBF line, GGF text, a file of any of these or a WTHOR file, or ``-``
for standard input. A file of boards or OBF may have many lines; each is a separate position.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from play.cli.options import GameNumber, StartSize, VariantOrDefault, integer, text
from play.cli.output import print_json
from reversi_env.errors import ReversiError, count_noun, quoted

if TYPE_CHECKING:
    from play.game import Game
    from reversi_env import Rules
    from reversi_env.notation import Problem

PositionText = Annotated[
    str,
    Parameter(
        help="Position or game: the word start; moves such as f5d6c3; a board of 16, 36 or 64 characters (each X, O or -); a text "
        "in OBF or GGF; a file with one of these, or a WTHOR file; or the sign '-' alone: the text then comes from standard input "
        "(the keyboard, or another command).",
        allow_leading_hyphen=True,
        validator=lambda _, position: _refuse_option(position),
    ),
]
#: How the moves of a game, and GGF text, begin; no board does.
_GAME = re.compile(r"\s*(?:(?:1\.\s*)?[a-hA-H][1-8]|\(;)")
#: The characters of a board, and of one with its side to move behind it, as OBF has it.
_BOARD = re.compile(r"[-._XxOo*0BbWw●○\s]+")
_OBF = re.compile(r"\s*(?:[-._XxOo*0BbWw●○]\s*){16,64}\s[XxOo*0BbWw●○]\s*(?:;|$)")
#: Files with games are known by their names, even if they are missing.
_GAME_FILES = (".ggf", ".txt", ".wtb")
#: Maximum number of messages about lines that cannot be read.
MAX_BAD_LINES = 5


@dataclass(frozen=True)
class PositionOptions:
    """The options that belong to a POSITION; None where one was not typed. ``after`` counts moves, passes included."""

    side: Annotated[
        Literal["black", "white"] | None, text("Side to move, if the position is a board (default: black).", "--side")
    ] = None
    game: GameNumber = None
    after: Annotated[
        int | None,
        integer("Use the position after this many moves of the game (default: its last position).", "--after"),
    ] = None
    size: StartSize = None
    variant: VariantOrDefault = None

    @property
    def rules(self) -> Rules:
        """The rules of a text that does not give its own."""
        from reversi_env import Rules

        return Rules(8 if self.size is None else self.size, self.variant or "normal")

    def check_rules(self, rules: Rules) -> None:
        """Raise an error if the options contradict the *rules* of a text."""
        if self.size not in (None, rules.size):
            raise ReversiError(f"--size {self.size}: expected {rules.size}, as in the position or game")
        if self.variant == "reversed" and rules.variant == "normal":
            raise ReversiError("--variant reversed: expected normal, as in the game")

    def refuse(self, source: str, *names: str) -> None:
        """Raise an error if one of the options *names* was typed, which does not fit the *source*."""
        for name in names:
            if getattr(self, name) is not None:
                raise ReversiError(f"--{name} {getattr(self, name)} with {source}: expected no --{name}")


#: The parameter of a command that takes a POSITION, and its default: nothing was typed.
PositionChoice = Annotated[PositionOptions, Parameter(name="*")]
DEFAULT = PositionOptions()


def _refuse_option(position: str) -> None:
    """Raise an error for a misspelt option in place of a position, since boards may begin with a hyphen, too."""
    if re.match("--?[A-Za-z]", position) and not _BOARD.fullmatch(position):
        raise ValueError("expected a position, or an option from the list")


def read_problems(
    text: str, options: PositionOptions, *, as_json: bool, opens_files: bool = True
) -> Iterator[tuple[int | None, Problem]]:
    """Yield every position of *text* with its line number; None for a typed position, or that of a game.

    Unless it *opens_files*, the text is neither a file's name nor ``-``.

    Lines that cannot be read become JSON objects among the results, or messages on standard error (the first few). The command
    then ends with status 1 after the last position.
    """
    source = _Source(text, opens_files)
    if source.is_game:
        yield None, _problem_of_game(source.game(options), options)
        return
    options.refuse("a board, which has no moves", "game", "after")
    if source.place is not None:
        yield from _problems(source, options, as_json)
    elif text == "start" or _is_board(text) or _OBF.match(text):
        yield None, _problem(text, options)
    else:
        if _BOARD.fullmatch(text) and (squares := len("".join(text.split()))) > 1:
            raise ReversiError(f"board {quoted(text, 300)} has {squares} squares: expected 16, 36 or 64")
        last = "or a file" if opens_files else "or start"
        raise ReversiError(f"{quoted(text, 300)}: expected a board of X, O and -, moves such as f5d6c3, {last}")


def read_game(text: str, options: PositionOptions) -> Game:
    """Return the game of moves, GGF text, a file or standard input; its own rules must not contradict the options."""
    return _Source(text).game(options)


def read_start(text: str, options: PositionOptions) -> Game:
    """Return a game to continue: that of *text* after its last move or ``--after``, or one that begins at a position."""
    from play.game import Game

    if text == "-":
        raise ReversiError("position '-': expected moves, a board or a file, because your moves are standard input")
    source = _Source(text)
    if source.is_game:
        game = source.game(options)
        _problem_of_game(game, options)  # refuses options that do not fit the game
        while options.after is not None and len(game.moves) > options.after:
            game.undo()
        return game
    for _, problem in read_problems(text, options, as_json=False):
        return Game(problem.position)
    sys.exit(2)  # the reader has reported that there is none


class _Source:
    """The lines of a POSITION; ``place`` is the file's name, "standard input", or None for a typed text."""

    def __init__(self, text: str, opens_files: bool = True) -> None:
        self.text = text
        self.place: str | None = None
        lines: Iterable[str] = [text]
        if opens_files and text == "-":
            self.place = "standard input"
            if sys.stdin.isatty():
                print("reading positions from the terminal, one per line; end with Ctrl-D", file=sys.stderr)
            lines = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="replace")
        elif opens_files and isfile(text):  # noqa: PTH113 - a Path refuses a text that is too long for a name
            self.place, lines = text, _lines_of_file(text)
        elif opens_files and text.lower().endswith(_GAME_FILES):
            raise ReversiError(f"file {quoted(text, 300)} does not exist: expected another name or folder")
        self.lines, first = iter(lines), []
        for line in self.lines:
            first.append(line)
            if line.strip():
                break
        self.lines = chain(first, self.lines)
        self.is_wthor = self.place is not None and text.lower().endswith(".wtb")
        self.is_game = self.is_wthor or bool(first and _GAME.match(first[-1]))
        if self.place == text and not self.is_game:
            self._check_kind("".join(first))

    def _check_kind(self, begin: str) -> None:
        """Raise an error for a file whose name or beginning shows that it has no positions."""
        name = f"file {quoted(self.text, 300)}"
        if self.text.lower().endswith(".ggf") and not (_is_board(begin) or _OBF.match(begin)):
            raise ReversiError(f"{name} is not a GGF file: expected games such as (;GM[Othello]…;), or moves")
        if any(character < " " and not character.isspace() for character in begin):
            raise ReversiError(
                f"{name} is not a text file: expected a board, moves, OBF or GGF; WTHOR files end in .wtb"
            )

    def game(self, options: PositionOptions) -> Game:
        """Return the game that the options ask for, by default the first one."""
        from play.game import Game
        from play.terminal.saved_games import game_in_text, selected
        from reversi_env.notation import read_wthor

        if self.text == "start":
            return Game(options.rules)
        if not self.is_game:
            raise ReversiError(f"{quoted(self.text, 300)}: expected moves such as f5d6c3, GGF text, or a file of these")
        number, place = options.game or 1, self.place or "the moves on the command line"
        if self.is_wthor:
            records = read_wthor(Path(self.text))
            count = len(records)
            game = Game.from_record(records.game(selected(number, count)))
        else:
            game, count = game_in_text("".join(self.lines), number, Game(options.rules), place)
        if options.game is None and count > 1:
            print(f"reversi: the first of {count} games in {place}; --game N selects another", file=sys.stderr)
        options.check_rules(game.rules)
        return game


def _lines_of_file(file: str) -> Iterable[str]:
    from reversi_env.notation.text import decoded

    return [] if file.lower().endswith(".wtb") else io.StringIO(decoded(Path(file).read_bytes()), newline=None)


def _problem_of_game(game: Game, options: PositionOptions) -> Problem:
    from reversi_env.notation import Problem

    options.refuse("a game, whose moves determine the side to move", "side")
    if options.after is not None and options.after > len(game.moves):
        raise ReversiError(f"--after {options.after}: expected at most {len(game.moves)}, the moves of the game")
    return Problem(game.position if options.after is None else game.positions[options.after])


def _is_board(text: str) -> bool:
    return bool(_BOARD.fullmatch(text)) and len("".join(text.split())) in (16, 36, 64)


def _problem(text: str, options: PositionOptions) -> Problem:
    """Return the position of ``start``, a board or an OBF line."""
    from reversi_env import BLACK, WHITE, Position, Rules
    from reversi_env.notation import Problem, read_obf_line

    turn = WHITE if options.side == "white" else BLACK
    if text == "start":
        return Problem(Position.from_colours(options.rules, *options.rules.start_boards, turn))
    if _is_board(text):
        problem = Problem(Position.from_text(text, turn))
    else:
        options.refuse("an OBF line, which has the side to move", "side")
        problem = read_obf_line(text)
    plain = problem.position
    position = Position(Rules(plain.rules.size, options.variant or "normal"), plain.own, plain.opp, plain.turn)
    options.check_rules(position.rules)
    return replace(problem, position=position)


def _problems(source: _Source, options: PositionOptions, as_json: bool) -> Iterator[tuple[int | None, Problem]]:
    """Yield the position of each line with the line's number, while reading; blank lines and comments are skipped."""
    is_empty, bad = True, 0
    try:
        for number, line in enumerate(source.lines, start=1):
            if not line.strip() or line.lstrip().startswith(("%", "#")):
                continue
            is_empty = False
            try:
                problem = _problem(line.rstrip("\r\n"), options)
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
            print(f"… and {count_noun(more, 'more line')} that cannot be read", file=sys.stderr)
    if is_empty:
        print(f"reversi: no positions in {source.place}: expected a board, moves, OBF or GGF", file=sys.stderr)
    if bad:
        sys.exit(1)
