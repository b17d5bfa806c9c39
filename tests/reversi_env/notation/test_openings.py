"""Names of openings: every line of the list, in every image, and as a game goes."""

import pytest

from reversi_env import Position, Rules
from reversi_env.batch import SYMMETRIES, square_image
from reversi_env.notation.openings import name_of_game, name_of_positions, opening_name, openings


def images(moves):
    """A line of moves under the symmetries of the start: those that leave its four discs where they are."""
    start, rules = Position.initial(), Rules()
    for symmetry in range(SYMMETRIES):
        if start.transformed(symmetry) == start:
            actions = [rules.action_from_name(move) for move in moves]
            yield [rules.name_of(square_image(action, symmetry)) for action in actions]


def test_every_line_has_its_name_in_every_image():
    assert len(openings()) == 76
    named = {}
    for opening in openings():
        turned = list(images(opening.moves))
        assert len({moves[0] for moves in turned}) == 4
        assert {name_of_game(moves) for moves in turned} == {opening.name}
        after = Position.initial().play_all(opening.moves)
        named |= {after.transformed(symmetry): opening.name for symmetry in range(SYMMETRIES)}
    for opening in openings()[::6]:  # and what is beside a line has the name of another, or none
        before = Position.initial().play_all(opening.moves[:-1])
        for move in before.legal_moves():
            assert opening_name(before.play(move)) == named.get(before.play(move))


def test_a_game_keeps_its_last_name_and_orders_of_moves_do_not_matter():
    tiger = ["f5", "d6", "c3", "d3", "c4"]
    named = [name_of_game(tiger[:count]) for count in range(6)]
    assert named == [None, None, "Perpendicular Opening", "Perpendicular Opening", "Perpendicular Opening", "Tiger"]
    assert name_of_game([*tiger, "f3"]) == name_of_game(["f5", "d6", "c4", "d3", "c3"]) == "Tiger"
    assert name_of_positions([]) is None


@pytest.mark.parametrize("rules", [Rules(6), Rules(8, "reversed"), Rules(8, "normal", "parallel")], ids=str)
def test_other_games_have_no_names(rules):
    start = Position.initial(rules)
    move = start.legal_moves()[0]
    assert name_of_game([move, start.play(move).legal_moves()[0]], start) is None
