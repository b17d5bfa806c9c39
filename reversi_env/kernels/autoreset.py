"""Steps that begin the next episode at once, for environments whose data live in tensors: the same functions on CPU and GPU.

On the CPU an episode is a `STATE` record of `episodes`. On a GPU it is five 64-bit words in separate rows, so that
neighbouring threads read neighbouring memory: own, opp, legal, random, and the small fields packed into one (META).
`load` and `words_of` convert; in between, both run `step_state`, that is `step_square` and `begin_episode_against`.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of, flips
from reversi_env.kernels.episodes import (
    SHAPED_REWARD,
    begin_episode_against,
    final_score_and_winner,
    mobility_potential,
    step_square,
)
from reversi_env.kernels.observations import draw_square, square_of_action
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.simd import popcount
from reversi_env.kernels.symmetry import mix

#: Rows of a batch's words on a GPU. The last two are the boards of the last finished episode.
OWN, OPP, LEGAL, RANDOM, META, FINAL_OWN, FINAL_OPP = range(7)
WORDS = 7
#: Rows of a batch's flags, a byte each: results of a step except the reward, and the last finished episode's score and winner.
TERMINATED, TO_MOVE, ILLEGAL, AGENT, FINAL_SCORE, WINNER = range(6)
FLAGS = 6
#: Orders of a reset to an environment: bits that may be combined.
BEGIN, SEED = 1, 2

# META, from the lowest bit: turn, agent, over, illegal, failed (a bit each), then last_square + 1 and the episode's number.
_SQUARE_SHIFT, _SQUARE_MASK, _EPISODE_SHIFT = np.uint64(8), np.uint64(0xFF), np.uint64(32)


@kernel
def words_of(state):
    """A state as words: own, opp, legal, random, meta. Opponent and potential are left out; `load` restores them."""
    meta = np.uint64(state.turn) | (np.uint64(state.agent) << ONE) | (np.uint64(state.over) << np.uint64(2))
    meta |= (np.uint64(state.illegal) << np.uint64(3)) | (np.uint64(state.failed) << np.uint64(4))
    meta |= np.uint64(np.int64(state.last_square) + 1) << _SQUARE_SHIFT
    meta |= np.uint64(state.episode) << _EPISODE_SHIFT
    return state.own, state.opp, state.legal, state.random, meta


@kernel
def load(state, game, kind, own, opp, legal, random, meta):
    """Fill *state* from its words; *kind* is that of the only opponent. The potential follows from the boards."""
    state.own, state.opp, state.legal, state.random = own, opp, legal, random
    state.turn, state.agent = np.int8(meta & ONE), np.int8((meta >> ONE) & ONE)
    state.over = np.int8((meta >> np.uint64(2)) & ONE)
    state.illegal, state.failed = np.int8((meta >> np.uint64(3)) & ONE), np.int8((meta >> np.uint64(4)) & ONE)
    state.last_square = np.int8(np.int64((meta >> _SQUARE_SHIFT) & _SQUARE_MASK) - 1)
    state.episode, state.opponent, state.kind = np.int32(meta >> _EPISODE_SHIFT), np.int32(0), np.int8(kind)
    state.potential = mobility_potential(state, game) if game.reward == SHAPED_REWARD else 0.0


@kernel
def set_game(game, playable, discount, squares, sign, reward, illegal, observation):
    """Fill the fields of a `GAME` except its start, with constants if a GPU kernel is compiled for one game."""
    game.playable, game.discount, game.square_count, game.sign = playable, discount, squares, sign
    game.reward, game.illegal, game.observation = reward, illegal, observation


@kernel
def set_start(game, own, opp, turn, opening_plies, empties, colour):
    """Fill the start of a `GAME`: the fields that a reset may change."""
    game.start_own, game.start_opp, game.start_turn = own, opp, turn
    game.opening_plies, game.empties, game.colour = opening_plies, empties, colour


@kernel
def reset_state(state, game, kind, order, word):
    """Carry out a reset's order: seed the generator with *word*, begin an episode, or both."""
    if order & SEED:
        state.random = mix(word)
        state.episode = 0
    if order & BEGIN:
        state.opponent, state.kind = 0, kind
        begin_episode_against(state, game)


@kernel
def random_choice(state):
    """A uniformly random legal square from the episode's own generator; 64 for the pass where nothing else is legal."""
    return PASS_SQUARE if state.legal == NO_SQUARES else draw_square(state, state.legal)


@kernel
def chosen_square(state, game, action):
    """The square of an action; for a number out of range, an illegal square."""
    if action < 0 or action > game.square_count:
        return 0 if state.legal == NO_SQUARES else PASS_SQUARE
    return square_of_action(action, game)


@kernel
def step_state(state, game, sq):
    """Play *sq* and, where that ends the episode, begin the next one.

    Returns the reward, whether the episode has ended, whether *sq* was illegal, and the end: boards as the observation
    would show them, with score and winner as `final_score_and_winner` returns them (0 and -1 if there is no end).
    """
    if state.over:  # no start was found for this episode: draw another
        begin_episode_against(state, game)
        return 0.0, False, False, state.own, state.opp, 0, -1
    reward = step_square(state, game, sq)
    own, opp, score, winner, over, illegal = state.own, state.opp, 0, -1, state.over != 0, state.illegal != 0
    if over:
        score, winner = final_score_and_winner(state, game)
        begin_episode_against(state, game)
    return reward, over, illegal, own, opp, score, winner


@kernel
def child_of(own, opp, legal, sq):
    """After the move *sq*: the boards seen by the next side to move, and the number of flipped discs; all zero if it is illegal."""
    if (legal & bit_of(sq)) == NO_SQUARES:
        return NO_SQUARES, NO_SQUARES, np.int64(0)
    flipped = flips(sq, own, opp)
    return opp ^ flipped, own | flipped | bit_of(sq), popcount(flipped)


# --- the CPU's loops ------------------------------------------------------------------------------


@loop(grain=512)
def reset_rows(share, states, games, kind, orders, seeds, rewards, flags):
    while claim_rows(share):
        for i in claimed_rows(share):
            if orders[i] != 0:
                reset_state(states[i], games[0], kind, orders[i], seeds[i])
                rewards[i] = 0.0
                flags[TERMINATED, i], flags[ILLEGAL, i] = 0, 0
                flags[TO_MOVE, i], flags[AGENT, i] = states[i].turn, states[i].agent


@loop(grain=512)
def step_rows(share, states, games, at_random, actions, rewards, flags, finals):
    """Step every environment, by its action or at random; *finals* are the rows of boards of finished episodes."""
    while claim_rows(share):
        for i in claimed_rows(share):
            state = states[i]
            sq = random_choice(state) if at_random else chosen_square(state, games[0], actions[i])
            reward, over, illegal, own, opp, score, winner = step_state(state, games[0], sq)
            rewards[i] = reward
            if over:
                finals[i, 0], finals[i, 1] = own, opp
                flags[FINAL_SCORE, i], flags[WINNER, i] = score & 0xFF, winner & 0xFF
            flags[TERMINATED, i], flags[ILLEGAL, i] = over, illegal
            flags[TO_MOVE, i], flags[AGENT, i] = state.turn, state.agent


@loop(grain=512)
def expand_rows(share, states, squares, children, flipped):
    """`child_of` for every square of the board; *children* has a row of environments for own and one for opp."""
    while claim_rows(share):
        for i in claimed_rows(share):
            for k in range(squares.size):
                own, opp, count = child_of(states[i].own, states[i].opp, states[i].legal, np.int64(squares[k]))
                children[0, i, k], children[1, i, k], flipped[i, k] = own, opp, count


@kernel
def states_to_words(states, words):
    for i in range(states.size):
        own, opp, legal, random, meta = words_of(states[i])
        words[OWN, i], words[OPP, i], words[LEGAL, i], words[RANDOM, i], words[META, i] = own, opp, legal, random, meta


@kernel
def words_to_states(words, games, kind, states):
    for i in range(states.size):
        own, opp, legal, random, meta = words[OWN, i], words[OPP, i], words[LEGAL, i], words[RANDOM, i], words[META, i]
        load(states[i], games[0], kind, own, opp, legal, random, meta)


# --- how a GPU writes observations: eight bytes at a time ----------------------------------------------


@kernel
def compact(board, squares):
    """The squares of the board in the order of the actions, from the lowest bit: the frame without its rim."""
    if squares == 64:
        return board
    size, margin = (6, 1) if squares == 36 else (4, 2)
    row_mask = (ONE << np.uint64(size)) - ONE
    packed = NO_SQUARES
    for row in range(size):
        line = (board >> np.uint64(8 * (row + margin) + margin)) & row_mask
        packed |= line << np.uint64(size * row)
    return packed


@kernel
def spread_to_bytes(bits):
    """Eight bits as eight bytes of 0 or 1, the lowest first: the product places seven of them."""
    seven = ((bits & np.uint64(0x7F)) * np.uint64(0x0002_0408_1020_4081)) & np.uint64(0x0101_0101_0101_0101)
    return seven | ((bits & np.uint64(0x80)) << np.uint64(49))


@kernel
def spread_to_float16(bits):
    """Four bits as four float16 of 0.0 or 1.0 (0x3C00), the lowest first."""
    lanes = ((bits & np.uint64(0xF)) * np.uint64(0x0000_2000_4000_8001)) & np.uint64(0x0001_0001_0001_0001)
    return lanes * np.uint64(0x3C00)


@kernel
def plane_rows(own, opp, squares):
    """An environment's planes as a string of bits, in two rows: from bit 0, and from bit `plane_split` on. Boards are compact."""
    if squares == 64:
        return own, opp
    joined = own | (opp << np.uint64(squares))
    return joined, opp >> np.uint64(4)  # 6x6: bits 40 to 71, of which 36 are own; 4x4 has no second row


def plane_split(squares: int) -> int:
    """First bit of the second row of `plane_rows`; every eight bits from a multiple of four lie in one row."""
    return {64: 64, 36: 40, 16: 32}[squares]


@kernel
def mask_rows(legal, next_legal, squares):
    """An environment's mask and the beginning of the *next_legal* one's as a string of bits, in two rows.

    The first row begins at bit 0, the second at bit `mask_split`. A mask has a bit for every square and one for the pass,
    which is legal where no square is. Boards are compact.
    """
    no_move = np.uint64(legal == NO_SQUARES)
    if squares == 64:
        return legal, (legal >> np.uint64(8)) | (no_move << np.uint64(56)) | (next_legal << np.uint64(57))
    row = legal | (no_move << np.uint64(squares)) | (next_legal << np.uint64(squares + 1))
    return row, NO_SQUARES


def mask_split(squares: int) -> int:
    """First bit of the second row of `mask_rows`; every eight bits that begin in the mask lie in one row."""
    return 8 if squares == 64 else 64
