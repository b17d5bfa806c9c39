"""Results that no change of structure may change: seeded games, labels and fits, held to hashes that were recorded.

A change that is meant to alter one of them (another search, another way to fit) records its new hash, and says why.
"""

import hashlib
import json

from models.patterns.trainable import PatternModule
from train.arena.options import TournamentOptions
from train.arena.tournament import run_tournament
from train.fitting.fit import FitOptions, fit
from train.labels import LabelOptions, generate, label_positions, read, sample_positions
from train.labels.dataset import COLUMNS

GAMES = "edb907ae1bda9297"
LABELS = "5e1d3154b3da3300"
WEIGHTS = "c354247af9b985ee"
#: Exact scores near the end, values of a search before it.
LABELLED = LabelOptions(
    size=6, count=600, empties=(4, 12), seed=7, labeller="six-factor:depth=2,exact=8", shard_rows=200, block_rows=400
)


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def test_the_games_of_a_seeded_tournament(tmp_path):
    agents = ("six-factor:depth=3", "network:depth=2", "greedy-invincible:exact=6", "random")
    run_tournament(TournamentOptions(agents, games=4, size=6, variant="reversed", seed=5), tmp_path)
    games = [json.loads(line) for line in (tmp_path / "games.jsonl").read_text().splitlines()]
    recorded = [[game[key] for key in ("game", "black", "white", "discs", "opening", "moves")] for game in games]
    assert sha256(json.dumps(sorted(recorded)).encode()) == GAMES


def test_the_labels_of_a_seed(tmp_path):
    generate(LABELLED, tmp_path, threads=2)
    labels = read(tmp_path)
    assert sha256(*(getattr(labels, column).tobytes() for column in COLUMNS)) == LABELS


def test_the_weights_of_a_seeded_fit_of_integers():
    """The linear network's weights are integers, the same on every CPU."""
    labels = label_positions(*sample_positions(LABELLED, 0), LABELLED)
    net = PatternModule("linear", 6)
    fit(net, labels, FitOptions(epochs=3, batch_size=64, held_out=0.1, seed=3))
    assert sha256(*(parameter.detach().numpy().tobytes() for parameter in net.parameters())) == WEIGHTS
