"""Our rules are those of OpenSpiel and Pgx, and the comparison notices whatever is not the same."""

import os
import re

import numpy as np
import pytest

from reversi_env import batch
from reversi_env.notation import read_transcript
from tests.oracles import referee
from tests.oracles.referee import DifferenceError, Games, Seen, compare

PLIES = int(os.environ.get("REVERSI_PLIES", 10**8))
MODULES = {"openspiel": "pyspiel", "pgx": "pgx"}


class Mirror:
    """Our own rules as a referee; with *lie*, (what, ply, game), it says something else there."""

    lie = (None, 0, 0)

    def __init__(self, count, seed):
        self.games, self.ply = Games(count, np.random.default_rng(seed)), 0

    def play(self, squares):
        self.games.play(squares)
        self.ply += 1

    def ends(self, games):
        return games.over

    def seen(self):
        told, (what, ply, game) = self.games.seen(self.games.over), self.lie
        if ply == self.ply and what is not None:
            wrong = getattr(told, what).copy()
            wrong[game] = wrong[game] == 0
            told = told._replace(**{what: wrong})
        return told


@pytest.mark.parametrize("what", [name for name in Seen._fields if name != "scores"])
def test_a_difference_is_told_with_the_moves_that_lead_to_it(what, monkeypatch):
    assert 100 < compare(Mirror, 2, 5, 3).plies < 140
    monkeypatch.setattr(Mirror, "lie", (what, 7, 1))
    with pytest.raises(DifferenceError, match=f"{what} of game 1 in chunk 3") as found:
        compare(Mirror, 2, 5, 3)
    game = read_transcript(re.search("after '(.*?)'", str(found.value))[1])
    assert len(game.moves) == 7


def test_a_wrong_score_is_a_difference(monkeypatch):
    right = batch.final_scores
    monkeypatch.setattr(batch, "final_scores", lambda own, opp: right(own, opp) + np.sign(right(own, opp)))
    with pytest.raises(DifferenceError, match="scores of game"):
        compare(Mirror, 1, 5, 0)


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
