"""Probes and interventions: metrics by hand, labels that the features contain, directions, and cases against the rules."""

import json

import numpy as np
import pytest
import torch

from models.bitboards import boards_of_planes
from models.gpt import SavedGPT
from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from train.sequences.fit import new_model
from train.sequences.options import GPTOptions, ProbeOptions
from train.sequences.probes import LayerProbes, errors, held_out_games, make_cases, metrics_of, steered, train_probes


@pytest.fixture(scope="module")
def saved():
    options = GPTOptions(4, n_layer=2, n_embd=32, n_head=2)
    torch.manual_seed(0)
    return SavedGPT(options.vocabulary, "normal", new_model(options).eval(), {"options": options.as_dict()})


def test_metrics_and_errors_by_hand():
    logits = torch.tensor([[0.0, 0, 9, 9, 0, 0], [0, 9, 0, 0, 9, 0]])  # two positions, two squares of three classes
    assert metrics_of(logits, torch.tensor([[2, 0], [1, 2]])) == {"accuracy": 0.75}
    values = torch.tensor([[1.0, 2, 9], [4, 3, 9]])
    truth = torch.tensor([[2.0, 4, np.nan], [0, 6, np.nan]])
    metrics = metrics_of(values, truth)
    by_hand = 1 - np.square([1, 2, 4, 3]).sum() / np.square([-1, 1, -3, 3]).sum()
    assert metrics["R²"] == pytest.approx(by_hand)
    assert metrics["pairs"] == 0.5  # the first position's moves are ranked right, the second's are not
    predictions = torch.tensor([[0.0, 3, 2, 1], [9, 3, 2, 1], [9, 3, 2, 8]])
    assert errors(predictions, torch.tensor([[False, True, True, False]] * 3)).tolist() == [0, 2, 4]


def test_probes_read_what_features_have_and_an_intervention_makes_them_read_a_colour(saved):
    options = ProbeOptions(("relative", "mobility", "values"), ends=1, games=64, test_games=32, steps=40, hidden=0)
    train, test = held_out_games(saved, options)
    probes, metrics = train_probes(saved.net, train, test, options)
    for name in (("relative", "accuracy"), ("mobility", "R²")):
        tokens, *model = metrics[*name, "linear tokens"] + metrics[*name, "linear model"]
        assert metrics[*name, "linear board"][0] > max(tokens, *model)  # a feature there
    assert len(metrics["values", "pairs", "linear untrained"]) == 3
    used, probe = train["to_move"] != 0, probes["relative", "linear", "model"]
    states = torch.stack(saved.net.residual_stream(train["tokens"]))[:, used].detach()
    squares = torch.arange(states.shape[1]) % 16
    for layer, log_odds in ((1, 1.0), (2, -2.0)):
        states[layer] = steered(probe, layer, states[layer], squares, torch.tensor(log_odds))
        outputs = probe(states)[layer].unflatten(1, (16, 3))[torch.arange(len(squares)), squares]
        assert torch.allclose(outputs[:, 2] - outputs[:, 0], torch.tensor(log_odds), atol=1e-3)


def test_two_layer_probes_by_hand():
    features = torch.rand(2, 9, 5)
    probe = LayerProbes(features, 3, hidden=4)
    for bias in probe.biases:
        torch.nn.init.uniform_(bias)
    first, second = probe.weights
    for layer, x in enumerate((features - probe.mean) / probe.std):
        expected = (x @ first[layer] + probe.biases[0][layer]).relu() @ second[layer] + probe.biases[1][layer]
        assert torch.allclose(probe(features)[layer], expected, atol=1e-5)


def test_cases_have_the_legal_moves_of_the_changed_board(saved):
    rules = Rules(4)
    games, _ = held_out_games(saved, ProbeOptions(ends=0, games=64, test_games=2))
    cases = make_cases(saved, games, 50, seed=1)
    assert 30 < len(cases["places"]) <= 50
    for tokens, place, square, colour, *legal in zip(*cases.values(), strict=True):
        game = next(number for number, one in enumerate(games["tokens"]) if torch.equal(one, tokens))
        board = games["relative"][game, place] - 1
        for expected in legal:
            own, opp = (boards_of_planes((board == side).view(4, 4)).item() for side in (1, -1))
            actions = [action for action in Position(rules, own, opp).legal_actions() if action < 16]
            assert saved.vocabulary.action_of_token[expected.nonzero().flatten().numpy()].tolist() == actions
            board[square] = colour


def test_the_command_reports_all_labels_and_the_interventions(saved, tmp_path, reversi):
    few = "--labels relative --labels parity --ends 0 --games 64 --test-games 32 --cases 20 --hidden 4 --steps 2"
    command = "probe", saved.save_in(tmp_path), *few.split()
    out = reversi(*command)[1]
    assert all(word in out for word in ("relative", "parity", "two-layer tokens", "changed board, after"))
    assert json.loads(reversi(*command, "--json")[1])["interventions"]["cases"] == 10


@pytest.mark.parametrize("passes", [False, True])
def test_the_first_and_last_positions_of_every_game_are_left_out(passes):
    options = GPTOptions(4, passes=passes, prefix=4, n_layer=1, n_embd=8, n_head=1)
    saved = SavedGPT(options.vocabulary, "normal", new_model(options), {"options": options.as_dict()})
    few = {"labels": ("relative",), "games": 200, "test_games": 50}
    all_games, _ = held_out_games(saved, ProbeOptions(ends=0, **few))
    games, _ = held_out_games(saved, ProbeOptions(ends=4, **few))
    places = [row.nonzero().flatten().tolist()[4:-4] for row in all_games["to_move"]]
    assert [row.nonzero().flatten().tolist() for row in games["to_move"]] == [row for row in places if row]
    assert len(make_cases(saved, games, 20, seed=1)["places"]) == 20
    with pytest.raises(TrainError, match="expected at most 5"):
        held_out_games(saved, ProbeOptions(ends=6, **few))
