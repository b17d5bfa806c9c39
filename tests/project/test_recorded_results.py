"""Seeded games, labels and fits equal recorded hashes; refactorings must not change them.

A commit that changes one of them on purpose (another search, another fit) updates the hash and gives the reason.
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
#: Labels with exact scores near the end of the game, and search values before.
LABELLED = LabelOptions(
    size=6, count=600, empties=(4, 12), seed=7, labeller="six-factor:depth=2,exact=8", shard_rows=200, block_rows=400
)


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def test_games_of_a_seeded_tournament(tmp_path):
    agents = ("six-factor:depth=3", "network:depth=2", "greedy-invincible:exact=6", "random")
    run_tournament(TournamentOptions(agents, games=4, size=6, variant="reversed", seed=5), tmp_path)
    games = [json.loads(line) for line in (tmp_path / "games.jsonl").read_text().splitlines()]
    recorded = [[game[key] for key in ("game", "black", "white", "discs", "opening", "moves")] for game in games]
    assert sha256(json.dumps(sorted(recorded)).encode()) == GAMES


def test_labels_of_a_seeded_dataset(tmp_path):
    generate(LABELLED, tmp_path, threads=2)
    labels = read(tmp_path)
    assert sha256(*(getattr(labels, column).tobytes() for column in COLUMNS)) == LABELS


def test_weights_of_a_seeded_linear_fit():
    """The weights of the linear network are integers and equal on every CPU."""
    labels = label_positions(*sample_positions(LABELLED, 0), LABELLED)
    net = PatternModule("linear", 6)
    fit(net, labels, FitOptions(epochs=3, batch_size=64, held_out=0.1, seed=3))
    assert sha256(*(parameter.detach().numpy().tobytes() for parameter in net.parameters())) == WEIGHTS
