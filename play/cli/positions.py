"""Positions from the command line: OBF files, standard input, a board typed out, or a game."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from os.path import isfile
from typing import TYPE_CHECKING

import typer

from play.cli.output import print_json

if TYPE_CHECKING:
    from play.game import Game
    from reversi_env import Position, Rules
    from reversi_env.notation import Problem
    from reversi_env.rules import Variant

#: How the moves of a game begin; no board does, which has no numbers. And how files with games are called.
_GAME = re.compile(r"\s*(?:1\.\s*)?[a-hA-H][1-8]")
_GAME_FILES = (".ggf", ".txt")
#: Messages about lines that cannot be read, at most.
MOST_BAD_LINES = 5
#: What no board has in it.
_NO_BOARD = re.compile(r"[^-._XxOo*0BbWw●○\s?]")


def read_lines(file: str) -> Iterator[str]:
    """The lines of a file, or of standard input for ``-`` as they come."""
    from reversi_env.errors import ReversiError, quoted
    from reversi_env.notation.sources import text_lines

    if file == "-":
        if sys.stdin.isatty():
            print("reading positions from the terminal, one a line; Ctrl-D ends", file=sys.stderr)
        yield from text_lines(io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="replace"))
        return
    try:
        yield from text_lines(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ReversiError(
            f"file {quoted(file, 300)} cannot be read, {reason}: expected OBF positions, or - for standard input"
        ) from None


def problems(file: str, variant: Variant, as_json: bool) -> Iterator[tuple[int, Problem]]:
    """Every problem line with its number; blank lines and comments are skipped.

    Lines that cannot be read are JSON objects among the results, or messages beside them, the first few only. At the end the
    command ends with status 1 if there were any.
    """
    from reversi_env import Position, Rules
    from reversi_env.errors import ReversiError
    from reversi_env.notation import Problem, read_obf_line

    found, bad = False, 0
    try:
        for number, line in enumerate(read_lines(file), start=1):
            if not line.strip() or line.lstrip().startswith(("%", "#")):
                continue
            found = True
            try:
                problem = read_obf_line(line)
                plain = problem.position
                position = Position(Rules(plain.rules.size, variant), plain.own, plain.opp, plain.turn)
            except ReversiError as error:
                bad += 1
                if as_json:
                    print_json({"line": number, "error": str(error)})
                elif bad <= MOST_BAD_LINES:
                    print(f"line {number}: {error}", file=sys.stderr)
                continue
            yield number, Problem(position, problem.scores, problem.comment)
    finally:
        more = bad - MOST_BAD_LINES
        if more > 0 and not as_json:
            print(f"… and {more} more line{'s' if more > 1 else ''} that cannot be read", file=sys.stderr)
    if not found:
        print(f"reversi: no positions in {'standard input' if file == '-' else file}", file=sys.stderr)
    if bad:
        raise typer.Exit(1)


def typed_position(
    board: str,
    side: str | None,
    variant: Variant,
    size: int | None = None,
    after: int | None = None,
    number: int | None = None,
) -> Position:
    """The position of a board with the side to move (by default black), of moves such as ``f5d6c3``, or of a file with a game.

    *number*: which game of a file with several, from 1; without it the first, which is said. *after*: how many moves of the
    game are made, passes counted; by default all. *size* is that of the start where the text does not tell.
    """
    from reversi_env.errors import ReversiError, count_noun, quoted

    if _GAME.match(board) or board.lower().endswith(_GAME_FILES) or isfile(board):  # noqa: PTH113 - a Path is upset by a text too long for a name
        if side is not None:
            raise ReversiError(f"side {quoted(side)} with the moves of a game: expected no side, the moves tell it")
        game = typed_game(board, variant, size, number)
        if after is not None and after > len(game.moves):
            length = count_noun(len(game.moves), "move")
            raise ReversiError(f"--after {after} in a game of {length}: expected no more than these")
        return game.position if after is None else game.positions[after]
    if number is not None:
        raise ReversiError(f"--game {number} with a board: expected a file with games")
    if after is not None:
        raise ReversiError(f"--after {after} with a board: expected the moves of a game, or a file with one")
    position = _position_of_board(board, side or "X", variant, size)
    _check_agreement(position.rules, variant, size)
    return position


def typed_game(text: str, variant: Variant, size: int | None = None, number: int | None = None) -> Game:
    """The game of moves such as ``f5d6c3``, or of a file; where that has rules of its own, options must not contradict them."""
    from play.game import Game
    from play.terminal.storage import load
    from reversi_env import ReversiError, Rules

    rules = Rules(8 if size is None else size, variant)
    if _GAME.match(text) and not isfile(text):  # noqa: PTH113 - as above; a file may be called g2.txt
        if number is not None:
            raise ReversiError(f"--game {number} with the moves of a game: expected a file with games")
        return Game.from_transcript(text, rules)
    game, count = load(text, number or 1, Game(rules))
    if number is None and count > 1:
        print(f"reversi: the first of {count} games in {text}; --game N takes another", file=sys.stderr)
    _check_agreement(game.rules, variant, size)
    return game


def _check_agreement(own: Rules, variant: Variant, size: int | None) -> None:
    """Refuse options that contradict the rules that a text has of its *own*; the normal game is the default, which says nothing."""
    from reversi_env import ReversiError

    if size not in (None, own.size):
        raise ReversiError(f"--size {size} with a game on {own.size}x{own.size}: expected the same")
    if variant == "reversed" and own.variant == "normal":
        raise ReversiError("--variant reversed with a normal game: expected the same")


def _position_of_board(board: str, side: str, variant: Variant, size: int | None) -> Position:
    from reversi_env import BLACK, WHITE, Position, Rules
    from reversi_env.errors import ReversiError, quoted

    sides = {"x": BLACK, "b": BLACK, "black": BLACK, "*": BLACK, "o": WHITE, "w": WHITE, "white": WHITE}
    if side.lower() not in sides:
        raise ReversiError(f"side {quoted(side)}: expected X (black) or O (white)")
    if board in ("start", "4", "6", "8"):
        rules = Rules((size or 8) if board == "start" else int(board), variant)
        return Position.from_colours(rules, *rules.start_boards, sides[side.lower()])
    if len(board) not in (16, 36, 64) and _NO_BOARD.search(board):
        raise ReversiError(
            f"{quoted(board, 300)} is neither a board nor moves, and no such file is there: expected X, O and - for every "
            "square, moves such as f5d6c3, or a file with a game"
        )
    plain = Position.from_text(board, sides[side.lower()])
    return Position(Rules(plain.rules.size, variant), plain.own, plain.opp, plain.turn)
