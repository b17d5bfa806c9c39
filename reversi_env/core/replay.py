"""Replaying recorded games inside compiled code: whole databases of move lists at once, passes worked out by the rules.

A record is a row of squares of the frame in the order they were played, ended by `NO_MOVE` or by the end of the row.
It has no passes in it: where the side to move cannot move and the other side can, the pass is understood.
"""

from __future__ import annotations

import numpy as np

from reversi_env.core.bitboard import NO_SQUARE, bit_of, flips, is_over, legal_moves, play
from reversi_env.core.compiling import kernel
from reversi_env.core.intrinsics import popcount

#: Value of a square that means that the record ends here.
NO_MOVE = -1


@kernel
def can_play(sq, own, opp, playable):
    """Say whether the side to move may play on *sq*, which may be any integer."""
    if sq < 0 or sq > 63:
        return False
    free = playable & ~(own | opp)
    return bit_of(sq) & free != NO_SQUARE and flips(sq, own, opp) != NO_SQUARE


@kernel
def replay_game(squares, own, opp, playable):
    """Play the record *squares* from a position: (own, opp, plies, illegal).

    The boards returned are those of the sides that were to move (own) and not to move (opp) in the *start* position.
    *plies* is the number of squares played, passes not counted; *illegal* says that the record goes on with a move the
    rules forbid, before which the replay stopped.
    """
    swapped = illegal = False
    plies = 0
    for recorded in squares:
        sq = np.int64(recorded)
        if sq == NO_MOVE:
            break
        if not can_play(sq, own, opp, playable) and legal_moves(own, opp, playable) == NO_SQUARE:
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
        if legal_moves(mover, other, playable) == NO_SQUARE:
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
