"""Reference implementations of the solver, of fixed-depth searches and of sampled training games; endgame positions."""

import math

import numpy as np
from numba import njit

from reversi_env import Position, Rules, batch
from reversi_env.kernels.bitboard import final_score, legal_moves, play
from reversi_env.kernels.simd import trailing_zeros
from search.kernels.evaluate import UNIT
from studies.textbook import negamax

GAMES = [Rules(size, variant) for size in (4, 6, 8) for variant in ("normal", "reversed")]


def game_name(rules):
    return f"{rules.size}-{rules.variant}"


@njit
def _value(own, opp, playable, sign):
    moves = legal_moves(own, opp, playable)
    if moves == np.uint64(0):
        if legal_moves(opp, own, playable) == np.uint64(0):
            return sign * final_score(own, opp, playable)
        return -_value(opp, own, playable, sign)
    best = np.int64(-1000)
    while moves != np.uint64(0):
        child_own, child_opp = play(trailing_zeros(moves), own, opp)
        best = max(best, -_value(child_own, child_opp, playable, sign))
        moves &= moves - np.uint64(1)
    return best


@njit
def _values(own, opp, playable, sign):
    values = np.empty(own.size, np.int64)
    for i in range(own.size):
        values[i] = _value(own[i], opp[i], playable, sign)
    return values


def values(own, opp, rules):
    return _values(own, opp, np.uint64(rules.playable), np.int64(rules.sign))


def value(position):
    return int(values(np.array([position.own], np.uint64), np.array([position.opp], np.uint64), position.rules)[0])


def endgames(rules, count, max_empties, seed=0):
    """Return boards with at most *max_empties*: two thirds from random games, the rest random discs and wipe-outs."""
    generator = np.random.default_rng(seed)
    from_games = count - count // 3
    plies = rules.square_count - 4 - generator.integers(2, max_empties + 1, 4 * from_games)
    own, opp = batch.random_positions(plies.size, plies, rules, seed=seed)
    few = np.bitwise_count(own | opp) >= rules.square_count - max_empties
    own, opp = own[few][:from_games], opp[few][:from_games]
    assert own.size == from_games
    drawn = [_random_board(rules, int(generator.integers(0, max_empties + 1)), generator) for _ in range(count // 3)]
    boards = np.array(drawn, np.uint64).reshape(-1, 2)
    return np.concatenate([own, boards[:, 0]]), np.concatenate([opp, boards[:, 1]])


def _random_board(rules, empties, generator):
    squares = generator.permutation(list(rules.squares()))[empties:]
    mine = generator.random(squares.size) < generator.choice([0.05, 0.3, 0.5, 0.7, 0.95])
    return [sum(1 << int(sq) for sq in part) for part in (squares[mine], squares[~mine])]


def positions(own, opp, rules):
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]


WORD = (1 << 64) - 1
GAMMA = 0x9E37_79B9_7F4A_7C15


def mix(word):
    word = ((word ^ word >> 30) * 0xBF58_476D_1CE4_E5B9) & WORD
    word = ((word ^ word >> 27) * 0x94D0_49BB_1331_11EB) & WORD
    return word ^ word >> 31


class Words:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = (self.state + GAMMA) & WORD
        return mix(self.state)

    def below(self, bound):
        return (self.next() >> 32) * bound >> 32

    def fraction(self):
        return (self.next() >> 11) / 2**53


def rounded(evaluator):
    """Return the evaluation as a search uses it, rounded to units."""
    return lambda position: math.floor(evaluator.static_value(position) * UNIT + 0.5) / UNIT


def value_after(position, action, evaluator, depth):
    """Return the value of *action* in discs for the side to move; at depth 1 the evaluation is not rounded."""
    after = position.play(action)
    if depth == 1:
        return -(after.score() if after.is_over() else evaluator.static_value(after))
    return -negamax(after, depth - 1, rounded(evaluator)).value


def chosen_action(position, evaluator, depth, temperature, words):
    best, chosen, ties = None, None, 0
    for action in position.legal_actions():
        value = value_after(position, action, evaluator, depth)
        if temperature > 0:
            value -= temperature * math.log(-math.log(words.fraction() + 2.0**-54))
        if best is None or value > best:
            best, chosen, ties = value, action, 1
        elif value == best:
            ties += 1
            if words.below(ties) == 0:
                chosen = action
    return chosen


def play_game(options, evaluator, game):
    """Return the positions of game number *game* by their empties, and the number of random moves at its start."""
    words = Words(mix((mix((options.seed + GAMMA) & WORD) + game) & WORD))
    position = Position.initial(options.rules)
    prefix = words.below(options.prefixes[words.below(len(options.prefixes))])
    sides = (position.turn, position.turn.other)
    noise, temperature = dict.fromkeys(sides, 1.0), dict.fromkeys(sides, 0.0)
    if words.fraction() >= options.random_share:
        noise = {side: options.noise[words.below(len(options.noise))] for side in sides}
        temperature = {side: options.temperature[words.below(len(options.temperature))] for side in sides}
    sampled, moves = {}, 0
    while position.empties > options.empties[0] and not position.is_over():
        if position.must_pass():
            position = position.play("pass")
            continue
        is_random = words.fraction() < noise[position.turn]
        if moves < prefix or is_random:
            actions = position.legal_actions()
            action = actions[words.below(len(actions))]
        else:
            action = chosen_action(position, evaluator, options.play_depth, temperature[position.turn], words)
        position = position.play(action)
        moves += 1
        if moves > prefix and position.empties <= options.empties[1] and not position.is_over():
            sampled[position.empties] = position
    return sampled, prefix


def some_positions(rules, count, plies):
    """Return boards of positions of random games that have a legal move."""
    own, opp = batch.random_positions(count, plies, rules)
    movable = batch.legal_moves(own, opp, rules) != 0
    return own[movable], opp[movable]


def canonical_rows(own, opp):
    """Return the canonical form of every position as a pair of ints, by `batch.canonical`."""
    return list(zip(*(board.tolist() for board in batch.canonical(own, opp)[:2]), strict=True))
