"""Fixtures: small policy-value networks."""

import tempfile

import numpy as np
import pytest
import torch

from models.residual.net import PolicyNet, SavedResidual
from reversi_env import Rules, batch


@pytest.fixture
def no_litter(tmp_path_factory, monkeypatch):
    """The system's temporary folder is as empty in the end as it was, but for the one cache that torch has there."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("SB3_LOGDIR")  # what has no logger of its own would make a folder in the other
    yield
    assert [path.name for path in folder.iterdir() if not path.name.startswith("torchinductor_")] == []


@pytest.fixture
def tiny_net():
    """A network with random weights, the same every time."""

    def make(size=4, seed=0):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = PolicyNet(size, channels=4, blocks=1)
            for layer in (net.policy[1], net.value):  # not nearly all alike, as they begin
                torch.nn.init.normal_(layer.weight)
        return net.eval()

    return make


@pytest.fixture
def policy_file(tiny_net, tmp_path):
    """A policy for the 4x4 board in a file."""
    path = tmp_path / "policy.safetensors"
    path.write_bytes(SavedResidual(Rules(4), tiny_net(), {"made": "by a test"}).to_bytes())
    return path


@pytest.fixture
def positions():
    """Positions of a game in the middle, passes among them, as two arrays of boards."""

    def make(size=4, count=64):
        rules = Rules(size)
        parts = [batch.random_positions(count, plies, rules, seed=plies) for plies in range(0, size * size - 8, 3)]
        own, opp = (np.concatenate(sides) for sides in zip(*parts, strict=True))
        going_on = ~batch.is_over(own, opp, rules)
        return own[going_on], opp[going_on]

    return make
