"""Fixtures: small policy-value networks."""

import tempfile

import numpy as np
import pytest
import torch

from models.residual.net import PolicyNet, SavedResidual
from reversi_env import Rules, batch


@pytest.fixture
def no_litter(tmp_path_factory, monkeypatch):
    """Fail if the test leaves anything in the system's temporary folder except torch's compilation cache."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("SB3_LOGDIR")  # models without a logger write to the temporary folder
    yield
    assert [path.name for path in folder.iterdir() if not path.name.startswith("torchinductor_")] == []


@pytest.fixture
def tiny_net():
    """A function that makes a network with deterministic random weights."""

    def make(size=4, seed=0):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = PolicyNet(size, channels=4, blocks=1)
            for layer in (net.policy[1], net.value):  # the initial outputs are almost constant
                torch.nn.init.normal_(layer.weight)
        return net.eval()

    return make


@pytest.fixture
def policy_file(tiny_net, tmp_path):
    """The path of a policy for 4x4."""
    path = tmp_path / "policy.safetensors"
    path.write_bytes(SavedResidual(Rules(4), tiny_net(), {"made": "by a test"}).to_bytes())
    return path


@pytest.fixture
def positions():
    """A function that returns the boards of unfinished positions, some without moves."""

    def make(size=4, count=64):
        rules = Rules(size)
        parts = [batch.random_positions(count, plies, rules, seed=plies) for plies in range(0, size * size - 8, 3)]
        own, opp = (np.concatenate(sides) for sides in zip(*parts, strict=True))
        running = ~batch.is_over(own, opp, rules)
        return own[running], opp[running]

    return make
