"""Results that no change of structure may change: seeded games, labels and fits, held to hashes that were recorded.

A change that is meant to alter one of them (another search, another way to fit) records its new hash, and says why. The search's
own node signature is in ``tests/search/engine/test_engine.py``.
"""

import hashlib
import json
import platform

import pytest

from models.patterns.trainable import Trainable
from train.arena.options import TournamentOptions
from train.arena.tournament import run_tournament
from train.fitting.fit import FitOptions, fit
from train.labels import LabelOptions, generate, label_positions, read, sample_positions
from train.labels.dataset import COLUMNS

GAMES = "edb907ae1bda9297"
LABELS = "5e1d3154b3da3300"
#: By network; the deep one's sums are not the same to the last bit on every kind of CPU (with AVX2 and AVX-512 they are), and those
#: of ARM have not been recorded since fits go by rounded weights.
WEIGHTS = {
    ("linear", "aarch64"): "c354247af9b985ee",
    ("linear", "x86_64"): "c354247af9b985ee",
    ("deep", "x86_64"): "0b7b3af4f194ccbc",
}


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


#: Exact scores near the end, values of a search before it.
LABELLED = LabelOptions(
    size=6, count=600, empties=(4, 12), seed=7, labeller="six-factor:depth=2,exact=8", shard_rows=200, block_rows=400
)


def test_the_games_of_a_seeded_tournament(tmp_path):
    agents = ("six-factor:depth=3", "network:depth=2", "greedy-invincible:exact=6", "random")
    run_tournament(TournamentOptions(agents, games=4, size=6, variant="reversed", seed=5), tmp_path)
    games = [json.loads(line) for line in (tmp_path / "games.jsonl").read_text().splitlines()]
    told = [[game[key] for key in ("game", "black", "white", "discs", "opening", "moves")] for game in games]
    assert sha256(json.dumps(sorted(told)).encode()) == GAMES


def test_the_labels_of_a_seed(tmp_path):
    generate(LABELLED, tmp_path, threads=2)
    labels = read(tmp_path)
    assert sha256(*(getattr(labels, column).tobytes() for column in COLUMNS)) == LABELS


@pytest.mark.parametrize("network", ["linear", "deep"])
def test_the_weights_of_a_seeded_fit(network):
    recorded = WEIGHTS.get((network, platform.machine()))
    if recorded is None:
        pytest.skip(f"nothing is recorded for {platform.machine()}")
    labels = label_positions(*sample_positions(LABELLED, 0), LABELLED)
    net = Trainable(network, 6)
    fit(net, labels, FitOptions(epochs=3, batch_size=64, held_out=0.1, seed=3))
    weights = [parameter.detach().numpy().tobytes() for parameter in net.parameters()]
    assert sha256(*weights) == recorded
