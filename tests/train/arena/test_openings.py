"""Openings: random ones that are all different, balanced ones, and files of every kind."""

from itertools import islice

import pytest

from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import Game, read_transcript, write_ggf
from search.engine.solver import solve
from train.arena.openings import opening_sequence, openings_of_file, random_openings


@pytest.mark.parametrize(("size", "variant"), [(4, "reversed"), (6, "normal"), (8, "reversed")])
def test_random_openings_differ_up_to_symmetry_and_follow_from_the_seed(size, variant):
    rules = Rules(size, variant)
    openings = list(islice(random_openings(rules, 4, 3), 10))
    assert openings == list(islice(random_openings(rules, 4, 3), 10))
    assert openings != list(islice(random_openings(rules, 4, 4), 10))
    assert len({opening.position.canonical() for opening in openings}) == 10
    for opening in openings:
        assert len(opening.moves) == 4
        assert opening.position == Position.initial(rules).play_all(opening.moves)
        assert not opening.position.is_over()


def test_when_there_are_no_new_openings_the_same_come_again():
    openings = list(islice(random_openings(Rules(4), 1, 0), 7))  # all four first moves are images of each other
    assert len(set(openings)) == 1
    assert [opening.moves for opening in islice(random_openings(Rules(), 0, 0), 3)] == [()] * 3


def test_balanced_openings_are_within_the_discs_allowed():
    for variant in ("normal", "reversed"):
        rules = Rules(4, variant)
        openings = list(islice(opening_sequence("balanced", rules, 4, 1), 8))
        assert all(abs(solve(opening.position).score) <= 2 for opening in openings)
        assert any(abs(solve(o.position).score) > 2 for o in islice(random_openings(rules, 4, 1), 8))
        assert len(set(islice(opening_sequence("balanced", rules), 8))) == 8  # by default there are enough
    with pytest.raises(ReversiError, match="is even enough"):
        next(opening_sequence("balanced", Rules(4), 0, 1))  # white wins by ten


@pytest.mark.slow
def test_balanced_openings_by_the_network():
    from search.agents.spec import make_agent

    openings = list(islice(opening_sequence("balanced", Rules(6), 4, 1, balance=1.0), 3))
    judge = make_agent("network:depth=8,table=1")
    for opening in openings:
        judge.engine(Rules(6)).clear()
        assert abs(judge.search(opening.position).value) <= 1


@pytest.mark.parametrize(
    ("name", "start"), [("lines.txt", "e6f4e3"), ("game.ggf", "e6f4e3"), ("archive.ggf", "e6f4e3"), ("board.obf", None)]
)
def test_openings_of_a_file(tmp_path, name, start):
    path, position = tmp_path / name, Position.initial().play_all(["e6", "f4", "e3"])
    content = {
        "lines.txt": "% two openings\ne6f4e3\n\nF5 d6 c3   % the second\n",
        "game.ggf": write_ggf(Game(Position.initial(), ("e6", "f4", "e3"))) + "\n",
        "archive.ggf": "1 " + write_ggf(Game(Position.initial(), ("e6", "f4", "e3"))) + "\n",
        "board.obf": f"{position.to_text()} O; % no moves known\n",
    }
    path.write_text(content[name])
    openings = openings_of_file(path, Rules())
    assert openings[0].position == position
    assert "".join(openings[0].moves) == (start or "")
    assert len(openings) == (2 if name == "lines.txt" else 1)
    assert [len(opening.moves) for opening in openings_of_file(path, Rules(), 1)] == (
        [1] * len(openings) if start else [0]
    )


def test_openings_of_a_wthor_file_are_cut(external_data):
    path = sorted((external_data / "wthor").glob("*.wtb"))[0]
    openings = openings_of_file(path, Rules(), 10)
    assert {len(opening.moves) for opening in openings} <= {9, 10}
    assert openings[0].moves[0] == "f5"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "holds no opening"),
        ("e6f4e3\ne6e6\n", "line 2 of .* is illegal"),
        ("e6f4 zz\n", "line 1 of .* is not a move"),
        ("X" * 64 + " O;\n", "line 1 of .* ends the game"),
        ("X" * 36 + " O;\n", "line 1 of .*expected 64"),
        ("(;GM[Othello]TY[8a]B[d3];)\n", "game 1 of .* is of the 8x8 reversed game: expected 8x8 normal"),
    ],
)
def test_bad_files(tmp_path, content, complaint):
    path = tmp_path / "openings"
    path.write_text(content)
    with pytest.raises(ReversiError, match=complaint):
        openings_of_file(path, Rules())


def test_whole_games_end_nothing_if_they_are_cut(tmp_path):
    game = read_transcript("e6f4e3f6g5d6e7f5c5")  # black has taken everything
    path = tmp_path / "short.txt"
    path.write_text("".join(game.moves))
    with pytest.raises(ReversiError, match="ends the game"):
        openings_of_file(path, Rules())
    assert len(openings_of_file(path, Rules(), 4)[0].moves) == 4
