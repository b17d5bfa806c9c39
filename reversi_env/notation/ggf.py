"""GGF, the Generic Game Format: game records of the Generic Game Server (GGS) and of NBoard.

::

    (;GM[Othello]PC[GGS/os]DT[2003.12.15_12:33:18.MST]PB[Ann]PW[Bob]RB[2196.37]RW[2200.35]TI[5:00//2:00]TY[8]RE[+12.00]
    BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- *]B[d3//0.01]W[c5/-1.50/4.2];)

A file holds any number of games. The properties mean:

====== =================================================================================================================
GM     the game, ``Othello``
TY     the type: the size; with ``a``, anti-Othello (the reversed variant); with ``r`` and a number, a random start of
       so many discs; ``s`` (synchro: two games at once), ``k`` (komi), ``b`` and ``w``: how colours were assigned
BO     the start: the size, the squares row by row (``*`` black, ``O`` white, ``-`` empty) and the side to move
B, W   a move by black or white: the square or ``PA`` for a pass, then the evaluation (in discs, for the mover) and the
       seconds it took, each after a slash and either of them possibly empty or missing
PB, PW the players' names
RE     the result in discs for black, ``?`` if unknown; then ``:r`` resigned, ``:t`` on time, ``:s`` agreed on
====== =================================================================================================================

`Game.tags` keeps all other properties as they are (PC place, DT date, RB and RW ratings, TI, TB and TW clocks, KB, KW
and KM komi …), and TY if it has more than size and variant.

A pass may be left out where the rules force it. Without BO the game starts from the standard start. Board sizes are 4, 6
and 8. A game reads back as it was written, except for ``Rules.start``: the record has the board instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isfinite, nan

from reversi_env.errors import NotationError, quoted
from reversi_env.notation.game import Annotation, Ending, Game
from reversi_env.notation.obf import side_from_character
from reversi_env.notation.text import TextSource, text_lines, within
from reversi_env.position import Position
from reversi_env.rules import BLACK, PASS_NAME, WHITE, Rules

WRITTEN_PASS = "PA"
_MOVERS = {"B": BLACK, "W": WHITE}
_ENDINGS: dict[str, Ending] = {"r": "resigned", "t": "timeout", "s": "agreed"}
#: The customary order of the properties before the board; others follow.
_CUSTOMARY_ORDER = ("GM", "PC", "DT", "PB", "PW", "RB", "RW", "TI", "TB", "TW", "TY", "RE")
#: Properties that a `Game` holds elsewhere than in its tags.
_NOT_TAGS = frozenset({"GM", "PB", "PW", "RE", "BO", *_MOVERS})

_TYPE = re.compile(r"[skbwa]*([0-9]{1,3})(?:[skbwa]|r[0-9]*)*", re.IGNORECASE | re.ASCII)
_SIZE = re.compile(r"[0-9]{1,3}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def read_ggf(source: TextSource) -> Iterator[Game]:
    """Yield the games of a file (by its path) or of lines of text, in order; errors name the game by its number."""
    text = "\n".join(text_lines(source))
    offset, number = 0, 1
    while not is_blank(text, offset):
        with within(f"GGF game {number}"):
            properties, offset = read_properties(text, offset)
            game = _game_of(properties)
        yield game
        number += 1


def read_ggf_game(text: str) -> Game:
    """Read the one game in *text*.

    >>> read_ggf_game("(;GM[Othello]PB[Ann]B[d3//0.5]W[c5];)").moves
    ('d3', 'c5')
    """
    if not isinstance(text, str):
        raise NotationError(f"GGF game {quoted(text)} is not text: expected (;GM[Othello]…;)")
    with within(f"GGF game {quoted(text)}"):
        properties, end = read_properties(text, 0)
        if not is_blank(text, end):
            raise NotationError(f"{_excerpt(text, end)} after the game: expected nothing more")
        return _game_of(properties)


def write_ggf(game: Game) -> str:
    """Write the record of *game* on one line, without a line end (unless a name or tag holds one)."""
    properties = {"GM": "Othello", "TY": _type_of(game.start.rules), **_checked_tags(game), "RE": _result_text(game)}
    properties |= {name: player for name, player in (("PB", game.black), ("PW", game.white)) if player is not None}
    customary = [name for name in _CUSTOMARY_ORDER if name in properties]
    others = [name for name in properties if name not in _CUSTOMARY_ORDER]
    header = [(name, properties[name]) for name in customary + others]
    entries = (*header, ("BO", _board_text(game.start)), *_move_properties(game))
    return f"(;{''.join(f'{name}[{_SPECIAL.sub(_ESCAPED, value)}]' for name, value in entries)};)"


def _game_of(properties: Iterable[Property]) -> Game:
    tags, recorded = _split_properties(properties)
    if (name := tags.pop("GM", "Othello")).strip().lower() != "othello":
        raise NotationError(f"GM[{quoted(name)}] is another game: expected GM[Othello]")
    if "BO" in tags and tags.get("TY", "").strip() == "0":  # some programs write TY[0]; BO has the size
        del tags["TY"]
    start = _read_start(tags.get("TY"), tags.pop("BO", None))
    if tags.get("TY") == _type_of(start.rules):
        del tags["TY"]
    result, ending = _read_result(tags.pop("RE", "?"))
    moves, annotations = _replay(start, recorded)
    black, white = tags.pop("PB", None), tags.pop("PW", None)
    return Game(start, moves, black, white, result, ending, tags, annotations)


def _split_properties(properties: Iterable[Property]) -> tuple[dict[str, str], list[Property]]:
    """Separate the properties that occur once, by name, from the moves in order."""
    tags: dict[str, str] = {}
    moves = []
    for name, value in properties:
        if name in _MOVERS:
            moves.append((name, value))
        elif name in tags:
            raise NotationError(f"{name}[{quoted(tags[name])}], {name}[{quoted(value)}]: expected the property once")
        else:
            tags[name] = value
    return tags, moves


def _read_start(game_type: str | None, board: str | None) -> Position:
    rules = None if game_type is None else _rules_of_type(game_type)
    if board is None:
        return Position.initial(rules)
    with within(f"BO[{quoted(board)}]"):
        size, *rows = board.split() or [""]
        squares = "".join(rows)
        if not _SIZE.fullmatch(size) or not squares:
            raise NotationError("expected the size, the squares and the side to move, like 8 ---… *")
        rules = rules or Rules(int(size))
        if int(size) != rules.size:
            raise NotationError(f"size {size} contradicts TY[{quoted(game_type)}]: expected {rules.size}")
        return Position.from_text(squares[:-1], side_from_character(squares[-1]), rules)


def _rules_of_type(game_type: str) -> Rules:
    """Read the rules of a game type like ``8``, ``8a`` or ``s8r20``."""
    with within(f"TY[{quoted(game_type)}]"):
        parts = _TYPE.fullmatch(game_type.strip())
        if parts is None:
            raise NotationError("not a game type: expected the size and letters, like 8, 8a or s8r20")
        return Rules(int(parts[1]), "reversed" if "a" in game_type.lower() else "normal")


def _read_result(value: str) -> tuple[float | None, Ending | None]:
    with within(f"RE[{quoted(value)}]"):
        discs, _, flag = (part.strip() for part in value.partition(":"))
        if flag and flag not in _ENDINGS:
            raise NotationError(f"flag {quoted(flag)}: expected r, t or s after the colon")
        return None if discs == "?" else _read_number(discs), _ENDINGS.get(flag)


def _replay(start: Position, recorded: Iterable[Property]) -> tuple[tuple[str, ...], tuple[Annotation, ...]]:
    """Replay the moves: their names with every pass explicit, and their annotations unless all are empty."""
    position = start
    moves: list[str] = []
    annotations: list[Annotation] = []
    for number, (letter, value) in enumerate(recorded, 1):
        mover = _MOVERS[letter]
        with within(f"move {number}, {letter}[{quoted(value)}]"):
            move, annotation = _read_move(value)
            if position.turn != mover and position.must_pass():  # a pass that the record leaves out
                position = position.play(PASS_NAME)
                moves.append(PASS_NAME)
                annotations.append(Annotation())
            if position.turn != mover:
                raise NotationError(f"it is not {mover}'s turn: expected a move by {position.turn}")
            position = position.play(move)
        moves.append(move)
        annotations.append(annotation)
    is_annotated = any(annotation != Annotation() for annotation in annotations)
    return tuple(moves), tuple(annotations) if is_annotated else ()


def _read_move(value: str) -> tuple[str, Annotation]:
    """Read ``square``, ``square/evaluation`` or ``square/evaluation/seconds``."""
    move, *notes = (part.strip() for part in value.split("/"))
    if len(notes) > 2:
        raise NotationError("expected a move, an evaluation and seconds, with a slash between them")
    evaluation, seconds = (_read_number(note) if note else None for note in (*notes, "", "")[:2])
    return move, Annotation(evaluation, seconds)


def _read_number(text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else nan
    if not isfinite(number):
        raise NotationError(f"{quoted(text)} is not a number: expected one like -1.50")
    return number


def _type_of(rules: Rules) -> str:
    """Return the shortest game type with these rules."""
    return f"{rules.size}{'a' if rules.variant == 'reversed' else ''}"


def _checked_tags(game: Game) -> dict[str, str]:
    """Return the tags if each can be written as a property."""
    for name, value in game.tags.items():
        if not isinstance(value, str) or name in _NOT_TAGS or not re.fullmatch(_NAME, name):
            raise NotationError(f"tag {quoted(name)}={quoted(value)}: expected an unused property name, and text")
    plain_type = _type_of(game.start.rules)
    if "TY" in game.tags and _type_of(_rules_of_type(game.tags["TY"])) != plain_type:
        raise NotationError(f"tag TY {quoted(game.tags['TY'])} contradicts the rules: expected {plain_type}")
    return dict(game.tags)


def _result_text(game: Game) -> str:
    discs = "?" if game.result is None else _number_text(game.result, "+")
    flag = next((f":{letter}" for letter, ending in _ENDINGS.items() if ending == game.ending), "")
    return discs + flag


def _board_text(start: Position) -> str:
    size, squares = start.rules.size, start.to_text().replace("X", "*")
    rows = [squares[size * row : size * (row + 1)] for row in range(size)]
    return " ".join([str(size), *rows, "*" if start.turn == BLACK else "O"])


def _move_properties(game: Game) -> Iterator[Property]:
    letters = {colour: letter for letter, colour in _MOVERS.items()}
    *turns, _ = (position.turn for position in game.positions())
    annotations = game.annotations or [Annotation()] * len(game.moves)
    for turn, move, annotation in zip(turns, game.moves, annotations, strict=True):
        yield letters[turn], _move_text(move, annotation)


def _move_text(move: str, annotation: Annotation) -> str:
    notes = (annotation.evaluation, annotation.seconds)
    numbers = ["" if note is None else _number_text(note, "") for note in notes]
    return "/".join([WRITTEN_PASS if move == PASS_NAME else move, *numbers]).rstrip("/")


def _number_text(number: float, sign: str) -> str:
    """Write two decimals as the server does, or as many as the number needs."""
    if not isfinite(number):
        raise NotationError(f"number {quoted(number)} cannot be written: expected a finite one")
    text = f"{number:{sign}.2f}"
    return text if float(text) == number else f"{float(number):{sign}}"


Property = tuple[str, str]

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_SPACE = re.compile(r"\s*")
_GAME_BEGIN = re.compile(r"\s*(?:[0-9]+\s*)?\(\s*;")
_GAME_END = re.compile(r"\s*;\s*\)")
_PROPERTY = re.compile(rf"\s*({_NAME})\s*\[([^\]\\]*(?:\\.[^\]\\]*)*)\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL, _ESCAPED = re.compile(r"[\\\]]"), r"\\\g<0>"


def read_properties(text: str, offset: int) -> tuple[list[Property], int]:
    """Read the properties of the game that begins at *offset*: (properties, offset where the game ends)."""
    begin = _GAME_BEGIN.match(text, offset)
    if begin is None:
        raise NotationError(f"{_excerpt(text, offset)}: expected '(;'")
    offset = begin.end()
    properties = []
    while (end := _GAME_END.match(text, offset)) is None:
        entry = _PROPERTY.match(text, offset)
        if entry is None:
            raise NotationError(f"{_excerpt(text, offset)}: expected a property like B[d3], or ';)'")
        properties.append((entry[1], _ESCAPE.sub(r"\1", entry[2])))
        offset = entry.end()
    return properties, end.end()


def looks_like_ggf(text: str) -> bool:
    """Return whether *text* begins like a GGF game, with or without a number before it."""
    return _GAME_BEGIN.match(text) is not None


def is_blank(text: str, offset: int) -> bool:
    return _SPACE.fullmatch(text, offset) is not None


def _excerpt(text: str, offset: int) -> str:
    """Return the text at *offset* for an error message."""
    if offset >= len(text):
        return "end of the text"
    return f"{quoted(text[offset : offset + 40])} at character {offset + 1}"
