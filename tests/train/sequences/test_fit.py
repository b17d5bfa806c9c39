"""Training of sequence models: metrics against a slow count, resumption, both variants."""

import math

import pytest
import torch

from models.gpt.files import read_gpt
from models.gpt.net import GPT
from models.gpt.tokens import Vocabulary
from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from search import make_agent
from train.arena.match import play_match
from train.jobs.logs import read_csv
from train.sequences.fit import GPTRun, game_stream, new_config
from train.sequences.metrics import legal_tokens, means, rows_by_ply, sums_by_ply
from train.sequences.options import preset

SMALL = {"n_layer": 1, "n_embd": 16, "batch_size": 32, "eval_games": 64, "warmup_steps": 2, "learning_rate": 1e-2}


@pytest.mark.parametrize("extras", [{}, {"passes": True, "start": True, "rules": True}])
def test_legal_tokens_are_those_of_the_rules(extras):
    vocabulary, rules = Vocabulary(4, **extras), Rules(4)
    games = game_stream(preset(4), "train", 40, torch.device("cpu")) if not extras else None
    if games is None:
        from train.sequences.streams import GameStream

        games = GameStream(rules, vocabulary, 40, seed=3)
    tokens = next(iter(games))
    legal = legal_tokens(tokens, rules, vocabulary)
    for game, row in zip(tokens.tolist(), legal, strict=True):
        position = Position.initial(rules)
        for place, token in enumerate(game[: game.index(0) if 0 in game else len(game)]):
            action = int(vocabulary.action_of_token[token])
            if action >= 0:
                if position.must_pass() and action != rules.pass_action:
                    position = position.play(rules.pass_action)
                position = position.play(action)
            if not position.is_over() and position.must_pass() and not vocabulary.passes:
                position = position.play(rules.pass_action)
            expected = [] if position.is_over() else position.legal_actions()
            found = vocabulary.action_of_token[row[place].nonzero().flatten().numpy()]
            assert sorted(found.tolist()) == sorted(expected)


def test_metrics_of_a_model_that_gives_all_tokens_the_same_probability():
    options = preset(4)
    net = GPT(new_config(options))
    torch.nn.init.zeros_(net.lm_head.weight)
    tokens = next(iter(game_stream(options, "validation", 50, torch.device("cpu"))))
    legal = legal_tokens(tokens, options.games, options.vocabulary)
    sums = sums_by_ply(net, tokens, legal, 16)
    total, counts = means(sums), legal[:, :-1].sum(2)[tokens[:, 1:] > 0].double()
    assert (
        total["predictions"] == len(counts) == sum(row["predictions"] for row in rows_by_ply(sums, options.vocabulary))
    )
    assert total["loss"] == pytest.approx(math.log(13), abs=1e-5)
    assert total["entropy"] == pytest.approx(counts.log().mean().item(), abs=1e-5)
    assert total["illegal_mass"] == pytest.approx(1 - (counts / 13).mean().item(), abs=1e-5)
    assert total["illegal_top1"] == 1  # of equal tokens the first, padding


def test_a_stopped_run_ends_as_one_that_was_not(tmp_path):
    options = preset(4, steps=12, eval_every=4, **SMALL)
    whole = GPTRun(tmp_path / "whole", options).run()

    def stop(step, metrics):
        if step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GPTRun(tmp_path / "stopped", options, on_metrics=stop).run()
    stopped = GPTRun(tmp_path / "stopped", options).run()
    assert stopped.weights.name == whole.weights.name
    assert stopped.plies == whole.plies
    assert [row["step"] for row in read_csv(tmp_path / "stopped" / "log.csv")] == ["4", "8", "12"]
    assert whole.metrics[-1]["loss"] < whole.metrics[0]["loss"] < math.log(13)
    with pytest.raises(TrainError, match="n_embd"):
        GPTRun(tmp_path / "whole", preset(4, steps=12, eval_every=4, **SMALL | {"n_embd": 8})).run()


def test_with_a_time_limit_the_learning_rate_follows_the_time(tmp_path):
    run = GPTRun(tmp_path, preset(4, minutes=10.0, **SMALL))
    run.step, run.seconds = 5, 0.0
    rates = [run.learning_rate]
    for run.seconds in (300.0, 600.0):
        rates.append(run.learning_rate)
    assert rates == pytest.approx([1e-2, 5e-3, 0.0])
    assert run.done == 1


def test_one_model_of_both_variants_plays_both(tmp_path):
    result = GPTRun(tmp_path, preset(4, mixed=True, steps=2, eval_every=2, **SMALL)).run()
    saved = read_gpt(result.weights)
    assert saved.variants == ("normal", "reversed")
    assert result.plies[0]["ply"] == 0  # the token of the variant predicts the first move
    for variant in saved.variants:
        assert play_match(make_agent(f"gpt:{result.weights}"), "random", 2, Rules(4, variant)).games == 2
