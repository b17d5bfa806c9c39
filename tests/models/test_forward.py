"""The compiled forward passes against torch and against plain Python, on boards of all sizes."""

import weakref

import numpy as np
import pytest
import torch
from numba import njit

from models.boards import board_tensor, legal_moves
from models.compiled import quantised
from models.core import vectors
from models.core.deep_value import deep_value
from models.core.dense_value import HIDDEN, INPUTS
from models.core.pattern_states import LANES, LINE, digit_table
from models.core.pattern_value import COUNTS, UNITS
from models.core.patterns import patterns_of
from models.deep_net import DeepPatternNet
from models.dense_net import DenseNet
from models.pattern_net import PatternNet
from reversi_env import Position, Rules, batch
from reversi_env.core import bitboard
from search.core.evaluate import static_values
from tests.models import twins
from tests.models.twins import SIZES, random_weights, some_boards

every_size = pytest.mark.parametrize("size", SIZES)
#: Sums of float32 in another order: discs, for values of a few dozen.
ROUNDING = 1e-3


def values(weights, own, opp):
    network = weights.compiled()
    return static_values(network.record(weights.rules), own, opp)


def images(own, opp, rules):
    """The boards under symmetries 1 to 7."""
    for symmetry in range(1, 8):
        turned = [Position(rules, int(a), int(b)).transformed(symmetry) for a, b in zip(own, opp, strict=True)]
        yield batch.from_positions(turned)


# --- patterns -------------------------------------------------------------------------------------


@every_size
def test_the_compiled_sum_is_that_of_plain_python(size):
    weights, (own, opp) = random_weights(size), some_boards(size, 150)
    expected = [twins.pattern_value(weights, a, b) for a, b in zip(own, opp, strict=True)]
    assert values(weights, own, opp).tolist() == expected


@every_size
def test_the_value_is_the_same_under_all_symmetries(size):
    weights, (own, opp) = random_weights(size, seed=1), some_boards(size, 60)
    expected = values(weights, own, opp)
    assert np.unique(expected).size > 20
    for image in images(own, opp, weights.rules):
        assert np.array_equal(values(weights, *image), expected)


@every_size
def test_torch_and_search_differ_by_no_more_than_the_quantisation(size):
    """Half a unit for every weight that is summed: the instances, two numbers of moves and the constant."""
    torch.manual_seed(size)
    net, rules = PatternNet(size), Rules(size)
    torch.nn.init.normal_(net.table.weight, std=0.5)
    torch.nn.init.normal_(net.constant.weight, std=3)
    own, opp = some_boards(size, 300)
    with torch.no_grad():
        trained = net(board_tensor(own), board_tensor(opp)).numpy()
    compiled = net.weights(rules).compiled()
    found = static_values(compiled.record(rules), own, opp)
    bound = (len(patterns_of(size).instances) + 3) * 0.5 / UNITS + ROUNDING
    limit = rules.square_count - 0.5
    error = np.abs(found - np.clip(trained, -limit, limit)).max()
    assert 0 < error <= bound
    assert np.abs(trained).max() < limit + 20


def test_values_stay_inside_the_range_of_scores():
    own, opp = some_boards(6)
    loud = random_weights(6, low=-30_000, high=30_000)
    assert np.abs(values(loud, own, opp)).max() == 35.5


def test_quantised_weights_are_the_nearest_that_fit():
    discs = np.array([0, 1, -1, 0.6 / UNITS, 300, -300])
    assert quantised(discs).tolist() == [0, UNITS, -UNITS, 1, 32767, -32767]


def test_every_state_gets_the_weight_that_it_shares():
    weights, patterns = random_weights(4), patterns_of(4)
    found = weights.expanded()
    assert np.array_equal(found[:, : patterns.states], weights.weights[:, patterns.tied])
    assert np.array_equal(found[:, patterns.states :], weights.weights[:, -2 * COUNTS :])


@every_size
@pytest.mark.parametrize("kind", [PatternNet, DeepPatternNet])
def test_the_compiled_rows_are_those_of_torch(size, kind):
    net, (own, opp) = kind(size), some_boards(size, 500)
    expected = net.features(board_tensor(own), board_tensor(opp))[0].numpy()
    assert np.array_equal(net.rows_of(own, opp), expected)
    assert expected.max() < net.row


# --- the states of patterns -----------------------------------------------------------------------


@every_size
def test_rows_of_discs_add_up_to_the_states_of_plain_python(size):
    table, patterns = digit_table(size), patterns_of(size)
    for own, opp in zip(*some_boards(size, 40), strict=True):
        mine, theirs = (sum(table[row, int(board) >> 8 * row & 255] for row in range(8)) for board in (own, opp))
        found = mine + 2 * theirs
        for column, (number, symmetry) in enumerate(patterns.instances):
            digits = twins.digits_of(int(own), int(opp), patterns.patterns[number].image(symmetry))
            assert found[column] == sum(digit * 3**k for k, digit in enumerate(digits))


@every_size
def test_no_vector_of_the_table_straddles_two_lines_of_the_cache_and_no_state_overflows(size):
    table = digit_table(size)
    assert table.ctypes.data % LINE == 0
    assert 2 * LANES <= LINE
    assert table.shape[2] % LANES == 0
    most = 2 * table[:, -1].sum(axis=0, dtype=np.int64)  # opponent's discs everywhere
    assert most.max() <= np.iinfo(table.dtype).max


@pytest.mark.parametrize("kind", [PatternNet, DeepPatternNet])
def test_a_network_keeps_the_table_that_its_record_points_to(kind):
    """Two threads that ask for the first time at once are given one each, and only one of them is remembered."""
    digit_table.cache_clear()
    table = weakref.ref(digit_table(4))
    network = kind(4).weights(Rules(4)).compiled()
    digit_table.cache_clear()
    kept = table()
    assert kept is not None
    assert network.record(Rules(4))["digits"][0] == kept.ctypes.data


# --- the deep network ------------------------------------------------------------------------------


def deep_weights(size, seed=0):
    """A deep network with weights large enough that sums are cut off on both sides, already rounded."""
    net, generator = DeepPatternNet(size, seed), torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        net.table.weight.copy_(torch.randn(net.table.weight.shape, generator=generator) * 0.15)
        net.heads.copy_(torch.randn(net.heads.shape, generator=generator) * 0.7)
    return net.weights(Rules(size))


@every_size
def test_the_deep_network_is_the_same_in_torch_and_in_the_search(size):
    """Once its rows are rounded, only sums of float32 in another order are left to differ."""
    stored, (own, opp) = deep_weights(size), some_boards(size)
    net = DeepPatternNet(size)
    net.load_weights(stored)
    with torch.no_grad():
        expected = net(board_tensor(own), board_tensor(opp)).numpy()
        sums = net.table(net.features(board_tensor(own), board_tensor(opp))[0])
    assert (sums > 1).any()
    assert (sums < -1).any()
    limit = size * size - 0.5
    found = values(stored, own, opp)
    assert np.abs(found - np.clip(expected, -limit, limit)).max() <= ROUNDING
    assert np.unique(found).size > found.size / 2


@every_size
def test_the_deep_network_in_plain_python(size):
    stored, (own, opp) = deep_weights(size, seed=3), some_boards(size, 30)
    expected = [twins.deep_value(stored, a, b) for a, b in zip(own, opp, strict=True)]
    assert values(stored, own, opp).tolist() == pytest.approx(expected, abs=ROUNDING)


def test_the_deep_network_has_the_same_value_under_all_symmetries():
    stored, (own, opp) = deep_weights(6, seed=1), some_boards(6, 60)
    expected = values(stored, own, opp)
    for image in images(own, opp, stored.rules):
        assert np.array_equal(values(stored, *image), expected)


@pytest.mark.slow
def test_the_deep_network_on_a_cpu_that_multiplies_and_adds_in_two_instructions(monkeypatch):
    stored, (own, opp) = deep_weights(4), some_boards(4, 100)
    expected = values(stored, own, opp)
    asked = []
    monkeypatch.setattr(vectors, "fuses", asked.append)  # and no is the answer
    network, value = stored.compiled(), njit(deep_value)  # not what `evaluate` knows: compiled anew
    record = network.record(stored.rules)[0]
    found = [value(record, a, b) for a, b in zip(own, opp, strict=True)]
    assert found == pytest.approx(expected.tolist(), abs=ROUNDING)
    assert asked


def test_rounding_the_deep_network_keeps_what_fits():
    net = DeepPatternNet(4)
    net.rows()[0, 0, :4] = torch.tensor([5.0, -5.0, 0.5, 0.6 / 128])
    assert net.weights(Rules(4)).rows[0, 0, :4].tolist() == [127, -127, 64, 1]


# --- the dense network ----------------------------------------------------------------------------


@every_size
def test_the_dense_network_is_the_same_in_torch_and_in_the_search(size):
    torch.manual_seed(size)
    net, rules, (own, opp) = DenseNet(size), Rules(size, "reversed"), some_boards(size)
    with torch.no_grad():
        expected = net(board_tensor(own), board_tensor(opp)).numpy()
    limit = size * size - 0.5
    found = values(net.weights(rules), own, opp)
    assert np.abs(found - np.clip(expected, -limit, limit)).max() <= ROUNDING
    assert np.unique(found).size > found.size / 2


def test_the_dense_network_in_plain_python():
    torch.manual_seed(1)
    weights = DenseNet(6).weights(Rules(6))
    for own, opp in zip(*some_boards(6, 20), strict=True):
        boards = [int(own), int(opp)]
        for mine, theirs in (boards, boards[::-1]):
            moves = twins.moves_of(Position(Rules(6), mine, theirs))
            boards.append(sum(1 << Rules(6).square_of(action) for action in moves))
        inputs = [float(board >> sq & 1) for board in boards[:4] for sq in range(64)]
        assert len(inputs) == INPUTS
        value = float(weights.second_bias[0])
        for unit in range(HIDDEN):
            total = sum(x * w for x, w in zip(inputs, weights.first[:, unit].tolist(), strict=True))
            value += float(weights.second[unit]) * min(max(total + float(weights.first_bias[unit]), 0.0), 1.0)
        one = values(weights, np.array([own]), np.array([opp]))[0]
        assert one == pytest.approx(min(max(value, -35.5), 35.5), abs=ROUNDING)


@every_size
def test_legal_moves_of_tensors(size):
    rules, (own, opp) = Rules(size), some_boards(size)
    found = legal_moves(board_tensor(own), board_tensor(opp), rules.playable).numpy().view(np.uint64)
    expected = [bitboard.legal_moves(a, b, np.uint64(rules.playable)) for a, b in zip(own, opp, strict=True)]
    assert found.tolist() == expected
