"""`play.game.Game`: moves with passes, undo, endings, conversion to and from records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from play.game import Game
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import IllegalMoveError
from reversi_env.rules import BLACK, WHITE
from tests.oracles.strategies import any_rules


@st.composite
def games(draw):
    """A random game, sometimes complete, with explicit or omitted passes."""
    game = Game(draw(any_rules))
    for choice in draw(st.lists(st.integers(0, 2**20), max_size=70)):
        actions = game.position.legal_actions()
        if not actions:
            break
        if game.position.must_pass() and choice % 2:
            after = game.position.play("pass")
            game.play(after.legal_moves()[choice % len(after.legal_actions())])
        else:
            game.play(actions[choice % len(actions)], seconds=choice % 7 or None)
    return game


def state(game):
    return game.moves, game.positions, game.annotations, game.ending


@settings(max_examples=40)
@given(games())
def test_undo_and_redo_are_inverse(game):
    before = state(game)
    steps = len(game.moves)
    for _ in range(steps):
        game.undo()
    assert game.position == game.start
    for _ in range(steps):
        game.redo()
    assert state(game) == before
    if steps:
        game.undo()
        game.play(game.position.legal_moves()[0])  # clears the redo history
        with pytest.raises(ReversiError, match="none was taken back"):
            game.redo()


@settings(max_examples=40)
@given(games())
def test_records_restore_moves_positions_and_annotations(game):
    assert list(game.positions) == list(game.record().positions())
    assert all(game.mover(number) == game.positions[number].turn for number in range(len(game.moves)))
    again = Game.from_ggf(game.to_ggf())
    assert again.moves == game.moves == Game.from_transcript(game.to_transcript(), game.start).moves
    assert again.annotations == game.annotations
    assert [(p.own, p.opp, p.turn) for p in again.positions] == [(p.own, p.opp, p.turn) for p in game.positions]
    assert again.is_over() == game.is_over()
    if game.is_over():
        assert (again.score(), again.winner()) == (game.score(), game.winner())


@settings(max_examples=40)
@given(games(), st.sampled_from([{BLACK}, {WHITE}, {BLACK, WHITE}]))
def test_undo_stops_where_the_player_has_a_choice(game, colours):
    before = state(game)
    try:
        taken = game.undo_to(colours)
    except ReversiError:
        assert all(p.turn not in colours or p.must_pass() for p in game.positions[:-1])
        assert state(game) == before
        return
    assert taken
    assert game.turn in colours
    assert not game.position.must_pass()
    assert game.moves + tuple(reversed(taken)) == before[0]


def test_a_forced_pass_may_be_omitted():
    start = Position.from_text("XO-- -XXX OXXX -OXX", turn=WHITE)
    while not start.must_pass():
        start = start.play(start.legal_moves()[0])
    game = Game(start)
    move = start.play("pass").legal_moves()[0]
    game.play(move, seconds=2)
    assert game.moves == ("pass", move)
    assert [note.seconds for note in game.annotations] == [None, 2]
    assert game.undo_to({start.turn.other}) == [move]
    assert game.moves == ("pass",)
    assert Game(start).play_forced_pass()


def test_undo_continues_before_a_pass():
    """White had to pass, so undo takes back its last move before the pass."""
    game = Game(Rules(4))
    for move in ("c4", "d2", "c1", "b4", "a3", "a1", "a4", "pass", "b1"):
        game.play(move)
    assert game.undo_to({WHITE}) == ["b1", "pass", "a4", "a1"]
    assert game.redo_to({WHITE})[:3] == ["a1", "a4", "pass"]


def test_an_illegal_move_changes_nothing():
    game = Game()
    game.play("f5")
    game.undo()
    for move in ("a1", "pass", "z9", 64, ""):
        with pytest.raises(ReversiError):
            game.play(move)
    assert game.moves == ()
    assert game.redo() == "f5"


@pytest.mark.parametrize("ending", ["resigned", "timeout"])
@pytest.mark.parametrize("loser", [BLACK, WHITE])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_resigning_and_timeouts_lose_all_discs(ending, loser, variant):
    game = Game(Rules(6, variant))
    game.play("e4")
    game.end(ending, loser)
    assert game.is_over()
    assert game.winner() == loser.other
    assert game.score(loser) == -36
    with pytest.raises(IllegalMoveError, match="is over"):
        game.play(game.position.legal_moves()[0])
    again = Game.from_ggf(game.to_ggf())
    assert (again.ending, again.winner()) == (ending, loser.other)
    assert game.undo() is None
    assert not game.is_over()


def test_invalid_endings_are_refused():
    game = Game(Rules(4))
    with pytest.raises(ReversiError, match="expected a loser"):
        game.end("resigned")
    with pytest.raises(ReversiError, match="expected a loser"):
        game.end("agreed", BLACK)
    game.end("agreed")
    assert game.score() == 0
    with pytest.raises(ReversiError, match="over already"):
        game.end("resigned", BLACK)
