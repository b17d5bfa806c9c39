"""Noisy games for datasets, choice of moves, and games in lockstep.

Game *i* depends on (seed, i) only. At its start the number of random moves is drawn, and the noise and temperature of each side for
the moves after them. Of the positions after the random moves, one per number of empties is taken.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, final_score, is_over, legal_moves, play
from reversi_env.kernels.games import next_random, random_square, stream_state
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.symmetry import canonical, position_hash
from search.kernels.evaluate import INFINITY, UNIT, evaluate
from search.kernels.midgame import negamax

_HALF = np.uint64(32)
#: Maximum number of values of each kind that a game draws from.
CHOICES = 64

#: How games are played: the values that they draw from, and the search depth of a move (1: the evaluator's value after it).
GAME_SETTINGS = np.dtype(
    [
        ("low", np.int64),  # lowest number of empties
        ("depth", np.int64),
        ("random_share", np.float64),  # share of games with random moves only
        ("noise_count", np.int64),
        ("temperature_count", np.int64),
        ("prefix_count", np.int64),
        ("noises", np.float64, (CHOICES,)),  # probabilities of a random move, one drawn by each side
        ("temperatures", np.float64, (CHOICES,)),  # temperatures in discs, one drawn by each side
        ("prefixes", np.int64, (CHOICES,)),  # exclusive bounds of the random moves at the start
    ],
    align=True,
)


@kernel
def random_below(word, bound):
    return np.int64(((word >> _HALF) * np.uint64(bound)) >> _HALF)


@kernel
def random_fraction(word):
    """Return a number from 0 to just below 1 from 64 random bits."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def position_value(thread, net, own, opp, depth, highest):
    """Return the value for the side to move in discs: the final score, or that of a search to *depth* plies.

    A value of *highest* or more, in units of the search, may be a lower bound.
    """
    lowest = np.int64(-INFINITY)  # a literal would have its own type
    if depth == 0 and is_over(own, opp, thread.playable):
        return np.float64(thread.sign * final_score(own, opp, thread.playable))
    if depth == 0:
        return np.float64(evaluate(net, own, opp))
    return negamax(thread, net, own, opp, lowest, np.int64(highest), np.int64(depth)) / UNIT


@kernel
def sample_square(thread, net, own, opp, moves, depth, temperature, state):
    """Return the best move by a search of *depth* plies, the move included, and the next state of the generator.

    Ties are broken at random. With a *temperature* in discs above 0, moves are sampled by Gumbel noise: one that is worse by the
    temperature is e times as rare. Without it, other moves are only compared with the best value so far.
    """
    best, best_sq, ties = -np.inf, trailing_zeros(moves), 0
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        next_own, next_opp = play(sq, own, opp)
        floor = -INFINITY if ties == 0 or temperature > 0.0 else np.int64(best * UNIT) - 1
        value = -position_value(thread, net, next_own, next_opp, depth - 1, -floor)
        if temperature > 0.0:
            word, state = next_random(state)
            value -= temperature * np.log(-np.log(random_fraction(word) + 2.0**-54))
        if value > best:
            best, best_sq, ties = value, sq, 1
        elif value == best:
            ties += 1
            word, state = next_random(state)
            if random_below(word, ties) == 0:
                best_sq = sq
    return best_sq, state


@kernel
def play_games(thread_states, nets, black, white, games, seed, first, wanted, own, opp, key):
    """Play the games from index *first* on, one per row of *own*, *opp* and *key*; a key of 0 means no position.

    Column *j* has the position with ``low + j`` empties, if ``wanted[j]``. *games* is the record `GAME_SETTINGS`. Symmetric images
    of a position share the key, a hash.
    """
    key[:] = NO_SQUARES
    for i in range(key.shape[0]):
        state = stream_state(seed, first + np.uint64(i))
        play_game(thread_states[0], nets[0], black, white, games[0], state, wanted, own[i], opp[i], key[i])


@kernel
def play_game(thread, net, mover, other, game, state, wanted, own, opp, key):
    """Play one game up to its last wanted position."""
    word, state = next_random(state)
    longest = game.prefixes[random_below(word, game.prefix_count)]
    word, state = next_random(state)
    left = popcount(thread.playable & ~(mover | other))
    last_random = left - random_below(word, longest)
    word, state = next_random(state)
    noise, other_noise, temperature, other_temperature = 1.0, 1.0, 0.0, 0.0
    if random_fraction(word) >= game.random_share:
        word, state = next_random(state)
        noise = game.noises[random_below(word, game.noise_count)]
        word, state = next_random(state)
        other_noise = game.noises[random_below(word, game.noise_count)]
        word, state = next_random(state)
        temperature = game.temperatures[random_below(word, game.temperature_count)]
        word, state = next_random(state)
        other_temperature = game.temperatures[random_below(word, game.temperature_count)]
    lowest = 0
    while lowest < wanted.size and not wanted[lowest]:
        lowest += 1
    while left > game.low + lowest:
        moves = legal_moves(mover, other, thread.playable)
        if moves == NO_SQUARES:
            if legal_moves(other, mover, thread.playable) == NO_SQUARES:
                return
            mover, other = other, mover
        else:
            word, state = next_random(state)
            if left > last_random or random_fraction(word) < noise:
                word, state = next_random(state)
                sq = random_square(moves, word)
            else:
                sq, state = sample_square(thread, net, mover, other, moves, game.depth, temperature, state)
            mover, other = play(sq, mover, other)
            left -= 1
            column = left - game.low
            is_wanted = left < last_random and column < wanted.size and wanted[column]
            if is_wanted and not is_over(mover, other, thread.playable):
                own[column], opp[column] = mover, other
                canonical_own, canonical_opp, _ = canonical(mover, other)
                key[column] = position_hash(canonical_own, canonical_opp)
        noise, other_noise, temperature, other_temperature = other_noise, noise, other_temperature, temperature


@kernel
def keep_new(own, opp, key, first, part, parts, seen, quota, first_row, kept, found, out_own, out_opp, out_game):
    """Take new positions of one *part* of the hash space, in order, up to the *quota* of their empties.

    The positions are those of `play_games` from game *first* on; *out_game* gets their games. Position *t* of column *j* goes to
    row ``first_row[j] + t * quota.size``. ``found[j]`` counts the positions offered. *seen* is a hash set of keys (a power of two
    in size, 0: free); two positions with equal 64-bit keys count as one.
    """
    mask = seen.size - 1
    for place in range(key.size):
        i, stratum = place // key.shape[1], place % key.shape[1]
        word = key[i, stratum]
        if word == NO_SQUARES or random_below(word, parts) != part:
            continue
        found[stratum] += 1
        if kept[stratum] == quota[stratum]:
            continue
        at = np.int64(word) & mask
        while seen[at] != NO_SQUARES and seen[at] != word:
            at = (at + 1) & mask
        if seen[at] == word:
            continue
        seen[at] = word
        row = first_row[stratum] + kept[stratum] * quota.size
        out_own[row], out_opp[row], out_game[row] = own[i, stratum], opp[i, stratum], first + i
        kept[stratum] += 1


@kernel
def choose_best(thread_states, nets, which, own, opp, depth, temperature, rng_states, squares):
    """Write the best move by evaluator ``nets[which[i]]``, or a sample at a *temperature* above 0, and update the generators."""
    thread = thread_states[0]
    for i in range(own.size):
        moves = legal_moves(own[i], opp[i], thread.playable)
        squares[i], rng_states[i] = sample_square(
            thread, nets[which[i]], own[i], opp[i], moves, depth, temperature, rng_states[i]
        )


@kernel
def choose_at_random(own, opp, playable, rng_states, squares):
    """Write a uniformly random legal move for every position, and update the generators."""
    for i in range(own.size):
        word, state = next_random(rng_states[i])
        squares[i] = random_square(legal_moves(own[i], opp[i], playable), word)
        rng_states[i] = state


@kernel
def advance(own, opp, squares, playable, passed, over):
    """Play ``squares[i]``, then pass if the next side must (``passed[i]``), unless the game is over (``over[i]``)."""
    for i in range(own.size):
        next_own, next_opp = play(squares[i], own[i], opp[i])
        passed[i], over[i] = False, False
        if legal_moves(next_own, next_opp, playable) == NO_SQUARES:
            if legal_moves(next_opp, next_own, playable) == NO_SQUARES:
                over[i] = True
            else:
                passed[i] = True
                next_own, next_opp = next_opp, next_own
        own[i], opp[i] = next_own, next_opp
