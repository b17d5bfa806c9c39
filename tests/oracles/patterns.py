"""Slow, obviously right twins of the networks: plain Python over rows and columns."""

import numpy as np
import torch

from models.kernels.linear import COUNTS, UNITS
from models.kernels.patterns import patterns_of
from models.patterns.trainable import PatternModule
from reversi_env import Position, Rules, batch

LONGEST = {4: 11, 6: 30, 8: 58}
SIZES = (4, 6, 8)


def some_boards(size, count=300, seed=0):
    """Boards from all stages of random games, and some that play never reaches: discs anywhere, few, or none."""
    rules, generator = Rules(size), np.random.default_rng(seed)
    own, opp = batch.random_positions(count, generator.integers(0, LONGEST[size], count), rules, seed=seed)
    filled, mine = generator.integers(0, 2**63, (2, count // 10), dtype=np.uint64) << np.uint64(1)
    filled &= np.uint64(rules.playable)
    sparse = np.array([0, rules.start_boards[0], rules.playable], np.uint64)
    return np.concatenate([own, filled & mine, sparse]), np.concatenate([opp, filled & ~mine, sparse * np.uint64(0)])


def loud_net(network, size, seed=0, scale=1.0):
    """A network whose random parameters are large enough that sums are cut off on both sides, and no two are likely the same."""
    net, generator = PatternModule(network, size, seed), torch.Generator().manual_seed(seed + 1)
    spread = {"weights": 0.5, "constants": 3.0, "rows": 0.15, "heads": 0.7}
    for name, array in net.arrays.items():
        if name in spread:
            array.copy_(torch.randn(array.shape, generator=generator) * spread[name] * scale)
    return net


def random_network(network, size, seed=0, variant="normal", scale=1.0):
    """The same as a weight file has it."""
    return loud_net(network, size, seed, scale).to_network(Rules(size, variant), {"seed": seed})


def digits_of(own, opp, squares):
    """0 empty, 1 own, 2 opponent's, for each of the squares."""
    return [(own >> sq & 1) + 2 * (opp >> sq & 1) for sq in squares]


def rows_of(rules, own, opp):
    """The numbers of the rows of a position's patterns and numbers of moves within a phase, one look-up after the other."""
    patterns, numbers = patterns_of(rules.size), []
    for number, symmetry in patterns.instances:
        digits = digits_of(own, opp, patterns.patterns[number].image(symmetry))
        state = sum(digit * 3**place for place, digit in enumerate(digits))
        numbers.append(patterns.weight_index[patterns.offsets[number] + state])
    moves = [len(moves_of(Position(rules, *sides))) for sides in ((own, opp), (opp, own))]
    return [*numbers, patterns.weight_count + moves[0], patterns.weight_count + COUNTS + moves[1]]


def linear_value(network, own, opp, empties):
    row = network.weights[min(empties // {4: 2, 6: 2, 8: 3}[network.rules.size], len(network.weights) - 1)]
    total = int(network.constants[empties]) + sum(int(row[n]) for n in rows_of(network.rules, own, opp))
    return total / UNITS


def deep_value(network, own, opp, empties):
    rules = network.rules
    phase = min(empties // {4: 4, 6: 4, 8: 6}[rules.size], len(network.heads) - 1)
    numbers = [*rows_of(rules, own, opp), patterns_of(rules.size).weight_count + 2 * COUNTS + empties]
    rows, head = network.rows[phase], network.heads[phase].tolist()
    width, units = 8, 16
    sums = [sum(int(rows[n, k]) for n in numbers) / 128 for k in range(width)]
    inputs = [min(max(x, 0.0), 127 / 128) for x in sums] + [min(max(-x, 0.0), 127 / 128) for x in sums]
    straight, first, (*others, constant) = head[:width], head[width : -2 * units - 1], head[-2 * units - 1 :]
    value = constant + sum(x * w for x, w in zip(sums, straight, strict=True))
    for unit in range(units):
        total = others[unit] + sum(x * first[units * k + unit] for k, x in enumerate(inputs))
        value += max(total, 0.0) * others[units + unit]
    return value


def value(network, own, opp):
    """Any network's value of a position in discs, in plain Python."""
    rules, own, opp = network.rules, int(own), int(opp)
    of_kind = {"linear": linear_value, "deep": deep_value}[network.name]
    limit = rules.square_count - 0.5
    return min(max(of_kind(network, own, opp, rules.square_count - (own | opp).bit_count()), -limit), limit)


def moves_of(position):
    return [action for action in position.legal_actions() if action != position.rules.pass_action]
