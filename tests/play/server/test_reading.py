"""Games and positions that visitors bring: moves, boards, OBF, GGF and WTHOR files; and the puzzles that they are given."""

import struct
from base64 import b64encode

import pytest

from models.human import RATINGS
from play.server.games.hall import MAX_PUZZLES
from play.server.workers import reading
from reversi_env import BLACK, WHITE, Position, Rules
from train.evaluation.puzzles import packaged_puzzles

BOARD = "-XOX" + "-" * 12
GGF = "(;GM[Othello]PB[Ann]TY[6a]RE[?]C[so]BO[6 ------ ------ --O*-- --*O-- ------ ------ *]B[b3];)"
WTHOR = struct.pack("<4BIHH4B", 20, 26, 1, 1, 2, 0, 1999, 8, 0, 0, 0) + 2 * (
    struct.pack("<3H2B", 1, 12, 13, 40, 40) + bytes([56, 64]) + bytes(58)
)


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"text": "f5 d6 c3"}, [("normal", "black", ["f5", "d6", "c3"], None, "")]),
        ({"text": GGF + "\n" + GGF}, [("reversed", "black", ["b3"], "Ann", "so")] * 2),
        ({"text": GGF + "\n" + GGF, "first": 1}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"text": BOARD, "variant": "reversed"}, [("reversed", "black", [], None, "")]),
        ({"text": "-XOX\n----\n----\n---- O"}, [("normal", "white", [], None, "")]),
        (
            {"text": f"{BOARD} X; % one\n\n% none\n{BOARD} O; A1:+3"},
            [("normal", "black", [], None, "one"), ("normal", "white", [], None, "a1:+3")],
        ),
        ({"text": f"\ufeff% c\r% d\r{BOARD} X; % see ( ; x\r\n"}, [("normal", "black", [], None, "see ( ; x")]),
        ({"text": GGF.replace("(;", "( ;")}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"text": ""}, []),
        ({"file": b64encode(b" \n").decode()}, []),
        ({"file": b64encode(GGF.encode("latin-1")).decode()}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"file": b64encode(GGF.encode("utf-16")).decode()}, [("reversed", "black", ["b3"], "Ann", "so")]),
        ({"file": b64encode(WTHOR).decode()}, [("normal", "black", ["f5", "d6"], "#12", "1999")] * 2),
    ],
)
def test_games_and_positions_are_read(api, request_, told):
    read = api.call("POST", "/api/transcripts", json=request_).json()
    found = [tuple(game[name] for name in ("variant", "turn", "moves", "black", "comment")) for game in read["games"]]
    assert found == told
    assert not read["more"]
    for game in read["games"]:
        assert Position.from_text(game["board"]).rules.size == game["size"]


def test_of_many_games_some_are_told_at_a_time(api, monkeypatch):
    monkeypatch.setattr(reading, "MAX_GAMES", 1)
    for file in (GGF.encode() * 2, WTHOR):
        request = {"file": b64encode(file).decode()}
        pages = [api.call("POST", "/api/transcripts", json=request | {"first": first}).json() for first in range(3)]
        shown = [(len(page["games"]), page["first"], page["more"]) for page in pages]
        assert shown == [(1, 0, True), (1, 1, False), (0, 2, False)]


def test_puzzles_are_given_by_rating_and_not_without_end(special):
    api = special(puzzle_burst=4, puzzles_per_second=0.0)
    found = {}
    for rating in (0, 1800):
        found[rating] = api.call("POST", "/api/puzzles", json={"rating": rating}).json()["puzzles"]
        assert len({one["number"] for one in found[rating]}) == MAX_PUZZLES
        for one in found[rating]:
            puzzle = packaged_puzzles(Rules())[one["number"]]
            turn = BLACK if one["turn"] == "black" else WHITE
            assert puzzle.position == Position.from_text(one["board"], turn)
            assert (one["move"], one["value"], one["margin"]) == (puzzle.move, puzzle.value, puzzle.margin)
            assert one["rating"] == puzzle.rating
    assert {one["rating"] for one in found[0]} == {round(sum(RATINGS[:2]) / 2)}  # one level misses them
    assert {one["rating"] for one in found[1800]} == {round(sum(RATINGS[5:7]) / 2)}  # and here six do: the nearest
    assert api.call("POST", "/api/puzzles", json={"size": 4}).json() == {"puzzles": []}
    assert [api.call("POST", "/api/puzzles", json={}).status_code for _ in range(2)] == [200, 429]
