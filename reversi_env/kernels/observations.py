"""Actions and observations of an episode: squares of actions, sampling of legal ones, planes, flat rows and masks."""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of
from reversi_env.kernels.games import next_random, random_square
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop

#: GAME.observation
PLANES, FLAT = range(2)


@kernel
def draw_square(state, board):
    """Return a uniformly chosen square of *board*, from the episode's own generator."""
    word, state.random = next_random(state.random)
    return random_square(board, word)


@kernel
def is_legal(state, sq):
    """Whether the side to move may play *sq*, or pass."""
    if sq == PASS_SQUARE:
        return state.legal == NO_SQUARES
    return (state.legal & bit_of(sq)) != NO_SQUARES


@kernel
def _size(game):
    return 8 if game.square_count == 64 else 6 if game.square_count == 36 else 4


@kernel
def square_of_action(action, game):
    """The frame's square of an action; 64 for the pass."""
    if action == game.square_count:
        return PASS_SQUARE
    size = _size(game)
    margin = (8 - size) // 2
    return 8 * (action // size + margin) + action % size + margin


@kernel
def action_of_square(sq, game):
    """The action that plays on the frame's square; the last one for a pass."""
    if sq == PASS_SQUARE:
        return game.square_count
    size = _size(game)
    margin = (8 - size) // 2
    return size * (sq // 8 - margin) + sq % 8 - margin


@kernel
def first_invalid_action(states, games, actions, only_legal):
    """The lowest index whose action is out of range, or with *only_legal* illegal in a running episode; else their number."""
    if not only_legal and not _any_out_of_range(actions, games[0].square_count):
        return states.size
    for i in range(states.size):
        if actions[i] < 0 or actions[i] > games[0].square_count:
            return i
        if only_legal and not states[i].over and not is_legal(states[i], square_of_action(actions[i], games[0])):
            return i
    return states.size


@kernel
def _any_out_of_range(actions, last):
    """Whether an action is not among 0 … *last*. Without an early exit LLVM vectorises the loop."""
    beyond = False
    for i in range(actions.size):
        beyond |= np.uint64(actions[i]) > np.uint64(last)  # a negative one is huge
    return beyond


@kernel
def _sampled_action(state, game):
    sq = PASS_SQUARE if state.legal == NO_SQUARES else draw_square(state, state.legal)
    return action_of_square(sq, game)


@kernel
def sample_one(states, games):
    """A random legal action for the only environment, as `sample_all` draws it."""
    return _sampled_action(states[0], games[0])


@loop(grain=2048)
def sample_all(share, states, games, out):
    """A random legal action for every environment, drawn from its own generator; the pass where nothing else is legal."""
    while claim_rows(share):
        for i in claimed_rows(share):
            out[i] = _sampled_action(states[i], games[0])


@kernel
def _write_planes(state, squares, observations, masks, i):
    """Row *i*: own discs, then opponent's discs, as 0 and 1; and the mask.

    The mask allows the pass alone where there is no legal square, also when the game is over.
    """
    count = squares.size
    own, opp, legal = state.own, state.opp, state.legal
    for k in range(count):
        sq = squares[k]
        observations[i, k] = np.int8((own >> sq) & ONE)
        observations[i, count + k] = np.int8((opp >> sq) & ONE)
        masks[i, k] = np.int8((legal >> sq) & ONE)
    masks[i, count] = np.int8(legal == NO_SQUARES)


@kernel
def _write_flat(state, squares, observations, masks, i):
    """Row *i*: +1 own, -1 opponent's, 0 empty; and the mask."""
    count = squares.size
    own, opp, legal = state.own, state.opp, state.legal
    for k in range(count):
        sq = squares[k]
        observations[i, k] = np.int8((own >> sq) & ONE) - np.int8((opp >> sq) & ONE)
        masks[i, k] = np.int8((legal >> sq) & ONE)
    masks[i, count] = np.int8(legal == NO_SQUARES)


@kernel
def observe_rows_as_planes(share, states, squares, observations, masks, to_move):
    """Write the observations of the claimed rows.

    This is a separate loop because LLVM vectorises the writing only if nothing else is in the loop (three times as fast).
    """
    for i in claimed_rows(share):
        _write_planes(states[i], squares, observations, masks, i)
        to_move[i] = states[i].turn


@kernel
def observe_rows_flat(share, states, squares, observations, masks, to_move):
    for i in claimed_rows(share):
        _write_flat(states[i], squares, observations, masks, i)
        to_move[i] = states[i].turn


@loop(grain=512)
def observe_planes(share, states, squares, observations, masks, to_move):
    """Write every environment's observation, mask and player to move."""
    while claim_rows(share):
        observe_rows_as_planes(share, states, squares, observations, masks, to_move)


@loop(grain=512)
def observe_flat(share, states, squares, observations, masks, to_move):
    while claim_rows(share):
        observe_rows_flat(share, states, squares, observations, masks, to_move)


@loop(grain=512)
def observe_some(share, states, games, squares, indices, observations, masks, to_move):
    """Write the observation, mask and player to move of the environments *indices*."""
    while claim_rows(share):
        for k in claimed_rows(share):
            i = np.uint64(indices[k])
            if games[0].observation == PLANES:
                _write_planes(states[i], squares, observations, masks, i)
            else:
                _write_flat(states[i], squares, observations, masks, i)
            to_move[i] = states[i].turn


@kernel
def observe_one(states, games, squares, observation, mask):
    """Write the only environment's observation and mask, both of one row."""
    if games[0].observation == PLANES:
        _write_planes(states[0], squares, observation, mask, np.uint64(0))
    else:
        _write_flat(states[0], squares, observation, mask, np.uint64(0))
