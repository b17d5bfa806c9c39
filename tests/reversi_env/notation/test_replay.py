"""The replay kernel against `Position`, on every board and from both sides."""

import numpy as np
import pytest

from reversi_env import Position
from reversi_env.kernels.games import NO_MOVE, positions_with, replay_games
from reversi_env.notation import Game
from tests.oracles.strategies import ALL_RULES, BLACK_MUST_PASS, random_moves


def replayed(start, rows, dtype=np.int8):
    """(own, opp, plies, illegal) of each row of squares."""
    width = max(map(len, rows))
    squares = np.array([[*row, *[NO_MOVE] * (width - len(row))] for row in rows], dtype)
    boards = (np.uint64(board) for board in (start.own, start.opp, start.rules.playable))
    return list(zip(*(column.tolist() for column in replay_games(squares, *boards)), strict=True))


def squares_of(start, moves):
    rules = start.rules
    return [rules.square_of(rules.action_from_name(move)) for move in moves if move != "pass"]


def boards_of(start, final):
    """(own, opp) of *final* as the sides to move and not to move in *start* see them."""
    return (final.own, final.opp) if final.turn == start.turn else (final.opp, final.own)


@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("opening_plies", [0, 3])
def test_random_games_pass_through_the_same_boards_to_the_same_end(rules, opening_plies):
    """On the way: the first position with so many empty squares where the side to move can, if the game came there."""
    start = Position.initial(rules).play_all(random_moves(Position.initial(rules), 7, opening_plies))
    games = [Game(start, random_moves(start, seed)) for seed in range(12)]
    assert any("pass" in game.moves for game in games)
    rows = [squares_of(start, game.moves) for game in games]
    finals = [(*boards_of(start, game.final()), len(row), False) for game, row in zip(games, rows, strict=True)]
    assert replayed(start, rows) == finals
    squares = np.array([[*row, *[NO_MOVE] * (64 - len(row))] for row in rows], np.int8)
    boards = [np.uint64(board) for board in (start.own, start.opp, rules.playable)]
    on_the_way = [
        {p.empties: (p.own, p.opp) for p in game.positions() if not p.must_pass() and not p.is_over()} for game in games
    ]
    for empties in range(start.empties + 1):
        found = zip(*(column.tolist() for column in positions_with(squares, *boards, empties)), strict=True)
        assert [(own, opp) if reached else None for own, opp, reached in found] == [
            way.get(empties) for way in on_the_way
        ]


def test_the_replay_stops_before_the_first_illegal_move():
    start = Position.initial()
    after = start.play("f5")
    stopped = (after.opp, after.own, 1, True)
    f5, d6, d4 = squares_of(start, ["f5", "d6", "d4"])
    for illegal in (f5, d4, 0, 64, 127, -2, -128):
        assert replayed(start, [[f5, illegal, d6]]) == [stopped]


def test_the_rim_around_a_small_board_is_off_the_board_even_where_a_move_there_would_turn_a_disc():
    (a1,) = squares_of(BLACK_MUST_PASS, ["a1"])
    beside_a1 = a1 - 1
    assert replayed(BLACK_MUST_PASS, [[beside_a1]]) == [(BLACK_MUST_PASS.own, BLACK_MUST_PASS.opp, 0, True)]


def test_a_pass_is_understood_only_where_it_is_forced():
    c1 = squares_of(BLACK_MUST_PASS, ["c1"])
    final = BLACK_MUST_PASS.play("pass").play("c1")
    assert replayed(BLACK_MUST_PASS, [c1]) == [(*boards_of(BLACK_MUST_PASS, final), 1, False)]
    start = Position.initial()
    whites_move = squares_of(start, ["e3"])
    assert replayed(start, [whites_move]) == [(start.own, start.opp, 0, True)]


@pytest.mark.parametrize("dtype", [np.int64, pytest.param(np.int16, marks=pytest.mark.slow)])
def test_wider_integers_hold_the_same_records(dtype):
    start = Position.initial()
    row = squares_of(start, random_moves(start, 3))
    assert replayed(start, [row], dtype) == replayed(start, [row], np.int8)


def test_a_record_with_an_illegal_move_reaches_what_was_before_it():
    start = Position.initial()
    f5, d6, a1 = *squares_of(start, ["f5", "d6"]), 0
    boards = [np.uint64(board) for board in (start.own, start.opp, start.rules.playable)]
    squares = np.array([[f5, d6, a1, NO_MOVE]], np.int8)
    reached = [bool(positions_with(squares, *boards, empties)[2][0]) for empties in (60, 59, 58, 57)]
    assert reached == [True, True, True, False]
