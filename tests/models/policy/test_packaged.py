"""The policies that come with the package."""

import hashlib

import pytest

from models.files import WeightsError
from models.policy import FOLDER
from models.policy.files import PACKAGED_NAME, packaged_policy, read_policy
from play.server import catalogue
from play.server.messages import Refused
from play.server.options import ServerOptions
from play.server.workers.worker import Job, Searcher
from reversi_env import Position, Rules
from search import agents
from train.arena.network_players import BatchPolicyPlayer
from train.evaluation.ladder import Ladder

FILES = sorted(FOLDER.glob("*.safetensors"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_what_its_name_says(path):
    how, board, variant, digits = path.stem.split("-")
    assert how == PACKAGED_NAME
    assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(digits)
    assert path.stat().st_size < 2_000_000
    saved = read_policy(path)
    assert (f"{saved.rules.size}x{saved.rules.size}", saved.rules.variant) == (board, variant)
    assert saved.record  # how it was made


def test_two_policies_for_one_game_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("models.policy.files.FOLDER", tmp_path)
    for digits in ("0123", "4567"):
        (tmp_path / f"ppo-6x6-normal-{digits}.safetensors").touch()
    with pytest.raises(WeightsError, match=r"2 policies for 6x6 normal in .*: expected one"):
        packaged_policy(Rules(6))


def test_both_games_have_a_policy_on_6x6():
    assert {path.name.rsplit("-", 1)[0] for path in FILES} >= {"ppo-6x6-normal", "ppo-6x6-reversed"}


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_they_were_trained_by_the_command_in_their_record(variant):
    record = read_policy(packaged_policy(Rules(6, variant))).record
    assert record["training"] == "ppo"
    assert record["command"].startswith("reversi rl")
    assert record["options"]["variant"] == variant
    assert record["steps"] >= record["options"]["steps"]
    assert record["standing"]["rungs"]["random"]["points"] > 0.85


@pytest.mark.slow
def test_the_normal_one_beats_what_was_promised():
    rules = Rules(6)
    ladder = Ladder(rules, 200, seed=5, baselines=("random", "greedy", "cell-utility:depth=2"))
    scores = ladder.measure(BatchPolicyPlayer(read_policy(packaged_policy(rules)).net, symmetric=True)).scores
    assert scores["random"].score > 0.92
    assert scores["greedy"].score > 0.85
    assert scores["cell-utility:depth=2"].score - 2 * scores["cell-utility:depth=2"].score_error > 0.5


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_they_play_by_name_and_on_the_server(variant):
    start = Position.initial(Rules(6, variant))
    assert agents.make_agent("rl").choose(start) in start.legal_actions()
    agent = catalogue.limited_agent("rl:seed=3", 6, ServerOptions())
    assert agent.seconds is None
    answer = Searcher().answer(Job("move", start, agent.spec.text, table=1, seed=3, number=1))
    assert answer.result["move"] in start.legal_moves()


@pytest.mark.parametrize("spec", ["rl:/etc/passwd", "rl:weights=x", "rl:temperature=1", "rl:seed=x", "rl-search"])
def test_strangers_name_no_files(spec):
    with pytest.raises(Refused):
        catalogue.limited_agent(spec, 6, ServerOptions())


def test_no_policy_for_8x8():
    with pytest.raises(Refused, match="no policy for 8x8: expected size 6"):
        catalogue.limited_agent("rl", 8, ServerOptions())


def test_a_flipped_byte_is_found(tmp_path):
    data = bytearray(FILES[0].read_bytes())
    data[-1] ^= 1
    copy = tmp_path / FILES[0].name
    copy.write_bytes(data)
    with pytest.raises(WeightsError, match=f"policy .*{FILES[0].name}.* is damaged: its hash is"):
        read_policy(copy)
