"""Pure states: the kernels of `reversi_env.functional` for arrays of games, and the functions that its GPU kernels share.

A state is five numbers: own, opp and legal, boards seen from the side to move; turn, 0 for black and 1 for white; and status.
There is no randomness and no opponent: this is the two-player mode of the environments without their episodes.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of, final_score, play
from reversi_env.kernels.episodes import legal_moves_and_over
from reversi_env.kernels.observations import square_of_action
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.symmetry import transform

#: Status of a running game, of one in which neither side can move, and of one that the side to move lost by an illegal action.
RUNNING, FINISHED, FORFEITED = range(3)


@kernel
def next_state(own, opp, legal, turn, status, action, game):
    """The state after *action*: as it was if it is over, forfeited if the action is illegal or does not exist."""
    if status != RUNNING:
        return own, opp, legal, np.int64(turn), np.int64(status)
    sq, is_legal = PASS_SQUARE, action == game.square_count and legal == NO_SQUARES
    if 0 <= action < game.square_count:
        sq = square_of_action(action, game)
        is_legal = (legal & bit_of(sq)) != NO_SQUARES
    if not is_legal:
        return own, opp, NO_SQUARES, np.int64(turn), np.int64(FORFEITED)
    own, opp = play(sq, own, opp)
    moves, over = legal_moves_and_over(own, opp, game.playable)
    return own, opp, moves, np.int64(1 - turn), np.int64(FINISHED if over else RUNNING)


@kernel
def score_of(own, opp, status, game):
    """The result in discs for the side to move, empty squares to the winner; a side that forfeits loses all; 0 before the end."""
    if status == RUNNING:
        return np.int64(0)
    if status == FORFEITED:
        return np.int64(-game.square_count)
    return np.int64(game.sign * final_score(own, opp, game.playable))


# --- the CPU's loops ------------------------------------------------------------------------------


@loop(grain=2048)
def start_states(share, own, opp, games, legal, status):
    while claim_rows(share):
        for i in claimed_rows(share):
            moves, over = legal_moves_and_over(own[i], opp[i], games[0].playable)
            legal[i], status[i] = moves, FINISHED if over else RUNNING


@loop(grain=2048)
def step_states(share, own, opp, legal, turn, status, actions, games, own_after, opp_after, rest):
    """`next_state` for every state; *rest* are the arrays of legal moves, turns and statuses."""
    while claim_rows(share):
        for i in claimed_rows(share):
            state = next_state(own[i], opp[i], legal[i], turn[i], status[i], actions[i], games[0])
            own_after[i], opp_after[i] = state[0], state[1]
            rest[0][i], rest[1][i], rest[2][i] = state[2], state[3], state[4]


@loop(grain=4096)
def score_states(share, own, opp, status, games, scores):
    while claim_rows(share):
        for i in claimed_rows(share):
            scores[i] = score_of(own[i], opp[i], status[i], games[0])


@loop(grain=4096)
def transform_boards(share, boards, symmetries, out):
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = transform(boards[i], symmetries[i])


@loop(grain=1024)
def write_planes(share, own, opp, squares, planes):
    """Rows of own discs, then the opponent's, as 0 and 1."""
    count = squares.size
    while claim_rows(share):
        for i in claimed_rows(share):
            for k in range(count):
                planes[i, k] = np.int8((own[i] >> squares[k]) & ONE)
                planes[i, count + k] = np.int8((opp[i] >> squares[k]) & ONE)


@loop(grain=2048)
def write_masks(share, legal, squares, masks):
    """Rows of legal actions; the last one, the pass, is legal where no square is."""
    count = squares.size
    while claim_rows(share):
        for i in claimed_rows(share):
            for k in range(count):
                masks[i, k] = ((legal[i] >> squares[k]) & ONE) != NO_SQUARES
            masks[i, count] = legal[i] == NO_SQUARES
