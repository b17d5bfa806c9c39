"""The package's own policy of expert iteration: it is what its record says, and plays as well as the documents say."""

import numpy as np
import pytest

from reversi_env import Position, Rules
from search import agents
from train.games.batch import EvaluatorPlayer, RandomPlayer, play_games
from train.games.openings import Openings
from train.rl.files import FOLDER, read_policy
from train.rl.options import ExpertOptions
from train.rl.players import BatchPolicyPlayer

RULES = Rules(6)


@pytest.fixture(scope="module")
def policy():
    (path,) = FOLDER.glob("expert-6x6-normal-*.safetensors")
    assert path.stat().st_size < 2_000_000
    return read_policy(path)


def test_the_record_tells_how_it_was_made(policy):
    assert policy.rules == RULES
    assert policy.record["training"] == "expert iteration"
    options = ExpertOptions.from_dict(policy.record["options"])
    assert len(policy.record["figures"]) == options.iterations
    assert options.architecture == policy.net.architecture
    assert policy.record["command"].startswith("reversi rl expert")
    assert len(policy.record["labeller_sha256"]) == 64


def test_it_is_an_agent_without_a_path():
    start = Position.initial(RULES)
    for spec in ("rl:expert", "rl-search:expert,depth=1"):
        assert agents.make(spec).choose(start) in start.legal_actions()


@pytest.mark.slow
def test_it_beats_random_play_and_a_searching_formula_without_search(policy):
    openings = Openings.random(RULES, 100, 6, seed=5)
    player = BatchPolicyPlayer(policy.net)
    assert play_games(player, RandomPlayer(RULES), openings, RULES).score > 0.95
    searcher = EvaluatorPlayer("cell-utility", RULES, 2, exact=8, threads=1)
    assert play_games(player, searcher, openings, RULES).score > 0.65
    assert all(np.isfinite(parameter.detach().numpy()).all() for parameter in policy.net.parameters())
