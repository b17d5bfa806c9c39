"""Training of sequence models: metrics against a slow count, resumption, both variants."""

import math

import pytest
import torch

from models.gpt.agent import read_gpt
from reversi_env import Rules
from reversi_env.errors import TrainError
from search import make_agent
from train.arena.match import play_match
from train.jobs.logs import read_csv
from train.sequences.fit import GPTRun, metrics_by_ply, new_model
from train.sequences.labels import label_games, legal_tokens
from train.sequences.options import GPTOptions, StreamOptions
from train.sequences.streams import GameStream

SMALL = {"n_layer": 1, "n_embd": 16, "batch_size": 32, "eval_games": 64, "learning_rate": 1e-2}


@pytest.mark.parametrize("extras", [{}, {"passes": True, "start": True}])
def test_legal_tokens_are_as_many_as_legal_moves_and_include_the_next_token(extras):
    options = StreamOptions(4, seed=3, **extras)
    tokens = GameStream(options, 400).batch(0)
    legal, labels = legal_tokens(tokens, options), label_games(tokens, options, ["mobility", "to_move"])
    assert legal[:, :-1].gather(2, tokens[:, 1:, None].long()).squeeze(2)[tokens[:, 1:] != 0].all()
    assert torch.equal(legal.sum(2), labels["mobility"].clamp(min=1) * (labels["to_move"] != 0))


def test_metrics_of_a_model_that_gives_all_tokens_the_same_probability():
    options = GPTOptions(4)
    net, tokens = new_model(options), GameStream(options, 50, split="validation").batch(0)
    torch.nn.init.zeros_(net.lm_head.weight)
    legal = legal_tokens(tokens, options)
    total, *plies = metrics_by_ply(net, tokens, legal)
    counts = legal[:, :-1].sum(2)[tokens[:, 1:] > 0].double()
    assert total["predictions"] == len(counts) == sum(row["predictions"] for row in plies)
    assert [row["ply"] for row in plies] == list(range(1, len(plies) + 1))
    assert total["loss"] == pytest.approx(math.log(13), abs=1e-5)
    assert total["entropy"] == pytest.approx(counts.log().mean().item(), abs=1e-5)
    assert total["illegal_mass"] == pytest.approx(1 - (counts / 13).mean().item(), abs=1e-5)
    assert total["illegal_top1"] == 1  # of equal tokens the first, padding


def test_a_stopped_run_ends_as_one_that_was_not(tmp_path):
    options = GPTOptions(4, steps=12, eval_every=4, **SMALL)
    whole = GPTRun(tmp_path / "whole", options)
    weights = whole.run()

    def stop(task, done, total):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GPTRun(tmp_path / "stopped", options, progress=stop).run()
    stopped = GPTRun(tmp_path / "stopped", options)
    assert stopped.run().name == weights.name
    assert stopped.plies == whole.plies
    assert [row["step"] for row in read_csv(tmp_path / "stopped" / "log.csv")] == ["4", "8", "12"]
    assert whole.metrics[-1]["loss"] < whole.metrics[0]["loss"] < math.log(13)
    with pytest.raises(TrainError, match="n_embd"):
        GPTRun(tmp_path / "whole", GPTOptions(4, steps=12, eval_every=4, **SMALL | {"n_embd": 8})).run()


def test_one_model_of_both_variants_plays_both(tmp_path):
    run = GPTRun(tmp_path, GPTOptions(4, variant="both", steps=2, eval_every=2, **SMALL))
    weights = run.run()
    saved = read_gpt(weights)
    assert saved.variants == ("normal", "reversed")
    assert run.plies[0]["ply"] == 0  # the token of the variant predicts the first move
    for variant in saved.variants:
        assert play_match(make_agent(f"gpt:{weights}"), "random", 2, Rules(4, variant)).games == 2
