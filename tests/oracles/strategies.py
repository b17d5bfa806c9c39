"""Random games and positions: hypothesis strategies of all sizes and variants, seeded games, and WTHOR files."""

import random
import struct
from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from reversi_env import Position, Rules

ALL_RULES = [Rules(*game) for game in product((4, 6, 8), ("normal", "reversed"), ("standard", "parallel"))]
any_rules = st.sampled_from(ALL_RULES)


@st.composite
def reachable_positions(draw, rules=any_rules):
    """Draw a position of a random game, from its start to its end."""
    position = Position.initial(draw(rules))
    for choice in draw(st.lists(st.integers(0, 2**20), max_size=64)):
        if actions := position.legal_actions():
            position = position.play(actions[choice % len(actions)])
    return position


#: Black must pass; then white flips the last black disc with c1.
BLACK_MUST_PASS = Position.from_text("OX--" + "-" * 12)


def random_moves(start: Position, seed: int, plies: int = 200) -> tuple[str, ...]:
    """Return the moves of a random legal game from *start*, with passes, to its end or for *plies* plies."""
    rng = random.Random(seed)
    position, moves = start, []
    while len(moves) < plies and not position.is_over():
        moves.append(rng.choice(position.legal_moves()))
        position = position.play(moves[-1])
    return tuple(moves)


def wthor_record(
    moves: Sequence[str],
    score: int = 32,
    theoretical: int = 30,
    tournament: int = 7,
    black: int = 300,
    white: int = 40_000,
) -> bytes:
    """Return the 68 bytes of a game; the format omits passes."""
    squares = bytes(10 * int(move[1]) + "abcdefgh".index(move[0]) + 1 for move in moves if move != "pass")
    return struct.pack("<3H2B", tournament, black, white, score, theoretical) + squares.ljust(60, b"\0")


def wthor_header(games: int, size: int = 8, kind: int = 0) -> bytes:
    """Return the 16 bytes of a header of 2 May 2001, for games of 1999 solved from 24 empty squares."""
    return struct.pack("<4BIHH4B", 20, 1, 5, 2, games, 0, 1999, size, kind, 24, 0)


def wthor_file(*records: bytes) -> bytes:
    return wthor_header(len(records)) + b"".join(records)
