"""The compiled forward passes against torch, on boards of all sizes."""

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
every_kind = pytest.mark.parametrize("kind", NETWORKS)
#: Sums of float32 in another order: discs, for values of a few dozen.
ROUNDING = 1e-3


def values(network, own, opp):
    compiled = network.compiled()  # keeps the arrays to which its record points
    return static_values(compiled.record, own, opp)


@every_kind
@every_size
def test_torch_and_search_agree(size, kind):
    """With weights as a file has them, only sums of float32 in another order are left to differ, inside the range of scores."""
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
@every_size
def test_the_value_is_the_same_under_all_symmetries(size, kind):
    network, (own, opp) = random_network(kind, size, seed=1), some_boards(size, 60)
    expected = values(network, own, opp)
    assert np.unique(expected).size > 20
    positions = [Position(network.rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
    for symmetry in range(1, 8):
        image = batch.from_positions([position.transformed(symmetry) for position in positions])
        assert np.array_equal(values(network, *image), expected)


def test_rounded_numbers_are_the_nearest_that_fit():
    discs = np.array([0, 1, -1, 0.6 / UNITS, 300, -300], np.float32)
    assert ArraySpec(np.int16, (6,), UNITS).quantise(discs).tolist() == [0, UNITS, -UNITS, 1, 32767, -32767]
    parts = np.array([5.0, -5.0, 0.5, 0.6 / 128], np.float32)
    spec = ArraySpec(np.int8, (4,), 128)
    assert spec.quantise(parts).tolist() == [127, -127, 64, 1]
    np.testing.assert_array_equal(spec.fake_quantise(parts), spec.dequantise(spec.quantise(parts)))


WORK = np.dtype([accumulator.ACCUMULATORS], align=True)


@njit
def carried_and_whole(thread_states, nets, own, opp, playable, squares, seed):
    """A game of random moves with carried states: values compared, those that differ from the board's, and passes."""
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
@every_size
def test_values_by_carried_states_are_those_of_the_board_bit_for_bit(size, kind):
    rules, network = Rules(size), random_network(kind, size).compiled()
    start, found = Position.initial(rules), []
    for seed in range(40):
        boards = np.uint64(start.own), np.uint64(start.opp), np.uint64(rules.playable)
        found.append(carried_and_whole(np.zeros(1, WORK), network.record, *boards, rules.square_count, np.int64(seed)))
    compared, wrong, passes = np.sum(found, axis=0)
    assert compared > 40 * rules.square_count
    assert passes > 50  # 40 of them end the games
    assert wrong == 0


@every_size
def test_rows_of_discs_add_up_to_the_states_of_plain_python(size):
    table, patterns = digit_table(size), patterns_of(size)
    boards = [*zip(*some_boards(size, 40), strict=True), (0, Rules(size).playable)]
    assert len(patterns.instances) <= sum(LANES) <= table.shape[2] == STATES
    for own, opp in boards:
        mine, theirs = (sum(table[row, int(board) >> 8 * row & 255] for row in range(8)) for board in (own, opp))
        found = mine + 2 * theirs
        for column, (number, symmetry) in enumerate(patterns.instances):
            digits = digits_of(int(own), int(opp), patterns.patterns[number].image(symmetry))
            places = patterns.patterns[number].search_places
            assert found[column] == sum(digit * 3**place for place, digit in zip(places, digits, strict=True))


def test_a_network_keeps_the_table_that_its_record_points_to():
    """Two threads that ask for the first time at once are given one each, and only one of them is remembered."""
    digit_table.cache_clear()
    table = weakref.ref(digit_table(4))
    compiled = random_network("deep", 4).compiled()
    digit_table.cache_clear()
    kept = table()
    assert kept is not None
    assert compiled.record["digits"][0] == kept.ctypes.data


@pytest.mark.slow
def test_the_deep_network_on_a_cpu_without_instructions_for_it(monkeypatch):
    """Products of bytes are the same whatever makes them; multiplying and adding in two instructions rounds once more."""
    network, (own, opp) = random_network("deep", 4), some_boards(4, 100)
    expected = values(network, own, opp)
    for fused, tolerance in ((vectors.fuses, 0), (lambda context: False, ROUNDING)):
        asked = []
        monkeypatch.setattr(vectors, "fuses", fused)
        monkeypatch.setattr(vectors, "cpu_features", lambda context, asked=asked: asked.append(context) or set())
        compiled, value = network.compiled(), njit(evaluator_for(SHAPE)[1])  # not what is known: compiled anew
        found = [value(compiled.record[0], a, b) for a, b in zip(own, opp, strict=True)]
        assert found == pytest.approx(expected.tolist(), abs=tolerance, rel=0)
        assert asked


def test_weights_of_units_are_rounded_once():
    """What a file has is what the search works with; files from before that are rounded when they are read."""
    heads = np.random.default_rng(0).normal(size=(3, SHAPE.head)).astype(np.float32)
    heads[0, SHAPE.first : SHAPE.bias] = 0  # units without weights have biases still
    once = quantised_heads(SHAPE, heads)
    assert 0 < np.abs(once - heads).max() < 0.02
    assert np.array_equal(quantised_heads(SHAPE, once), once)
    units = slice(SHAPE.first, SHAPE.second)
    assert np.array_equal(np.delete(once, units, axis=1), np.delete(heads, units, axis=1))
    assert np.array_equal(quantised_heads(SHAPE, torch.from_numpy(heads)).numpy(), once)


@every_size
def test_legal_moves_of_tensors(size):
    rules, (own, opp) = Rules(size), some_boards(size)
    found = legal_moves(board_tensor(own), board_tensor(opp), rules.playable).numpy().view(np.uint64)
    expected = [bitboard.legal_moves(a, b, np.uint64(rules.playable)) for a, b in zip(own, opp, strict=True)]
    assert found.tolist() == expected
