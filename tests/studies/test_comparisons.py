"""The comparisons of losses and networks: every way measured with every seed, on positions that none has seen."""

import numpy as np
import pytest
import torch

from models.patterns.trainable import Trainable
from search.engine.solver import solve_batch
from studies.training import comparing, losses
from studies.training.comparing import Measured, judge, unseen
from train.fitting.trees import grow_trees, single_nodes

TINY = losses.LossesOptions(positions=200, exam=100, epochs=2, batch_size=256, seeds=2, empties=(4, 6))


def test_every_way_is_measured_with_every_seed():
    ways = losses.measure(TINY)["ways"]
    assert len(ways) == len({way["name"] for way in ways}) == 7
    for way in ways:
        assert len(way["seeds"]) == 2
        assert all(0 < one["error"] < 40 and 0 <= one["regret"] < 40 for one in way["seeds"])
        assert way["error_standard_error"] > 0


def test_a_network_that_knows_nothing_and_one_that_knows_all():
    exam = grow_trees(TINY.labels(7, 100))
    nothing = judge(Trainable("linear", 6), exam)
    assert nothing.error == pytest.approx(np.abs(exam.score[exam.roots]).mean())
    assert nothing.regret > 0

    class Solver(torch.nn.Module):
        def forward(self, own, opp):
            playing = ~exam.finished
            values = np.zeros(exam.nodes, np.float32)
            values[playing] = solve_batch(exam.own[playing], exam.opp[playing], exam.rules)
            return torch.from_numpy(values)

    assert judge(Solver(), exam) == Measured(0.0, 0.0)


def test_what_was_seen_is_not_measured():
    trees = grow_trees(TINY.labels(1, 200))
    assert not len(unseen(trees, trees))
    others = grow_trees(TINY.labels(2, 200))
    assert 150 < len(unseen(others, trees)) <= 200


def test_nodes_without_their_trees():
    trees = grow_trees(TINY.labels(1, 20))
    few = single_nodes(trees, np.array([3, 8]))
    assert (len(few), few.nodes, few.score.tolist()) == (2, 2, trees.score[[3, 8]].tolist())


def test_mean_and_standard_error():
    measured = [Measured(1.0, 0.0), Measured(3.0, 0.5)]
    assert {"error": 2.0, "error_standard_error": 1.0, "regret": 0.25}.items() <= comparing.mean_figures(
        measured
    ).items()
    assert comparing.mean_figures(measured[:1])["regret_standard_error"] is None


def test_the_commands(reversi, json_lines):
    line = ["--positions", "60", "--exam", "40", "--epochs", "1", "--seeds", "1", "--empties", "3-4"]
    status, out, _ = reversi("experiment", "losses", *line)
    assert status == 0
    assert "structural: consistency 0.5" in out
    [found] = json_lines("experiment", "networks", *line)
    assert [way["name"] for way in found["ways"]] == ["linear", "deep"]
    assert found["command"].endswith("--variant normal --empties 3-4 --positions 60 --exam 40 --seeds 1 --epochs 1")
