"""Slow, obviously right twins of the networks: plain Python over rows and columns."""

import numpy as np

from models.core import deep_value as deep
from models.core.pattern_value import COUNTS, UNITS
from models.core.patterns import EMPTIES_A_PHASE, patterns_of
from models.files import PatternWeights
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


def random_weights(size, seed=0, variant="normal", low=-500, high=500):
    """A network whose weights are random whole numbers, so that no two sums are likely to be the same."""
    rules, generator = Rules(size, variant), np.random.default_rng(seed)
    arrays = {
        name: generator.integers(low, high, shape).astype(dtype)
        for name, (dtype, shape) in PatternWeights.shapes(rules).items()
    }
    return PatternWeights(rules=rules, record={"seed": seed}, **arrays)


def digits_of(own, opp, squares):
    """0 empty, 1 own, 2 opponent's, for each of the squares."""
    return [(own >> sq & 1) + 2 * (opp >> sq & 1) for sq in squares]


def pattern_value(weights, own, opp):
    """The network's value in discs, one look-up after the other."""
    rules, own, opp = weights.rules, int(own), int(opp)
    patterns, position = patterns_of(rules.size), Position(rules, own, opp)
    empties = rules.square_count - (own | opp).bit_count()
    row = weights.weights[min(empties // EMPTIES_A_PHASE[rules.size], patterns.phases - 1)]
    total = int(weights.constants[empties])
    for number, symmetry in patterns.instances:
        digits = digits_of(own, opp, patterns.patterns[number].image(symmetry))
        state = sum(digit * 3**place for place, digit in enumerate(digits))
        total += int(row[patterns.tied[patterns.offsets[number] + state]])
    moves = [len(moves_of(side)) for side in (position, Position(rules, opp, own))]
    total += int(row[patterns.weights + moves[0]]) + int(row[patterns.weights + COUNTS + moves[1]])
    limit = rules.square_count - 0.5
    return min(max(total / UNITS, -limit), limit)


def deep_value(weights, own, opp):
    """The deep network's value in discs, in plain Python."""
    rules, own, opp = weights.rules, int(own), int(opp)
    patterns, position = patterns_of(rules.size), Position(rules, own, opp)
    empties = rules.square_count - (own | opp).bit_count()
    phase = min(empties // deep.EMPTIES_A_PHASE[rules.size], len(weights.heads) - 1)
    numbers = []
    for number, symmetry in patterns.instances:
        digits = digits_of(own, opp, patterns.patterns[number].image(symmetry))
        state = sum(digit * 3**place for place, digit in enumerate(digits))
        numbers.append(patterns.tied[patterns.offsets[number] + state])
    moves = [len(moves_of(side)) for side in (position, Position(rules, opp, own))]
    numbers += [patterns.weights + moves[0], patterns.weights + COUNTS + moves[1]]
    numbers.append(patterns.weights + 2 * COUNTS + empties)
    rows, head = weights.rows[phase], weights.heads[phase].tolist()
    sums = [sum(int(rows[n, k]) for n in numbers) / 128 for k in range(8)]
    inputs = [min(max(x, 0.0), 1.0) for x in sums] + [min(max(-x, 0.0), 1.0) for x in sums]
    straight, first, bias, second = head[:8], head[8:264], head[264:280], head[280:296]
    value = head[296] + sum(x * w for x, w in zip(sums, straight, strict=True))
    for unit in range(16):
        total = bias[unit] + sum(x * first[16 * k + unit] for k, x in enumerate(inputs))
        value += max(total, 0.0) * second[unit]
    limit = rules.square_count - 0.5
    return min(max(value, -limit), limit)


def moves_of(position):
    """Legal moves, passes left out."""
    return [action for action in position.legal_actions() if action != position.rules.pass_action]
