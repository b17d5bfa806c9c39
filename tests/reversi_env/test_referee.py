"""Our rules are those of OpenSpiel and Pgx, and the comparison notices whatever is not the same."""

import os
import re

import numpy as np
import pytest

from reversi_env import batch
from reversi_env.notation import read_transcript
from tests.oracles import referee
from tests.oracles import rules as reference
from tests.oracles.referee import DifferenceError, Seen, compare

PLIES = int(os.environ.get("REVERSI_PLIES", 10**8))
MODULES = {"openspiel": "pyspiel", "pgx": "pgx"}


class Twin:
    """The slow twin as a referee; with *lie*, (what, ply, game), it says something else there."""

    lie = (None, 0, 0)

    def __init__(self, count, seed):
        self.boards, self.ply = [reference.start_board(8) for _ in range(count)], 0

    def play(self, squares):
        self.ply += 1
        for game, square in enumerate(squares.tolist()):
            board = self.boards[game]
            self.boards[game] = -board if square == 64 else reference.after_move(board, *divmod(square, 8))

    def ends(self, games):
        return games.over

    def seen(self):
        sides = np.array([reference.to_boards(board) for board in self.boards])
        white = np.full(len(sides), self.ply % 2 == 1)
        moves = [reference.legal_squares(board) for board in self.boards]
        legal = [sum(1 << 8 * row + column for row, column in squares) for squares in moves]
        over = np.array([reference.is_over(board) for board in self.boards])
        won = [np.sign(board.sum()) * (-1 if self.ply % 2 else 1) for board in self.boards] * over
        boards = sides[:, ::-1] if self.ply % 2 else sides
        told = Seen(*boards.T, white, np.array(legal, np.uint64), np.array(legal) == 0, over, np.stack([won, -won], 1))
        what, ply, game = self.lie
        if what is not None and ply == self.ply:
            wrong = getattr(told, what).copy()
            wrong[game] = wrong[game] == 0
            told = told._replace(**{what: wrong})
        return told


def test_the_slow_twin_agrees():
    count = compare(Twin, 3, 5, 0)
    assert count.games == 3
    assert 150 < count.plies < 200


@pytest.mark.parametrize("what", [name for name in Seen._fields if name != "scores"])
def test_a_difference_is_told_with_the_moves_that_lead_to_it(what, monkeypatch):
    monkeypatch.setattr(Twin, "lie", (what, 7, 1))
    with pytest.raises(DifferenceError, match=f"Twin: {what} of game 1 in chunk 3 .seed 5, 2 games. after ") as found:
        compare(Twin, 2, 5, 3)
    game = read_transcript(re.search("after '(.*?)'", str(found.value))[1])
    assert len(game.moves) == 7


def test_a_wrong_score_is_a_difference(monkeypatch):
    right = batch.final_scores
    monkeypatch.setattr(batch, "final_scores", lambda own, opp: right(own, opp) + np.sign(right(own, opp)))
    with pytest.raises(DifferenceError, match="scores of game"):
        compare(Twin, 1, 5, 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # JAX's own
@pytest.mark.parametrize(
    ("plies", "options"),
    [(20_000, {"games": 340}), pytest.param(PLIES, {"workers": os.cpu_count()}, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("name", MODULES)
def test_the_rules_are_those_of(name, plies, options):
    """The long one plays 10⁸ plies, or REVERSI_PLIES, on all cores; what the last run found is in docs/lab/speed.md."""
    pytest.importorskip(MODULES[name], reason=f"{name} is not installed, of the extra bench")
    count = referee.check(name, plies, **options)
    assert count.plies >= plies
    assert count.games >= options.get("games", 0)
    assert count.passes > 0
