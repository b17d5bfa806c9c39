"""Compiled forward passes against torch, for all board sizes."""

import weakref

import numpy as np
import pytest
import torch
from numba import njit

from models.bitboards import board_tensor, legal_moves
from models.kernels import simd as vectors
from models.kernels.accumulator import LANES, STATES, digit_table
from models.kernels.deep import SHAPE, evaluator_for, quantised_heads
from models.kernels.linear import UNITS
from models.kernels.patterns import patterns_of
from models.patterns import NETWORKS
from models.patterns.network import ArraySpec
from models.patterns.trainable import PatternModule
from reversi_env import Position, Rules, batch
from reversi_env.kernels import bitboard
from reversi_env.kernels.simd import popcount, trailing_zeros
from search.kernels import accumulator
from search.kernels.accumulator import (
    accumulator_of,
    accumulator_value,
    refresh_accumulator,
    update_accumulator,
    update_for_value,
)
from search.kernels.evaluate import evaluate, static_values
from tests.oracles.patterns import SIZES, digits_of, random_network, some_boards

every_size = pytest.mark.parametrize("size", SIZES)
extreme_sizes = pytest.mark.parametrize("size", [4, pytest.param(6, marks=pytest.mark.slow), 8])
every_kind = pytest.mark.parametrize("kind", NETWORKS)
#: Tolerance in discs: float32 sums in another order, for values of a few dozen discs.
ROUNDING = 1e-3


def values(network, own, opp):
    compiled = network.compiled()  # keeps the arrays to which its record points
    return static_values(compiled.record, own, opp)


@every_kind
@extreme_sizes
def test_torch_and_compiled_values_agree(size, kind):
    """With quantised weights, only the order of float32 sums differs, inside the range of scores."""
    network, (own, opp) = random_network(kind, size, variant="reversed"), some_boards(size)
    net = PatternModule.of(network)
    with torch.no_grad():
        expected = net(board_tensor(own), board_tensor(opp)).numpy()
        rows = net.features(board_tensor(own), board_tensor(opp))[0].numpy()
    limit, compiled_values = size * size - 0.5, values(network, own, opp)
    assert np.abs(compiled_values - np.clip(expected, -limit, limit)).max() <= ROUNDING
    assert np.unique(compiled_values).size > own.size / 2
    assert np.abs(values(random_network(kind, size, scale=50), own, opp)).max() == limit
    assert np.array_equal(net.feature_array(own, opp), rows)
    assert rows.max() < NETWORKS[kind].row(size)


@every_kind
@extreme_sizes
def test_value_is_equal_under_all_symmetries(size, kind):
    network, (own, opp) = random_network(kind, size, seed=1), some_boards(size, 60)
    expected = values(network, own, opp)
    assert np.unique(expected).size > 20
    positions = [Position(network.rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    for symmetry in range(1, 8):
        image = batch.from_positions([position.transformed(symmetry) for position in positions])
        assert np.array_equal(values(network, *image), expected)


def test_quantised_numbers_are_rounded_and_clipped():
    discs = np.array([0, 1, -1, 0.6 / UNITS, 300, -300], np.float32)
    assert ArraySpec(np.int16, (6,), UNITS).quantise(discs).tolist() == [0, UNITS, -UNITS, 1, 32767, -32767]
    parts = np.array([5.0, -5.0, 0.5, 0.6 / 128], np.float32)
    spec = ArraySpec(np.int8, (4,), 128)
    assert spec.quantise(parts).tolist() == [127, -127, 64, 1]
    np.testing.assert_array_equal(spec.fake_quantise(parts), spec.dequantise(spec.quantise(parts)))


STATE = np.dtype([accumulator.ACCUMULATORS], align=True)


@njit
def play_and_compare(thread_states, nets, own, opp, playable, squares, seed):
    """Play a random game with accumulators; return the numbers of compared values, of wrong values and of passes."""
    thread, net = thread_states[0], nets[0]
    compared, wrong, passes, level = 0, 0, 0, squares - popcount(own | opp)
    refresh_accumulator(net, accumulator_of(thread, level), own, opp)
    while True:
        accumulator, moves = accumulator_of(thread, level), bitboard.legal_moves(own, opp, playable)
        value = accumulator_value(net, accumulator, level, own, opp, moves)
        compared, wrong = compared + 1, wrong + (value != evaluate(net, own, opp))
        if moves == 0:
            own, opp, passes = opp, own, passes + 1
            refresh_accumulator(net, accumulator, own, opp)
            if bitboard.legal_moves(own, opp, playable) == 0:
                return compared, wrong, passes
            continue
        seed = seed * 6364136223846793005 + 1442695040888963407
        choice, chosen, number = (seed >> 33) % popcount(moves), 0, 0
        while moves != 0:
            sq = trailing_zeros(moves)
            moves &= moves - np.uint64(1)
            chosen, number = sq if number == choice else chosen, number + 1
            child_own, child_opp = bitboard.play(sq, own, opp)
            replies = bitboard.legal_moves(child_own, child_opp, playable)
            update_for_value(net, accumulator, sq, bitboard.flips(sq, own, opp))
            value = accumulator_value(net, accumulator_of(thread, level - 1), level - 1, child_own, child_opp, replies)
            compared, wrong = compared + 1, wrong + (value != evaluate(net, child_own, child_opp))
        update_accumulator(net, accumulator, chosen, bitboard.flips(chosen, own, opp))
        own, opp = bitboard.play(chosen, own, opp)
        level -= 1


@every_kind
@extreme_sizes
def test_incremental_values_equal_full_evaluation(size, kind):
    rules, network = Rules(size), random_network(kind, size).compiled()
    start, counts = Position.initial(rules), []
    for seed in range(40):
        boards = np.uint64(start.own), np.uint64(start.opp), np.uint64(rules.playable)
        counts.append(play_and_compare(np.zeros(1, STATE), network.record, *boards, rules.square_count, np.int64(seed)))
    compared, wrong, passes = np.sum(counts, axis=0)
    assert compared > 40 * rules.square_count
    assert passes > 50  # 40 of them end the games
    assert wrong == 0


@every_size
def test_digit_table_sums_equal_pattern_states(size):
    table, patterns = digit_table(size), patterns_of(size)
    boards = [*zip(*some_boards(size, 40), strict=True), (0, Rules(size).playable)]
    assert len(patterns.instances) <= sum(LANES) <= table.shape[2] == STATES
    for own, opp in boards:
        mine, theirs = (sum(table[row, int(board) >> 8 * row & 255] for row in range(8)) for board in (own, opp))
        states = mine + 2 * theirs
        for column, (number, symmetry) in enumerate(patterns.instances):
            digits = digits_of(int(own), int(opp), patterns.patterns[number].image(symmetry))
            places = patterns.patterns[number].search_places
            assert states[column] == sum(digit * 3**place for place, digit in zip(places, digits, strict=True))


def test_network_keeps_the_digit_table_alive():
    """Two concurrent first calls create one table each, and the cache keeps only one of them."""
    digit_table.cache_clear()
    table = weakref.ref(digit_table(4))
    compiled = random_network("deep", 4).compiled()
    digit_table.cache_clear()
    kept = table()
    assert kept is not None
    assert compiled.record["digits"][0] == kept.ctypes.data


@pytest.mark.slow
def test_deep_network_without_special_cpu_instructions(monkeypatch):
    """Byte products are exact with all instructions; without fused multiply-add there is one more rounding."""
    network, (own, opp) = random_network("deep", 4), some_boards(4, 100)
    expected = values(network, own, opp)
    for fused, tolerance in ((vectors.fuses, 0), (lambda context: False, ROUNDING)):
        calls = []
        monkeypatch.setattr(vectors, "fuses", fused)
        monkeypatch.setattr(vectors, "cpu_features", lambda context, calls=calls: calls.append(context) or set())
        compiled, value = network.compiled(), njit(evaluator_for(SHAPE)[1])  # a new compilation, not the cached one
        result = [value(compiled.record[0], a, b) for a, b in zip(own, opp, strict=True)]
        assert result == pytest.approx(expected.tolist(), abs=tolerance, rel=0)
        assert calls


def test_quantising_heads_twice_changes_nothing():
    """Files have quantised weights, as the search uses them; weights of older files are quantised on reading."""
    heads = np.random.default_rng(0).normal(size=(3, SHAPE.head)).astype(np.float32)
    heads[0, SHAPE.first : SHAPE.bias] = 0  # units without weights still have biases
    once = quantised_heads(SHAPE, heads)
    assert 0 < np.abs(once - heads).max() < 0.02
    assert np.array_equal(quantised_heads(SHAPE, once), once)
    units = slice(SHAPE.first, SHAPE.second)
    assert np.array_equal(np.delete(once, units, axis=1), np.delete(heads, units, axis=1))
    assert np.array_equal(quantised_heads(SHAPE, torch.from_numpy(heads)).numpy(), once)


@every_size
def test_legal_moves_of_tensors_equal_kernels(size):
    rules, (own, opp) = Rules(size), some_boards(size)
    result = legal_moves(board_tensor(own), board_tensor(opp), rules.playable).numpy().view(np.uint64)
    expected = [bitboard.legal_moves(a, b, np.uint64(rules.playable)) for a, b in zip(own, opp, strict=True)]
    assert result.tolist() == expected
