"""Training of sequence models: metrics against a slow count, resumption, both variants."""

import math
from dataclasses import replace

import pytest
import torch

from models.gpt import read_gpt
from reversi_env import Rules
from reversi_env.errors import TrainError
from search import make_agent
from train.arena.match import play_match
from train.jobs.logs import read_csv
from train.sequences.fit import metrics_by_ply, new_model, train_gpt
from train.sequences.labels import label_games
from train.sequences.options import GPTOptions
from train.sequences.streams import GameStream

SMALL = {"n_layer": 1, "n_embd": 16, "batch_size": 32, "eval_games": 64, "learning_rate": 1e-2}


def test_metrics_of_a_model_that_gives_all_tokens_the_same_probability():
    options = GPTOptions(4)
    net, tokens = new_model(options), GameStream(options, 50, split="validation").batch(0)
    torch.nn.init.zeros_(net.lm_head.weight)
    legal = label_games(tokens, options, ["legal_tokens"])["legal_tokens"]
    total, *plies = metrics_by_ply(net, tokens, options)
    counts = legal[:, :-1].sum(2)[tokens[:, 1:] > 0].double()
    assert total["predictions"] == len(counts) == sum(row["predictions"] for row in plies)
    assert [row["ply"] for row in plies] == list(range(1, len(plies) + 1))
    assert total["loss"] == pytest.approx(math.log(13), abs=1e-5)
    assert total["uniform_loss"] == pytest.approx(counts.log().mean().item(), abs=1e-5)
    assert total["illegal_mass"] == pytest.approx(1 - (counts / 13).mean().item(), abs=1e-5)
    assert total["illegal_top1"] == 1  # of equal tokens the first, padding


def test_a_run_learns_and_is_that_of_its_options(tmp_path):
    options = GPTOptions(4, steps=12, eval_every=4, **SMALL)
    weights = train_gpt(tmp_path, options)
    assert [row["step"] for row in read_csv(tmp_path / "log.csv")] == ["4", "8", "12"]
    first, _, last = read_gpt(weights).record["metrics"]
    assert last["loss"] < first["loss"] < math.log(13)
    assert train_gpt(tmp_path, options) == weights
    with pytest.raises(TrainError, match="n_embd"):
        train_gpt(tmp_path, replace(options, n_embd=8))


def test_one_model_of_both_variants_plays_both(tmp_path):
    weights = train_gpt(tmp_path, GPTOptions(4, variant="both", steps=2, eval_every=2, **SMALL))
    assert read_gpt(weights).record["plies"][0]["ply"] == 0  # the token of the variant predicts the first move
    for variant in ("normal", "reversed"):
        assert play_match(make_agent(f"gpt:{weights}"), "random", 2, Rules(4, variant)).games == 2
