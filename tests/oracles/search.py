"""The solver's slow twin: plain negamax to the end of the game, nothing pruned and nothing remembered; and endgames for it."""

import numpy as np
from numba import njit

from reversi_env import Position, Rules, batch
from reversi_env.kernels.bitboard import final_score, legal_moves, play
from reversi_env.kernels.simd import trailing_zeros

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
    """Exact scores for the side to move."""
    return _values(own, opp, np.uint64(rules.playable), np.int64(rules.sign))


def value(position):
    """Exact score of one position."""
    return int(values(np.array([position.own], np.uint64), np.array([position.opp], np.uint64), position.rules)[0])


def endgames(rules, count, most_empties, seed=0):
    """Boards with at most that many empty squares: two thirds from random games, the rest at random, wipe-outs among them."""
    generator = np.random.default_rng(seed)
    from_games = count - count // 3
    plies = rules.square_count - 4 - generator.integers(2, most_empties + 1, 4 * from_games)
    own, opp = batch.random_positions(plies.size, plies, rules, seed=seed)
    few = np.bitwise_count(own | opp) >= rules.square_count - most_empties
    own, opp = own[few][:from_games], opp[few][:from_games]
    assert own.size == from_games
    drawn = [_random_board(rules, int(generator.integers(0, most_empties + 1)), generator) for _ in range(count // 3)]
    boards = np.array(drawn, np.uint64).reshape(-1, 2)
    return np.concatenate([own, boards[:, 0]]), np.concatenate([opp, boards[:, 1]])


def _random_board(rules, empties, generator):
    squares = generator.permutation(list(rules.squares()))[empties:]
    mine = generator.random(squares.size) < generator.choice([0.05, 0.3, 0.5, 0.7, 0.95])
    return [sum(1 << int(sq) for sq in part) for part in (squares[mine], squares[~mine])]


def positions(own, opp, rules):
    return [Position(rules, int(a), int(b)) for a, b in zip(own, opp, strict=True)]
