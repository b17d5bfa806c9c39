"""Streams of tokens and their labels, against games on a plain matrix."""

from importlib.util import find_spec
from itertools import islice

import numpy as np
import pytest
import torch
from numba import njit

from models.gpt.tokens import Vocabulary
from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from search.engine.solver import solve_all_moves
from tests.oracles import rules as slow
from tests.oracles import sequences as oracle
from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of
from train.sequences.labels import label_games
from train.sequences.streams import GameStream

VARIANTS = "normal", "reversed"
NAMES = "board", "relative", "legal", "flipped", "mobility", "parity", "to_move"


def assert_true(tokens, rules, vocabulary, **how):
    """Games are legal and complete, and all labels are those of the oracle."""
    labels = label_games(tokens, rules, vocabulary, NAMES)
    for name, expected in oracle.label_rows(tokens.numpy(), vocabulary.size, vocabulary, **how).items():
        assert np.array_equal(labels[name].numpy(), expected), name


@pytest.mark.parametrize("options", [{}, {"passes": True, "start": True, "rules": True}])
@pytest.mark.parametrize(("size", "games"), [(4, 50), (6, 10), (8, 4)])
def test_games_and_labels_are_those_of_an_independent_tokeniser(size, games, options):
    rules, vocabulary = [Rules(size, variant) for variant in VARIANTS], Vocabulary(size, **options)
    for split in ("train", "validation"):
        stream = GameStream(rules, vocabulary, games, seed=size, split=split)
        tokens = stream.batch(1)
        assert (tokens.dtype, tuple(tokens.shape)) == (torch.uint8, (games, vocabulary.length))
        assert_true(tokens, rules, vocabulary)
        if vocabulary.rules:
            normal = size**2 - 4 + 3
            assert set(map(tuple, tokens[:, :2].tolist())) == {(normal - 1, normal), (normal - 1, normal + 1)}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("options", [{}, {"passes": True, "start": True, "rules": True}])
def test_a_hundred_thousand_games(monkeypatch, size, variant, options):
    for name in ("turned_by", "legal_squares", "after_move", "start_board"):
        monkeypatch.setattr(slow, name, njit(getattr(slow, name)))
    rules, vocabulary, compiled = Rules(size, variant), Vocabulary(size, **options), njit(oracle.label_row)
    for tokens in islice(GameStream(rules, vocabulary, 1000, seed=size), 100):
        assert_true(tokens, rules, vocabulary, label_row=compiled)


@pytest.mark.parametrize(("size", "prefix"), [(4, 4), (6, 4), (8, 4), (8, 8)])
def test_splits_share_no_beginning_whatever_seed_and_variant(size, prefix):
    seen = {}
    for split, seed, variant in (("train", 1, "normal"), ("validation", 2, "reversed"), ("validation", 1, "normal")):
        tokens = GameStream(Rules(size, variant), Vocabulary(size), 400, seed=seed, split=split, prefix=prefix).batch(0)
        seen.setdefault(split, set()).update(map(tuple, tokens[:, :prefix].tolist()))
    assert all(len(beginnings) > 3 for beginnings in seen.values())
    assert not seen["train"] & seen["validation"]


def test_moves_are_uniform():
    """The first two moves, and whether they depend on the seed and on the number of the batch."""
    stream = GameStream(Rules(8), Vocabulary(8), 20_000, seed=5)
    tokens = stream.batch(0).numpy()
    counts = np.unique(tokens[:, :2].astype(int) @ [100, 1], return_counts=True)[1]
    assert len(counts) == 12
    assert abs(counts - 20_000 / 12).max() < 250  # six standard deviations; beginnings in the other split are few
    assert not np.array_equal(tokens, stream.batch(1).numpy())
    assert not np.array_equal(tokens, GameStream(Rules(8), Vocabulary(8), 20_000, seed=6).batch(0).numpy())


@pytest.mark.parametrize("source", ["random", "six-factor:depth=1+random@2", "random:seed=3"])
def test_a_stream_resumes_with_the_batch_that_would_have_come(source):
    def stream():
        return GameStream([Rules(4), Rules(4, "reversed")], Vocabulary(4, rules=True), 5, seed=3, source=source)

    first = stream()
    batches = list(islice(first, 4))
    later = stream()
    later.skip_to(2)
    assert all(torch.equal(one, other) for one, other in zip(batches[2:], islice(later, 2), strict=True))
    assert later.state == first.state == 4
    loaded = torch.utils.data.DataLoader(stream(), batch_size=None, num_workers=0)
    assert all(torch.equal(one, other) for one, other in zip(batches, islice(loaded, 4), strict=True))


def test_what_is_no_stream_is_an_error():
    for options in ({"prefix": 3}, {"split": "test"}, {"seed": -1}, {"source": "nobody"}):
        with pytest.raises(TrainError, match=next(iter(options))):
            GameStream(Rules(), Vocabulary(), 2, **({"seed": 0} | options))
    with pytest.raises(TrainError, match="size 8"):
        GameStream([Rules(8), Rules(6)], Vocabulary(), 2, seed=0)


def test_labels_end_at_an_illegal_token():
    vocabulary, tokens = Vocabulary(), GameStream(Rules(), Vocabulary(), 3, seed=1).batch(0)
    before = label_games(tokens, Rules(), vocabulary, NAMES)
    for wrong in (200, int(tokens[0, 3])):  # no token, and an occupied square
        tokens[0, 7] = wrong
        labels = label_games(tokens, Rules(), vocabulary, NAMES)
        for name in NAMES:
            assert torch.equal(labels[name][0, :7], before[name][0, :7])
            assert not labels[name][0, 7:].any()
            assert torch.equal(labels[name][1:], before[name][1:])


def test_stable_discs():
    tokens, vocabulary = GameStream(Rules(6), Vocabulary(6), 3, seed=2).batch(0), Vocabulary(6)
    labels = label_games(tokens, Rules(6), vocabulary, ["board", "stable"])
    for board, stable in zip(labels["board"].view(-1, 6, 6).numpy(), labels["stable"].view(-1, 6, 6), strict=True):
        expected = slow.stable_squares(board) | slow.stable_squares(-board)
        assert {(r, c) for r, c in stable.nonzero().tolist()} == expected


@pytest.mark.parametrize(("size", "empties"), [(4, None), (6, 7), (8, 6)])
def test_values_are_those_of_the_solver(size, empties):
    rules, vocabulary = [Rules(size, variant) for variant in VARIANTS], Vocabulary(size, rules=True)
    tokens = GameStream(rules, vocabulary, 4, seed=4).batch(0)
    values = label_games(tokens, rules, vocabulary, ["values"], empties=empties)["values"]
    most, has_book = 12 if empties is None else empties, size == 6
    for row, game in zip(tokens.tolist(), rules * 2, strict=True):
        position = Position.initial(game)
        for place, action in enumerate([None, *vocabulary.decode(row)]):
            position = position if action is None else position.play(action)
            position = position.play("pass") if position.must_pass() else position
            found = values[tokens.tolist().index(row), place]
            expected = torch.full((size**2,), torch.nan)
            if position.empties <= most and not position.is_over():
                for move, value in solve_all_moves(position).items():
                    expected[game.action_from_name(move)] = value
            elif has_book and game.variant == "normal" and position.empties > 25:
                assert place > 1 or found.nan_to_num(-99).max() == (-4, 4)[place]
                continue
            assert torch.equal(found.nan_to_num(99), expected.nan_to_num(99))


GPU = """
import torch
from models.gpt.tokens import Vocabulary
from reversi_env import Rules
from tests.oracles.cuda import numba_device
from train.sequences.labels import replay
from train.sequences.streams import GameStream

device = numba_device()
from train.sequences import gpu
for size, options in ((4, {}), (6, dict(passes=True, start=True)), (8, dict(rules=True))):
    rules, vocabulary = [Rules(size), Rules(size, "reversed")], Vocabulary(size, **options)
    for split in ("train", "validation"):
        options = dict(seed=2**64 - 1, split=split)
        tokens, cpu = (GameStream(rules, vocabulary, 9, device=one, **options).batch(2) for one in ("cuda", "cpu"))
        assert torch.equal(tokens.cpu(), cpu)
        cpu[1, 5] = 255
        expected = replay(cpu, rules[0], vocabulary, on_gpu=False)
        for found, same in zip(replay(cpu.to(device), rules[0], vocabulary, on_gpu=True), expected):
            assert torch.equal(found.cpu(), same)
        print(size, split, int(tokens.sum()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")
def test_a_gpu_plays_the_same_games_and_sees_the_same_boards():
    assert len(output_of(GPU, **NUMBA_SIMULATES)) == 6
