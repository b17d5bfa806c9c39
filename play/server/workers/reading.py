"""Reading of games and positions from text or from a file."""

import re
from collections.abc import Iterator
from itertools import islice
from math import isqrt
from typing import Any

from reversi_env import Position, Rules
from reversi_env.kernels.games import NO_MOVE
from reversi_env.notation import Game, read_ggf, read_obf_line, read_transcript, read_wthor
from reversi_env.notation.ggf import looks_like_ggf
from reversi_env.notation.text import UTF_16, decoded
from reversi_env.rules import SIZES, Variant

#: Maximum number of games per answer; a file may have many thousands.
MAX_GAMES = 500
#: Lines of comments, as in OBF, before anything else.
_COMMENTS = re.compile(r"\s*(?:%[^\n]*(?:\n\s*|$))*")
#: The beginning of a board; moves do not match.
_BOARD = re.compile(r"\s*(?:[-._XxOo*0BbWw●○]\s*){16}")


def read_games(text: str, file: bytes, rules: Rules, first: int = 0) -> dict[str, Any]:
    """Return the games in *text*, or in *file* (WTHOR or text) if it is not empty, from number *first* on, as a `Transcript`.

    Text is GGF, boards (OBF or plain, with the variant of *rules*), or the moves of one game by *rules*.
    """
    if b"\0" in file[:16] and not file.startswith(UTF_16):  # the header of a WTHOR file, not text
        games = _games_in_wthor(file, first)
    else:
        games = islice(_games_in_text(decoded(file) if file else text, rules), first, None)
    games_read = list(islice(games, MAX_GAMES + 1))
    return {"games": games_read[:MAX_GAMES], "first": first, "more": len(games_read) > MAX_GAMES}


def _games_in_text(text: str, rules: Rules) -> Iterator[dict[str, Any]]:
    text = _COMMENTS.sub("", "\n".join(text.removeprefix("\ufeff").splitlines()), count=1)
    if not text.strip():
        return
    if looks_like_ggf(text):
        yield from (_recorded_game(game, game.tags.get("C", "")) for game in read_ggf(text.strip().splitlines()))
    elif _BOARD.match(text):
        lines = [text] if len("".join(text.split())) in _LENGTHS else text.splitlines()
        yield from (_problem(line, rules.variant) for line in lines if line.partition("%")[0].strip())
    else:
        yield _recorded_game(read_transcript(text, Position.initial(rules)))


#: Numbers of characters of a board, without and with the side to move after it.
_LENGTHS = {size * size + more for size in SIZES for more in (0, 1)}


def _problem(line: str, variant: Variant) -> dict[str, Any]:
    """Return the position of a line of OBF; black is to move by default."""
    board, *rest = re.split("([;%])", line, maxsplit=1)  # scores and a comment
    squares = "".join(board.split())
    size = isqrt(len(squares))
    side = "X" if size * size == len(squares) else ""
    problem = read_obf_line(squares + side + "".join(rest), Rules(size, variant) if size in SIZES else None)
    scores = " ".join(f"{move}:{score:+d}" for move, score in problem.scores)
    return _recorded_game(Game(problem.position), " ".join(filter(None, (problem.comment, scores))))


def _recorded_game(game: Game, comment: str = "") -> dict[str, Any]:
    rules = game.start.rules
    return {
        "size": rules.size,
        "variant": rules.variant,
        "board": game.start.to_text(),
        "turn": str(game.start.turn),
        "moves": list(game.moves),
        "black": game.black,
        "white": game.white,
        "result": game.result,
        "comment": comment,
    }


def _games_in_wthor(file: bytes, first: int) -> Iterator[dict[str, Any]]:
    """Yield the games of a WTHOR file from number *first* on, without passes; players are named by their numbers."""
    wthor, start = read_wthor(file), Position.initial()
    names = [start.rules.name_of(start.rules.action_of(sq)) for sq in range(64)]
    for row in range(first, len(wthor)):
        moves = tuple(names[sq] for sq in wthor.squares[row] if sq != NO_MOVE)
        players = f"#{wthor.black_players[row]}", f"#{wthor.white_players[row]}"
        yield _recorded_game(Game(start, moves, *players, 2 * int(wthor.scores[row]) - 64), str(wthor.header.year))
