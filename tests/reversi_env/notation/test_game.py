"""`Game`, which all readers share: replaying, equality, and what it refuses."""

import pickle

import pytest

from reversi_env import Position, Rules
from reversi_env.errors import IllegalMoveError, NotationError
from reversi_env.notation import Annotation, Game
from tests.oracles.strategies import BLACK_MUST_PASS

START = Position.initial()


def test_positions_are_the_start_and_one_more_for_every_move_pass_included():
    game = Game(BLACK_MUST_PASS, ("pass", "c1"))
    positions = list(game.positions())
    assert positions[0] == BLACK_MUST_PASS
    assert [str(position.turn) for position in positions] == ["black", "white", "black"]
    assert game.final() == positions[-1]
    assert game.final().to_text() == "OOO-" + "-" * 12


def test_a_game_without_moves_ends_where_it_starts():
    assert Game(START).final() == START


def test_move_names_are_kept_in_one_spelling():
    assert Game(START, ("F5", " d6")).moves == ("f5", "d6")


def test_replaying_an_illegal_move_names_its_number_and_the_legal_ones():
    with pytest.raises(IllegalMoveError, match="move 2: f5 by white is illegal: the legal moves are f4 d6 f6"):
        Game(START, ("f5", "f5")).final()


def test_a_name_off_the_board_is_refused_at_once():
    with pytest.raises(NotationError, match="'h8' is not a square of the 6x6 board"):
        Game(Position.initial(Rules(6)), ("h8",))


def test_annotations_must_be_as_many_as_moves():
    with pytest.raises(NotationError, match="1 annotations for 2 moves"):
        Game(START, ("f5", "d6"), annotations=(Annotation(1.0),))


def test_games_compare_by_value_tags_included_and_can_be_dictionary_keys():
    game = Game(START, ("f5",), tags={"DT": "1999"})
    assert game == Game(START, ("f5",), tags={"DT": "1999"})
    assert game != Game(START, ("f5",), tags={"DT": "2000"})
    assert len({game, Game(START, ("f5",), tags={"DT": "1999"})}) == 1


def test_changing_the_callers_dictionary_does_not_change_the_game():
    tags = {"DT": "1999"}
    game = Game(START, tags=tags)
    tags["DT"] = "2000"
    assert game.tags == {"DT": "1999"}


def test_games_can_be_sent_to_another_process():
    game = Game(START, ("f5",), black="Ann", tags={"DT": "1999"}, annotations=(Annotation(1.5, 2.0),))
    assert pickle.loads(pickle.dumps(game)) == game
