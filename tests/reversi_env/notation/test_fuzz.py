"""Fuzzing: for any input, a reader returns a consistent result or raises a `ReversiError`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reversi_env import Position, ReversiError, Rules, notation
from tests.oracles.strategies import BLACK_MUST_PASS, random_moves, wthor_file, wthor_record

fuzzed = settings(derandomize=True, deadline=None, max_examples=140)

STARTS = [Position.initial(), Position.initial(Rules(6, "reversed")), BLACK_MUST_PASS]
TRANSCRIPTS = [
    "f5d6c3d3c4",
    "1. F5 d6 2. c3 -- pass",
    notation.write_transcript(random_moves(Position.initial(), 1), "explicit"),
]
LINES = [
    "-----OX--XO----- X; B1:-8; A2:-8; D3:+16; C4:-8; % the start",
    "--------------OX----XO-------------- O; C4:+4;",
    "O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X-------- X; A2:+38; C7:+36; D8:+34;",
]
RECORDS = [
    r"(;GM[Othello]PB[A\]nn]TY[s8r20]RE[-4.00:r]B[d3//0.01]W[c5/-1.50/4.2];)",
    notation.write_ggf(
        notation.Game(
            BLACK_MUST_PASS, ("pass", "c1"), annotations=(notation.Annotation(1.0), notation.Annotation(None, 2.0))
        )
    ),
    "1 (;TY[6a]BO[6 ------ ------ --O*-- --*O-- ------ ------ *]B[b3];)",
]
#: A digit that int() takes, a lone surrogate, a number too long for int(), a number too large for float().
NASTY_PIECES = ["９", "\0", "\ud800", "9" * 5000, "1e999"]
WTHOR = wthor_file(*(wthor_record(random_moves(Position.initial(), seed)) for seed in range(3)))


@st.composite
def edited(draw, originals, pieces):
    """Return one of the *originals* with some pieces deleted, inserted or repeated."""
    content = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.integers(begin, min(len(content), begin + 12)))
        repeats = draw(st.sampled_from([0, 0, 0, 2]))
        content = content[:begin] + content[begin:end] * repeats + draw(pieces) + content[end:]
    return content


def text_like(originals):
    """Return arbitrary text, text of the format's own characters, and edited originals."""
    own_characters = st.sampled_from(sorted(set("".join(originals))))
    pieces = st.one_of(st.text(own_characters, max_size=3), st.text(max_size=3), st.sampled_from(NASTY_PIECES))
    return st.one_of(st.text(), st.text(own_characters), edited(originals, pieces))


def accepted(reader, *args):
    """Return the result of *reader*, or None if it raises an error of this package."""
    try:
        return reader(*args)
    except ReversiError:
        return None


@fuzzed
@given(text_like(TRANSCRIPTS), st.sampled_from(STARTS))
def test_fuzzed_transcripts(text, start):
    game = accepted(notation.read_transcript, text, start)
    if game is not None:
        assert game.final().round - start.round == len(game.moves) - game.moves.count("pass")
        assert notation.read_transcript(notation.write_transcript(game, "explicit"), start) == game


@fuzzed
@given(text_like(LINES), st.sampled_from([None, Rules(8), Rules(4, "reversed")]))
def test_fuzzed_obf_lines(line, rules):
    problem = accepted(notation.read_obf_line, line, rules)
    if problem is not None:
        assert {move for move, _ in problem.scores} <= set(problem.position.legal_moves())
        assert notation.read_obf_line(notation.write_obf_line(problem), rules) == problem


@fuzzed
@given(text_like(RECORDS))
def test_fuzzed_ggf_games(text):
    game = accepted(notation.read_ggf_game, text)
    if game is not None:
        assert game.final().round - game.start.round == len(game.moves) - game.moves.count("pass")
        assert notation.read_ggf_game(notation.write_ggf(game)) == game


@pytest.mark.parametrize("reader", [notation.read_obf, notation.read_ggf])
def test_fuzzed_obf_and_ggf_files_and_lists(reader, tmp_path):
    path = tmp_path / "fuzzed"
    pieces = st.one_of(st.binary(), edited([text.encode() for text in LINES + RECORDS], st.binary(max_size=3)))
    lines = st.lists(st.one_of(text_like(LINES), text_like(RECORDS), st.integers(), st.none()), max_size=4)

    @fuzzed
    @given(st.lists(pieces, max_size=3).map(b"\n".join), lines)
    def check(data, source):
        path.write_bytes(data)
        from_file = accepted(lambda: list(reader(path)))
        assert from_file is None or all(item is not None for item in from_file)
        items = accepted(lambda: list(reader(source)))
        assert items is None or all(isinstance(line, str) for line in source)

    check()


@st.composite
def overwritten(draw):
    data = bytearray(WTHOR)
    for offset in draw(st.lists(st.integers(0, len(WTHOR) - 1), max_size=4)):
        data[offset] = draw(st.integers(0, 88))
    return bytes(data)


@settings(fuzzed, max_examples=280)
@given(
    st.one_of(st.binary(), st.binary(min_size=84, max_size=84), edited([WTHOR], st.binary(max_size=12)), overwritten())
)
def test_fuzzed_wthor_bytes(data):
    file = accepted(notation.read_wthor, data)
    if file is not None:
        games = [accepted(file.game, index) for index in range(len(file))]
        assert file.replay().illegal.tolist() == [game is None for game in games]
