"""Positions for learning: games with a random beginning and noisy play thereafter, one position from each.

Game *i* depends on (seed, i) only. It first draws the number of empties that its position shall have, so that all
numbers are equally likely and a game whose number is not wanted any more costs nothing; then how many random moves it
begins with, from none to all but the last; then how noisily each side plays from there on. Positions of the random
beginning are never taken. Every game gives at most one position: two from the same game would have nearly the same
label, and labels are what takes the time.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, ONE, final_score, is_over, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount, trailing_zeros
from reversi_env.core.playout import GOLDEN_GAMMA, next_random, random_square
from reversi_env.core.symmetry import canonical, mix, position_hash
from search.core.evaluate import evaluate

_HALF = np.uint64(32)


@kernel
def below(word, bound):
    """A whole number from 0 to *bound* - 1, from 64 random bits."""
    return np.int64(((word >> _HALF) * np.uint64(bound)) >> _HALF)


@kernel
def fraction(word):
    """A number from 0 to just below 1, from 64 random bits."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def worth(net, own, opp, playable, sign):
    """Value for the side to move in discs: the score if the game is over, else the evaluator's."""
    if is_over(own, opp, playable):
        return np.float64(sign * final_score(own, opp, playable))
    return np.float64(evaluate(net, own, opp))


@kernel
def greedy_square(net, own, opp, moves, playable, sign, state):
    """The move that leaves the other side the worst position, equally good ones by lot; and the generator's next state."""
    best, best_sq, ties = -np.inf, trailing_zeros(moves), 0
    while moves != NO_SQUARE:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        next_own, next_opp = play(sq, own, opp)
        value = -worth(net, next_own, next_opp, playable, sign)
        if value > best:
            best, best_sq, ties = value, sq, 1
        elif value == best:
            ties += 1
            word, state = next_random(state)
            if below(word, ties) == 0:
                best_sq = sq
    return best_sq, state


@kernel
def play_until(net, own, opp, playable, sign, empties, prefix, own_noise, opp_noise, state):
    """Boards (own, opp) with *empties* empty squares, seen by the side to move then; two empty boards if the game ends before.

    The first *prefix* moves are random, the later ones are so with the mover's probability of noise. Passes are no moves.
    """
    left = popcount(playable & ~(own | opp))
    last_random = left - prefix
    while left > empties:
        moves = legal_moves(own, opp, playable)
        if moves == NO_SQUARE:
            if legal_moves(opp, own, playable) == NO_SQUARE:
                return NO_SQUARE, NO_SQUARE
            own, opp = opp, own
        else:
            word, state = next_random(state)
            if left > last_random or fraction(word) < own_noise:
                word, state = next_random(state)
                sq = random_square(moves, word)
            else:
                sq, state = greedy_square(net, own, opp, moves, playable, sign, state)
            own, opp = play(sq, own, opp)
            left -= 1
        own_noise, opp_noise = opp_noise, own_noise
    if is_over(own, opp, playable):
        return NO_SQUARE, NO_SQUARE
    return own, opp


@kernel
def play_games(nets, black, white, playable, sign, low, wanted, noises, random_share, seed, first, own, opp, key):
    """Play the games from number *first* on, one for each place in *own*, *opp* and *key*; a key of 0 means no position.

    ``wanted[j]`` tells whether positions with ``low + j`` empties are still asked for. *random_share* of the games are
    random to the end; in the others each side draws one of the *noises*. The key is a hash that all symmetric images of
    a position share.
    """
    net = nets[0]
    empty = popcount(playable & ~(black | white))
    base = mix(seed + GOLDEN_GAMMA)
    for i in range(key.size):
        own[i], opp[i], key[i] = NO_SQUARE, NO_SQUARE, NO_SQUARE
        word, state = next_random(mix(base + first + np.uint64(i)))
        stratum = below(word, wanted.size)
        if not wanted[stratum]:
            continue
        word, state = next_random(state)
        prefix = below(word, empty - low - stratum)
        word, state = next_random(state)
        black_noise, white_noise = 1.0, 1.0
        if fraction(word) >= random_share:
            word, state = next_random(state)
            black_noise = noises[below(word, noises.size)]
            word, state = next_random(state)
            white_noise = noises[below(word, noises.size)]
        own[i], opp[i] = play_until(
            net, black, white, playable, sign, low + stratum, prefix, black_noise, white_noise, state
        )
        if own[i] | opp[i] != NO_SQUARE:
            canonical_own, canonical_opp, _ = canonical(own[i], opp[i])
            key[i] = position_hash(canonical_own, canonical_opp)


@kernel
def keep_new(own, opp, key, playable, low, part, parts, seen, quota, first_row, kept, found, out_own, out_opp):
    """Keep positions of one *part* of the hash space that were not seen before, in order, up to the *quota* of their empties.

    Position *t* with ``low + j`` empties goes to row ``first_row[j] + t * quota.size``. ``found[j]`` counts the positions
    offered. *seen* is a hash set of keys (a power of two in size, 0: free). Two different positions with the same 64-bit
    key count as one: that loses a position once in a very long while, and never lets a duplicate in.
    """
    mask = seen.size - 1
    for i in range(key.size):
        word = key[i]
        if word == NO_SQUARE or below(word, parts) != part:
            continue
        stratum = popcount(playable & ~(own[i] | opp[i])) - low
        found[stratum] += 1
        if kept[stratum] == quota[stratum]:
            continue
        at = np.int64(word) & mask
        while seen[at] != NO_SQUARE and seen[at] != word:
            at = (at + 1) & mask
        if seen[at] == word:
            continue
        seen[at] = word
        row = first_row[stratum] + kept[stratum] * quota.size
        out_own[row], out_opp[row] = own[i], opp[i]
        kept[stratum] += 1
