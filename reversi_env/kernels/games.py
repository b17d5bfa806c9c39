"""Random play inside compiled code: a counter-based generator, uniform choice of a move, whole games."""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, bit_of, flips, is_over, legal_moves, play
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.simd import popcount, trailing_zeros
from reversi_env.kernels.symmetry import mix

#: No game has more plies: at most 60 squares are filled, and no two passes follow each other.
MAX_GAME_PLIES = 120
GOLDEN_GAMMA = np.uint64(0x9E37_79B9_7F4A_7C15)


@kernel
def next_random(state):
    """The next 64 random bits of SplitMix64 and the state that follows."""
    state += GOLDEN_GAMMA
    return mix(state), state


@kernel
def stream_state(seed, number):
    """The generator state that stream *number* of *seed* begins with.

    The seed is mixed before the number is added: sums of the two would give neighbouring seeds the same streams.
    """
    return mix(mix(seed + GOLDEN_GAMMA) + number)


@kernel
def nth_square(board, n):
    """The square of the *n*-th set bit of *board*, counted from zero."""
    for _ in range(n):
        board &= board - ONE
    return trailing_zeros(board)


@kernel
def random_square(board, word):
    """A uniformly chosen square of the non-empty *board*, from 64 random bits (bias below 2**-26)."""
    choice = ((word >> np.uint64(32)) * np.uint64(popcount(board))) >> np.uint64(32)
    return nth_square(board, np.int64(choice))


@kernel
def random_plies(own, opp, playable, limit, state):
    """Play at most *limit* uniformly random legal moves and passes: (own, opp, plies played, generator state).

    The boards are from the side to move at the end. Fewer plies than *limit* mean that the game is over.
    """
    for ply in range(limit):
        moves = legal_moves(own, opp, playable)
        if moves != NO_SQUARES:
            word, state = next_random(state)
            own, opp = play(random_square(moves, word), own, opp)
        elif legal_moves(opp, own, playable) != NO_SQUARES:
            own, opp = opp, own
        else:
            return own, opp, ply, state
    return own, opp, limit, state


@loop(grain=16)
def count_random_plies(share, own, opp, playable, seed, lengths):
    """Plies of random games from one position to the end; game *i* depends on (seed, i) only."""
    while claim_rows(share):
        for game in claimed_rows(share):
            _, _, lengths[game], _ = random_plies(own, opp, playable, MAX_GAME_PLIES, stream_state(seed, game))


@loop(grain=64)
def random_positions_loop(share, own, opp, playable, plies, seed, reached):
    """Advance each position by ``plies[i]`` random plies, starting over (at most a hundred times) where a game ends before that."""
    while claim_rows(share):
        for i in claimed_rows(share):
            state = stream_state(seed, i)
            reached[i] = False
            for _ in range(100):
                end_own, end_opp, played, state = random_plies(own[i], opp[i], playable, plies[i], state)
                if played == plies[i]:
                    own[i], opp[i] = end_own, end_opp
                    reached[i] = True
                    break


#: Value of a square after the end of the record.
NO_MOVE = -1


@kernel
def can_play(sq, own, opp, playable):
    """Whether the side to move may play on *sq*, which may be any integer."""
    if sq < 0 or sq > 63:
        return False
    free = playable & ~(own | opp)
    return bit_of(sq) & free != NO_SQUARES and flips(sq, own, opp) != NO_SQUARES


@kernel
def replay_game(squares, own, opp, playable):
    """Play the record *squares* from a position: (own, opp, plies, illegal).

    The boards returned are those of the sides that were to move (own) and not to move (opp) in the *start* position.
    *plies* is the number of squares played, passes not counted; *illegal* is whether the record has an illegal
    move, before which the replay stopped.
    """
    swapped = illegal = False
    plies = 0
    for recorded in squares:
        sq = np.int64(recorded)
        if sq == NO_MOVE:
            break
        if not can_play(sq, own, opp, playable) and legal_moves(own, opp, playable) == NO_SQUARES:
            own, opp, swapped = opp, own, not swapped
        if not can_play(sq, own, opp, playable):
            illegal = True
            break
        own, opp = play(sq, own, opp)
        swapped = not swapped
        plies += 1
    return (opp, own, plies, illegal) if swapped else (own, opp, plies, illegal)


@kernel
def replay_games(squares, own, opp, playable):
    """Replay every row of the integer array *squares* (games x plies): an array for each result of `replay_game`."""
    games = squares.shape[0]
    owns, opps = np.empty(games, np.uint64), np.empty(games, np.uint64)
    plies, illegal = np.empty(games, np.int64), np.empty(games, np.bool_)
    for game in range(games):
        owns[game], opps[game], plies[game], illegal[game] = replay_game(squares[game], own, opp, playable)
    return owns, opps, plies, illegal


@kernel
def positions_with(squares, own, opp, playable, empties):
    """The position of every game in which *empties* squares are empty, seen by the side to move: (own, opp, reached).

    *reached* is False for games that end before that, or in that position.
    """
    games = squares.shape[0]
    owns, opps, reached = np.zeros(games, np.uint64), np.zeros(games, np.uint64), np.zeros(games, np.bool_)
    plies = popcount(playable & ~(own | opp)) - empties
    for game in range(games):
        mover, other, played, _ = replay_game(squares[game, :plies], own, opp, playable)
        if played < plies or is_over(mover, other, playable):
            continue
        if _is_second_players_turn(squares[game, :plies], own, opp, playable):
            mover, other = other, mover
        if legal_moves(mover, other, playable) == NO_SQUARES:
            mover, other = other, mover
        owns[game], opps[game], reached[game] = mover, other, True
    return owns, opps, reached


@kernel
def _is_second_players_turn(squares, own, opp, playable):
    """Whether, after a legal record, the side that did not begin is to move (or must pass)."""
    swapped = False
    for recorded in squares:
        sq = np.int64(recorded)
        if not can_play(sq, own, opp, playable):
            own, opp, swapped = opp, own, not swapped
        own, opp = play(sq, own, opp)
        swapped = not swapped
    return swapped
