"""The interface for university courses, used as by their referee programs."""

import threading

import numpy as np
import pytest
from hypothesis import given

from play.course import AI, COLOR_BLACK, COLOR_WHITE, legal_moves
from play.thinker import Thinker
from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import BLACK, WHITE
from search.engine.solver import solve_all_moves
from tests.oracles.jobs import PATIENCE
from tests.oracles.processes import output_of
from tests.oracles.strategies import random_moves, reachable_positions


@given(reachable_positions())
def test_legal_moves_agree_with_the_rules(position):
    rules = position.rules
    expected = [divmod(action, rules.size) for action in position.legal_actions() if action != rules.pass_action]
    assert legal_moves(position.to_matrix(), position.turn) == expected


@pytest.mark.parametrize("size", [4, 6, 8])
def test_a_whole_game_under_the_referee(size):
    players = {color: AI(size, color, 5, agent="six-factor:depth=1") for color in (COLOR_BLACK, COLOR_WHITE)}
    position = Position.initial(Rules(size, "reversed"))
    while not position.is_over():
        player, board = players[int(position.turn)], position.to_matrix()
        player.go(board)
        assert np.array_equal(board, position.to_matrix())
        legal = legal_moves(board, position.turn)
        assert set(player.candidate_list) == set(legal)
        assert all(isinstance(move, tuple) and all(type(part) is int for part in move) for move in legal)
        if not legal:
            position = position.play("pass")
            continue
        row, column = player.candidate_list[-1]
        position = position.play(size * row + column)
    assert position.winner() in (BLACK, WHITE, None)


@pytest.mark.parametrize("variant", ["reversed", "normal"])
def test_endgames_are_played_perfectly_in_both_variants(variant):
    for seed in range(10):
        start = Position.initial(Rules(4, variant))
        position = start.play_all(random_moves(start, seed, plies=5 + seed % 5))
        if position.is_over() or position.must_pass():
            continue
        options = {} if variant == "reversed" else {"variant": variant}  # the reversed game is the default
        ai = AI(4, int(position.turn), 5, agent="six-factor:depth=1", **options)
        ai.go(position.to_matrix())
        row, column = ai.candidate_list[-1]
        values = solve_all_moves(position)
        assert values["abcd"[column] + str(row + 1)] == max(values.values())


#: Prints the project's packages that are imported by the loading thread after the AI was made.
IMPORTED_LATER = """
import os, sys
from play.course import AI, COLOR_BLACK
ai = AI(8, COLOR_BLACK, 5)
before = set(sys.modules)
ai._loaded.result()
later = [name for name in sys.modules if name not in before and hasattr(sys.modules[name], "__path__")]
print([name for name in later if name.split(".")[0] in ("reversi_env", "search", "models", "train", "play")], flush=True)
os._exit(0)
"""


def test_the_loading_thread_imports_no_package():
    """If two threads import a package and its module at the same time, Python's import locks may deadlock in the referee."""
    assert output_of(IMPORTED_LATER) == ["[]"]


def test_bad_constructor_arguments_are_refused():
    for size, color, name in ((5, COLOR_BLACK, "size"), (8, 0, "color"), (8, "black", "color"), (8, True, "color")):
        with pytest.raises(ReversiError, match=name):
            AI(size, color, 5)


@pytest.mark.parametrize("late", ["prepare", "think"])
def test_a_late_agent_still_gets_a_legal_move(monkeypatch, late):

    def is_late(*arguments, **options):
        assert ready.wait(PATIENCE)  # fails if the AI waited for it

    ready = threading.Event()
    monkeypatch.setattr(Thinker, "prepare", lambda *arguments: None)
    monkeypatch.setattr(Thinker, late, is_late)
    ai = AI(8, COLOR_BLACK, 0.1)
    ai.go(Position.initial().to_matrix())
    ready.set()
    assert ai.candidate_list[-1] in {(2, 3), (3, 2), (4, 5), (5, 4)}
