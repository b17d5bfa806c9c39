"""Probes and interventions: metrics by hand, labels that the features contain, directions, and cases against the rules."""

import numpy as np
import pytest
import torch

from models.gpt.files import SavedGPT
from models.gpt.net import GPT
from reversi_env import Position, Rules
from train.sequences.fit import new_config
from train.sequences.interventions import Directions, errors, make_cases
from train.sequences.options import ProbeOptions, preset
from train.sequences.probe_run import probe_model, tables
from train.sequences.probes import Features, Heads, Sums, held_out_games, train_probes

FEW = {"games": 64, "test_games": 32, "batch_size": 32, "steps": 60, "learning_rate": 2e-2}


@pytest.fixture(scope="module")
def saved():
    options = preset(4, n_layer=2, n_embd=32, n_head=2)
    torch.manual_seed(0)
    return SavedGPT(options.vocabulary, ("normal",), GPT(new_config(options)).eval(), {"options": options.as_dict()})


def probed(saved, **changes):
    options = ProbeOptions(**FEW | changes)
    games = held_out_games(saved, options, options.games + options.test_games)
    train, test = games.rows(slice(options.games)), games.rows(slice(options.games, None))
    return train_probes(Features(saved, options), train, test, options), train, test, options


def test_metrics_by_hand():
    sums = Sums()
    logits = torch.tensor([[[[0.0, 0, 9], [9, 0, 0]], [[0, 9, 0], [0, 9, 0]]]])  # one layer, two positions, two squares
    values = torch.tensor([[[1.0, 2, 9], [4, 3, 9]]])
    truth = torch.tensor([[2.0, 4, np.nan], [0, 6, np.nan]])
    for rows in (slice(0, 1), slice(1, 2)):
        target = torch.tensor([[2, 0], [1, 2]])[rows]
        sums.add({"relative": logits[:, rows], "values": values[:, rows]}, {"relative": target, "values": truth[rows]})
    metrics = sums.metrics()
    assert metrics["relative"] == {"accuracy": [0.75]}
    errors_by_hand = np.array([1, 2, 4, 3])
    assert metrics["values"]["mae"] == [errors_by_hand.mean()]
    assert metrics["values"]["r2"] == [
        pytest.approx(1 - (errors_by_hand**2).sum() / np.square([-1, 1, -3, 3]).sum(), abs=1e-5)
    ]
    assert metrics["values"]["pairs"] == [0.5]  # the first position's pair is ranked right, the second's is not


@pytest.mark.slow
def test_probes_read_what_the_features_have_and_not_what_they_lack(saved):
    result, *_ = probed(saved, labels=("relative", "legal", "mobility", "values"), hidden=16, steps=120)
    linear = result.metrics["linear"]
    assert linear["board"]["relative"]["accuracy"][0] > 0.97  # the board is a feature there
    assert linear["board"]["mobility"]["r2"][0] > 0.9
    assert linear["constant"]["relative"]["accuracy"][0] < 0.7
    assert linear["constant"]["mobility"]["r2"][0] < 0.1
    assert len(linear["model"]["values"]["mae"]) == 3
    assert "constant" not in result.metrics["two-layer"]


def test_no_position_after_the_end_is_probed(saved):
    _, train, *_ = probed(saved, labels=("relative",), hidden=0, steps=1)
    used = train.labels["to_move"] != 0
    assert Heads.of(("relative",), train).targets(train)["relative"].shape == (used.sum(), 16)
    assert (train.tokens[used] > 0).all()


def test_an_intervention_makes_the_probe_read_the_colour(saved):
    result, train, *_ = probed(saved, labels=("board", "relative"), hidden=0)
    used = train.labels["to_move"] != 0
    states = saved.net.residual_stream(train.tokens)[:, used].detach()
    directions = Directions(result, states, train.labels["relative"][used])
    squares = torch.arange(states.shape[1]) % 16
    for colour in (1, -1):
        colours = torch.full_like(squares, colour)
        moved = directions.set_colours(1, states[1], squares, colours, 1.0)
        again = directions.set_colours(1, moved, squares, colours, 1.0)
        assert torch.allclose(moved, again, atol=1e-4)
        probe = result.probes["linear"]["model"]
        outputs = result.heads.split(probe(torch.stack([moved] * 3)))["relative"][
            1, torch.arange(len(squares)), squares
        ]
        assert ((outputs[:, 2] - outputs[:, 0]).sign() == colour).all()


def test_cases_have_the_legal_moves_of_the_changed_board(saved):
    options, rules = ProbeOptions(**FEW), Rules(4)
    games = held_out_games(saved, options, 64)
    cases = make_cases(saved, games, 50, seed=1)
    assert 30 < len(cases.places) <= 50
    for row in range(len(cases.places)):
        game = next(number for number, one in enumerate(games.tokens) if torch.equal(one, cases.tokens[row]))
        board = games.labels["relative"][game, cases.places[row]].clone()
        for legal in (cases.before[row], cases.after[row]):
            own, opp = (
                sum(1 << sq for sq, disc in zip(rules.squares(), board, strict=True) if disc == side)
                for side in (1, -1)
            )
            expected = [action for action in Position(rules, own, opp).legal_actions() if action < 16]
            assert saved.vocabulary.action_of_token[legal.nonzero().flatten().numpy()].tolist() == expected
            board[cases.squares[row]] = cases.colours[row]


def test_errors_count_false_positives_and_false_negatives():
    legal = torch.tensor([[False, True, True, False]])
    assert errors(torch.tensor([[0.0, 3, 2, 1]]), legal).tolist() == [0]
    assert errors(torch.tensor([[9.0, 3, 2, 1]]), legal).tolist() == [2]
    assert errors(torch.tensor([[9.0, 3, 2, 8]]), legal).tolist() == [4]


def test_a_report_has_tables_for_all_labels_and_the_interventions(saved, tmp_path):
    options = ProbeOptions(labels=("relative", "parity"), cases=20, hidden=4, **FEW | {"steps": 2})
    result = probe_model(saved, options, tmp_path)
    assert result["interventions"]["cases"] == 10
    titles = [title.split(":")[0] for title, *_ in tables(result)]
    assert titles[:2] == ["relative", "parity"]
    assert len(titles) == 3
    assert (tmp_path / "probes.json").exists()
