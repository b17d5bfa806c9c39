"""The comparisons of losses and networks: every way measured with every seed, on positions that none has seen."""

import numpy as np
import pytest
import torch

from models.trainable import Trainable
from reversi_env import ReversiError
from search.solver import solve_batch
from studies import compare_networks
from studies.compare_losses import CompareOptions, Measured, Way, compare, main, measure, unseen
from train.fitting.trees import grow

TINY = CompareOptions(positions=200, exam=100, epochs=2, batch=256, seeds=2, empties=(4, 6))


def test_every_way_is_measured_with_every_seed():
    ways = compare(TINY)
    assert len(ways) == len({way.name for way in ways}) == 7
    for way in ways:
        assert len(way.measured) == 2
        assert all(0 < one.error < 40 and 0 <= one.regret < 40 for one in way.measured)


def test_a_network_that_knows_nothing_and_one_that_knows_all():
    exam = grow(TINY.labels(7, 100))
    nothing = measure(Trainable("linear", 6), exam)
    assert nothing.error == pytest.approx(np.abs(exam.score[exam.roots]).mean())
    assert nothing.regret > 0

    class Solver(torch.nn.Module):
        def forward(self, own, opp):
            playing = ~exam.finished
            values = np.zeros(exam.nodes, np.float32)
            values[playing] = solve_batch(exam.own[playing], exam.opp[playing], exam.rules)
            return torch.from_numpy(values)

    assert measure(Solver(), exam) == Measured(0.0, 0.0)


def test_what_was_seen_is_not_measured():
    trees = grow(TINY.labels(1, 200))
    assert not len(unseen(trees, trees))
    others = grow(TINY.labels(2, 200))
    assert 150 < len(unseen(others, trees)) <= 200


def test_mean_and_standard_error():
    way = Way("a", (Measured(1.0, 0.0), Measured(3.0, 0.5)))
    assert way.mean("error") == (2.0, 1.0)
    assert Way("b", way.measured[:1]).mean("regret")[0] == 0.0


def test_the_command(capsys):
    main(["--positions", "60", "--exam", "40", "--epochs", "1", "--seeds", "1", "--empties", "3-4"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| labels used |")
    assert len(lines) == 9
    with pytest.raises(SystemExit):
        main(["--empties", "many"])
    with pytest.raises(ReversiError, match="seeds=0: expected a whole number, 1 or more"):
        CompareOptions(seeds=0)


def test_the_networks_beside_each_other(capsys):
    compare_networks.main(["--positions", "60", "--exam", "40", "--epochs", "1", "--seeds", "1", "--empties", "3-4"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| linear", "| deep", "| dense", "| dense, not augmented"]
    assert lines[4].split(" | ")[1] != lines[5].split(" | ")[1]
    with pytest.raises(SystemExit):
        compare_networks.main(["--empties", "many"])
