"""Performance models 3 and 4."""

from dataclasses import replace

import numpy as np
import pytest

from reversi_env import Rules
from search import evaluators
from search.engine.solver import solve_batch
from studies.evaluators import depth as search_depth
from studies.evaluators import structural
from studies.evaluators.depth import DepthOptions
from studies.evaluators.structural import StructuralOptions


class Perfect:
    """The true minimax function, or that plus one disc."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def record(self, rules):
        return np.zeros(1)

    def static_values(self, own, opp, rules):
        return solve_batch(own, opp, rules).astype(float) + self.shift


@pytest.fixture
def judges(monkeypatch):
    """Makes evaluators of that name known."""
    known = {"perfect": Perfect(), "shifted": Perfect(1.0)}
    get = evaluators.get_evaluator
    monkeypatch.setattr(structural.evaluators, "get_evaluator", lambda name: known.get(name) or get(name))


def test_the_true_function_has_no_loss_and_is_its_own_minimax(judges):
    found = structural.measure(StructuralOptions(6, "reversed", ("perfect", "shifted", "six-factor"), 30, (5, 6)))
    perfect, shifted, formula = found["evaluators"]
    assert perfect["loss"] == perfect["node_error"] == perfect["inconsistency"] == 0
    assert perfect["by_ply"] == [0, 0, 0]
    assert formula["loss"] > 0
    assert formula["loss"] == pytest.approx(formula["node_error"] * found["nodes"] / found["trees"])
    assert 0 < shifted["node_error"] <= 1  # finished games are known to all
    assert shifted["by_ply"][0] == 1
    assert found["trees"] == 30
    assert "| six-factor |" in structural.section([found]).markdown()


def test_scaling_helps_a_formula_and_can_be_left_out():
    options = StructuralOptions(6, names=("mobility",), positions=40, empties=(5, 6), plies=1)
    scaled, plain = (structural.measure(one)["evaluators"][0] for one in (options, replace(options, as_is=True)))
    assert plain["scale"] == 1.0
    assert scaled["scale"] != 1.0
    assert scaled["node_error"] != plain["node_error"]


@pytest.mark.parametrize(
    ("points", "gained", "at_least"),
    [
        ({0: 0.8, 1: 0.6, 2: 0.4}, 1.5, None),
        ({0: 0.7, 1: 0.3}, 0.5, None),
        ({0: 0.5, 1: 0.3}, 0.0, None),
        ({0: 0.4, -1: 0.6}, -0.5, None),
        ({0: 0.2, -1: 0.4, -2: 0.5}, -2.0, None),
        ({0: 0.9, 1: 0.9, 2: 0.9, 3: 0.8, 4: 0.7}, None, 4),
        ({0: 0.1, -1: 0.1, -2: 0.1, -3: 0.2, -4: 0.3}, None, -4),
    ],
)
def test_plies_gained_are_where_the_points_cross_one_half(monkeypatch, points, gained, at_least):
    def duel(first, second, rules, games, seed):
        return {"points": points[second.depth - first.depth]}

    monkeypatch.setattr(search_depth, "duel", duel)
    found = search_depth.plies_gained("six-factor", DepthOptions(6, names=("six-factor",), baseline="six-factor"))
    assert found["plies_gained"] == (None if gained is None else pytest.approx(gained))
    assert found["at_least"] == at_least
    assert len(found["handicaps"]) == len(points)


def test_depth_is_measured_and_an_evaluator_gains_nothing_over_itself():
    options = DepthOptions(6, "normal", ("six-factor",), 2, seconds=0.02, depth=4, baseline="six-factor", games=20)
    found = search_depth.measure(options)
    [entry] = found["evaluators"]
    assert entry["depth_at_equal_time"] >= 1
    assert entry["nodes_to_depth"] > 10
    assert abs(entry["handicaps"][0]["points"] - 0.5) < 0.35
    again = search_depth.measure(options)["evaluators"][0]
    assert again["nodes_to_depth"] == entry["nodes_to_depth"]
    assert again["handicaps"] == entry["handicaps"]


def test_the_commands_print_tables_and_json(reversi, json_lines):
    arguments = ["--size", 6, "--positions", 10, "--empties", "5-6", "--plies", 1]
    status, out, _ = reversi("measure", "structural", "six-factor", *arguments)
    assert status == 0
    assert "loss a tree" in out
    [found] = json_lines("measure", "structural", "six-factor", *arguments)
    assert found["evaluators"][0]["evaluator"] == "six-factor"
    assert Rules(found["size"], found["variant"])
