"""WTHOR files, and the replay of their games."""

from itertools import islice

import numpy as np
import pytest

from reversi_env import Position, batch
from reversi_env.errors import IllegalMoveError, NotationError
from reversi_env.kernels.games import NO_MOVE, positions_with, replay_games
from reversi_env.notation import Game, read_wthor, read_wthor_names
from tests.oracles.strategies import BLACK_MUST_PASS, random_moves, wthor_file, wthor_header, wthor_record


def games_with_passes(count):
    """Return random whole games of standard Reversi that contain a pass."""
    games = (random_moves(Position.initial(), seed) for seed in range(1000))
    return list(islice((moves for moves in games if "pass" in moves), count))


def test_header_and_columns_are_read():
    file = read_wthor(wthor_file(wthor_record(["a1", "h1", "a8", "f5"], 40, 38, 1, 2, 65_535), wthor_record([], 0, 64)))
    header = {"created": (2001, 5, 2), "games": 2, "names": 0, "year": 1999, "size": 8, "kind": 0, "depth": 24}
    assert file.header._asdict() == header
    assert len(file) == 2
    assert file.tournaments.tolist() == [1, 7]
    assert file.black_players.tolist() == [2, 300]
    assert file.white_players.tolist() == [65_535, 40_000]
    assert file.scores.tolist() == [40, 0]
    assert file.theoretical_scores.tolist() == [38, 64]
    assert file.squares.shape == (2, 60)
    assert file.squares[0, :6].tolist() == [0, 7, 56, 37, NO_MOVE, NO_MOVE]


def test_record_is_read_as_game_with_passes_and_metadata():
    moves = games_with_passes(1)[0]
    file = read_wthor(wthor_file(wthor_record([]), wthor_record(moves, score=40)))
    tags = {"DT": "1999", "TournamentId": "7", "BlackId": "300", "WhiteId": "40000", "TheoreticalScore": "30"}
    assert list(file.games())[1] == file.game(1) == Game(Position.initial(), moves, result=16, tags=tags)


def names_file(size, *names):
    """Return the bytes of a names file; its header has the count in a field that game files leave empty."""
    header = bytes([20, 1, 5, 2, 0, 0, 0, 0, *len(names).to_bytes(2, "little"), 0, 0, 0, 0, 0, 0])
    return header + b"".join(name.encode("latin-1").ljust(size, b"\0") for name in names)


def test_names_are_read_from_files_in_the_same_folder(tmp_path):
    path = tmp_path / "WTH_1999.wtb"
    path.write_bytes(wthor_file(wthor_record(["f5"], 40, 38, 1, 2, 0), wthor_record([], 0, 64, 1, 3, 7)))
    assert read_wthor(path).game(0).black is None
    (tmp_path / "WTHOR.JOU").write_bytes(names_file(20, "Andriani Bintsa", "B", "Hassan Ali", "Caspard Fran\u00e7ois"))
    (tmp_path / "WTHOR.TRN").write_bytes(names_file(26, "Championnat de France", "Open de Cannes"))
    first, second = read_wthor(path).games()
    assert (first.black, first.white, first.tags["Tournament"]) == ("Hassan Ali", "Andriani Bintsa", "Open de Cannes")
    assert (second.black, second.white) == ("Caspard Fran\u00e7ois", None)  # its number is not in the file
    assert read_wthor(path.read_bytes()).player_names == ()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("a.jou", names_file(20, "A", "B")[:-1]), ("a.TRN", names_file(20, "A")), ("a.jou", b"")),
        ("a.wtb", names_file(20, "A")),
    ],
)
def test_invalid_names_file_is_rejected(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(NotationError, match=name):
        read_wthor_names(tmp_path / name)


def test_replay_and_positions_match_single_games():
    games = games_with_passes(5) + [random_moves(Position.initial(), seed, plies=20 + seed) for seed in range(5)]
    file = read_wthor(wthor_file(*map(wthor_record, games)))
    replays, finals = file.replay(), [Game(Position.initial(), moves).final() for moves in games]
    assert replays.black.tolist() == [final.black for final in finals]
    assert replays.white.tolist() == [final.white for final in finals]
    assert replays.plies.tolist() == [len(moves) - moves.count("pass") for moves in games]
    assert not replays.illegal.any()
    by_empties = [{p.empties: (p.own, p.opp) for p in game.positions() if not p.must_pass()} for game in file.games()]
    expected = [boards[40] for boards in by_empties if 40 in boards]
    assert list(zip(*(boards.tolist() for boards in file.positions(40)), strict=True)) == expected
    assert file.positions(0)[0].size == 0


def test_illegal_move_is_flagged_by_replay_and_raised_by_game():
    file = read_wthor(wthor_file(wthor_record(["f5"]), wthor_record(["f5", "f5", "d6"])))
    replays = file.replay()
    assert replays.illegal.tolist() == [False, True]
    assert replays.plies.tolist() == [1, 1]
    assert replays.black[1] == Position.initial().play("f5").black
    with pytest.raises(IllegalMoveError, match="game 1: move 2"):
        file.game(1)


@pytest.mark.parametrize("wrapped", [bytes, bytearray, memoryview])
def test_bytes_types_and_files_are_read_the_same(wrapped, tmp_path):
    data = wthor_file(wthor_record(["f5", "d6"]))
    path = tmp_path / "one.wtb"
    path.write_bytes(data)
    for source in (wrapped(data), path, str(path)):
        assert read_wthor(source).game(0).moves == ("f5", "d6")


@pytest.mark.parametrize("size", [0, 8])
def test_file_without_games_is_read(size):
    assert len(read_wthor(wthor_header(0, size=size)).replay().black) == 0


def with_byte(position, value):
    data = bytearray(wthor_file(wthor_record(["f5"]), wthor_record(["f5", "d6"])))
    data[position] = value
    return bytes(data)


SECOND_GAME = 16 + 68


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((b"", "0 bytes"), (b"short", "5 bytes"), (wthor_file(wthor_record(["f5"]))[:-1], "83 bytes")),
        (wthor_file(wthor_record(["f5"])) + b"\0", "85 bytes"),
        *((b"\xff" * 84, "size"), (wthor_header(0, size=10), "size 10"), (wthor_header(0, kind=1), "kind 1")),
        *((with_byte(14, 61), "depth 61"), (wthor_header(2**32 - 1), "16 bytes")),
        *((with_byte(SECOND_GAME + 8, value), "game 1, move 1") for value in (10, 19, 90)),
        (with_byte(SECOND_GAME + 8, 0), "game 1, move 2"),
        (with_byte(SECOND_GAME + 6, 65), "game 1: scores 65"),
        (with_byte(SECOND_GAME + 7, 255), "game 1: theoretical_scores 255"),
    ],
)
def test_invalid_bytes_error_names_the_problem(data, message, tmp_path):
    path = tmp_path / "bad.wtb"
    path.write_bytes(data)
    for source, name in ((data, "data"), (path, "bad.wtb")):
        with pytest.raises(NotationError, match=f"{name}.*{message}"):
            read_wthor(source)


@pytest.mark.parametrize(
    ("method", "number"),
    [("game", -1), ("game", 1), ("played", -1), ("played", 60), ("positions", -1), ("positions", 61)],
)
def test_index_out_of_range_is_rejected(method, number):
    with pytest.raises(NotationError, match=str(number)):
        getattr(read_wthor(wthor_file(wthor_record(["f5"]))), method)(number)


def test_database_games_are_legal_with_recorded_scores(external_data):
    paths = sorted((external_data / "wthor").glob("*.wtb"))
    if not paths:
        pytest.skip(f"no wthor/*.wtb in {external_data}")
    played_out = 0
    for path in paths:
        file = read_wthor(path)
        replays = file.replay()
        assert not replays.illegal.any()
        over = batch.is_over(replays.black, replays.white)
        scores = batch.final_scores(replays.black, replays.white)[over]
        assert (scores == 2 * file.scores[over].astype(int) - 64).all()
        played_out += over.sum()
    assert played_out


def rows_and_boards(start, rows, dtype=np.int8):
    """Return the arguments of the kernels for rows of squares."""
    squares = np.array([[*row, *[NO_MOVE] * (64 - len(row))] for row in rows], dtype)
    return squares, *(np.uint64(board) for board in (start.own, start.opp, start.rules.playable))


def replayed(start, rows, dtype=np.int8):
    """Return (own, opp, plies, illegal) of each row of squares."""
    columns = replay_games(*rows_and_boards(start, rows, dtype))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def squares_of(start, moves):
    rules = start.rules
    return [rules.square_of(rules.action_from_name(move)) for move in moves if move != "pass"]


def boards_of(start, final):
    """Return the boards of *final*, first that of the side to move in *start*."""
    return (final.own, final.opp) if final.turn == start.turn else (final.opp, final.own)


def test_replay_stops_before_first_illegal_move():
    start = Position.initial()
    after = start.play("f5")
    stopped = (after.opp, after.own, 1, True)
    f5, d6, d4 = squares_of(start, ["f5", "d6", "d4"])
    for illegal in (f5, d4, 0, 64, 127, -2, -128):
        assert replayed(start, [[f5, illegal, d6]]) == [stopped]
        arguments = rows_and_boards(start, [[f5, illegal, d6]])
        assert [bool(positions_with(*arguments, empties)[2][0]) for empties in (60, 59, 58)] == [True, True, False]


def test_implicit_pass_is_accepted_only_where_forced():
    c1, start = squares_of(BLACK_MUST_PASS, ["c1"]), Position.initial()
    final = BLACK_MUST_PASS.play("pass").play("c1")
    assert replayed(BLACK_MUST_PASS, [c1]) == [(*boards_of(BLACK_MUST_PASS, final), 1, False)]
    assert replayed(start, [squares_of(start, ["e3"])]) == [(start.own, start.opp, 0, True)]  # a move of white's
    # next to a1, outside the small board, a move would flip a disc
    beside_a1 = squares_of(BLACK_MUST_PASS, ["a1"])[0] - 1
    assert replayed(BLACK_MUST_PASS, [[beside_a1]]) == [(BLACK_MUST_PASS.own, BLACK_MUST_PASS.opp, 0, True)]
