"""Reviews of games: values, losses and verdicts against the solver; the table, the plot and the command."""

import itertools
import json

import pytest
from PIL import Image

from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import Game, write_ggf
from search.engine.engine import Engine
from search.engine.probcut import MARGIN
from search.engine.solver import solve_all_moves
from tests.oracles.strategies import random_moves
from tests.play.cli.test_contract import check_refusal
from train import analyse
from train.evaluation.review import verdict

LOSER = Game(Position.initial(Rules(4, "reversed")), random_moves(Position.initial(Rules(4, "reversed")), 3))


@pytest.fixture(scope="module")
def review():
    return analyse(LOSER, depth=3, exact=12)


def test_exact_values_and_losses_equal_the_solver(review):
    positions = dict(enumerate(LOSER.positions(), 1))
    assert [move.number for move in review] == [n for n, move in enumerate(LOSER.moves, 1) if move != "pass"]
    for move in review:
        values = solve_all_moves(positions[move.number])
        assert move.exact
        assert move.position == positions[move.number]
        assert (move.value_before, move.value_after) == (max(values.values()), values[move.move])
        assert move.loss == move.value_before - move.value_after
        assert values[move.best] == move.value_before
        assert (move.verdict == "best") == (move.loss == 0)
    assert review.lost("black") == sum(move.loss for move in review if move.colour == "black")
    assert {move.verdict for move in review} >= {"best", "blunder"}


def test_searched_losses_are_reproducible_and_not_negative():
    moves = random_moves(Position.initial(Rules(6)), 5, plies=12)
    game = Game(Position.initial(Rules(6)), moves)
    first, again = (analyse(game, "six-factor", depth=3, exact=0) for _ in range(2))
    assert list(first) == list(again)
    assert all(move.loss >= 0 and not move.exact for move in first)
    assert any(move.loss > 0 for move in first)
    assert len(analyse("f5d6c3", "six-factor", time=0.01)) == 3


def test_solved_book_makes_first_moves_of_6x6_exact():
    rules = Rules(6)
    start, opening = Position.initial(rules), ("c2", "b2")
    first = analyse(Game(start, (*opening, *random_moves(start.play_all(opening), 1, 6))), depth=2)
    assert [move.exact for move in first] == [True] * 7 + [False]
    values = [(move.value_before, move.value_after, move.verdict) for move in first[:2]]
    assert values == [(-4, -4, "best"), (4, -20, "blunder")]
    for before, after in itertools.pairwise(first[:7]):
        assert before.value_after == -after.value_before
    assert not any(move.exact for move in analyse(first.game, depth=2, exact=0))
    assert all(move.exact for move in analyse(LOSER, depth=2))


def test_timed_review_searches_the_played_move_selectively(monkeypatch):
    """A full-width search to the depth of a selective one would take far too long."""
    margins = []
    original = Engine.set_active_margin

    def recorded(engine, margin):
        margins.append(margin)
        original(engine, margin)

    monkeypatch.setattr(Engine, "set_active_margin", recorded)
    review = analyse("f5d6c3g5", "network", time=0.05)
    assert review[-1].loss > 0  # so that it was searched
    assert set(margins[1:]) == {MARGIN}  # after the warm-up search


@pytest.mark.parametrize(
    ("loss", "before", "after", "exact", "word"),
    [
        *((0, 4, 4, True, "best"), (1.5, 4, 2.5, False, "good"), (2, 30, 28, True, "inaccuracy")),
        (2, 0, -2, True, "mistake"),  # turns a draw into a loss
        *((2, 1, -1, False, "inaccuracy"), (5, 30, 25, True, "mistake"), (10, 30, 20, True, "blunder")),
    ],
)
def test_verdicts(loss, before, after, exact, word):
    assert verdict(loss, before, after, exact, 8) == word


def test_bad_input_is_refused():
    with pytest.raises(ReversiError, match="depth=1"):
        analyse("f5d6", depth=1)
    with pytest.raises(ReversiError, match="disks"):
        analyse("f5d6", "disks")
    with pytest.raises(ReversiError, match="green"):
        analyse(["f5", "d6"], "six-factor", depth=2).lost("green")


def test_review_command(review, tmp_path, reversi, json_lines):
    path = tmp_path / "game.ggf"
    path.write_text(write_ggf(LOSER) + "\n")
    status, out, _ = reversi("review", path, "--depth", 3, "--exact", 12, "--plot", tmp_path / "game.png")
    assert status == 0
    assert out.startswith(review.table())
    values = [float(line.split()[3]) for line in out.splitlines() if line.split()[0].isdigit()]
    sides = [1 if move.colour == "black" else -1 for move in review]
    expected = [(side * move.value_after, move.exact) for side, move in zip(sides, review, strict=True)]
    assert values == [round(value, 0 if exact else 1) for value, exact in expected]
    assert (tmp_path / "game.png").read_bytes().startswith(b"\x89PNG")
    for name, count in (("game.gif", len(LOSER.moves) + 1), ("last.png", 1)):
        assert reversi("review", path, "--depth", 2, "--evaluator", "six-factor", "--picture", tmp_path / name)[0] == 0
        with Image.open(tmp_path / name) as picture:
            assert getattr(picture, "n_frames", 1) == count
    (result,) = json_lines("review", path, "--depth", 3, "--exact", 12)
    assert result["moves"] == json.loads(json.dumps(review.as_dicts()))
    check_refusal(reversi, ("review", tmp_path / "nowhere.ggf"), "nowhere.ggf")
