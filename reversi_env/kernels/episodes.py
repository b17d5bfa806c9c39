"""Episodes: the step that every environment shares, with the opponent's reply and the reward, compiled once.

The single environment is a batch of one, the vector environment a batch of many, and both go through `step_action` and
`begin_episode`; the same seed and the same actions therefore give the same game in each. An episode is one `STATE` record, and
the game with its options is one `GAME` record, so that a kernel takes two arrays and no tuple of options.

Two-player mode (an empty pool of opponents): every action is for the side to move. Otherwise the agent has one colour,
an opponent is drawn from the pool at the beginning of every episode, and it moves between the agent's actions: by a
built-in policy, or, if it is ``EXTERNAL``, by the caller of `opponent_moves`. The opponent's passes are automatic; a pass
of the agent is an action.
"""

import numpy as np

from reversi_env.compiler.kernel import kernel
from reversi_env.kernels.bitboard import NO_SQUARES, ONE, PASS_SQUARE, bit_of, final_score, flips, legal_moves, play
from reversi_env.kernels.games import next_random
from reversi_env.kernels.observations import (
    PLANES,
    draw_square,
    is_legal,
    observe_one,
    observe_rows_as_planes,
    observe_rows_flat,
    square_of_action,
)
from reversi_env.kernels.parallel import claim_rows, claimed_rows, loop
from reversi_env.kernels.simd import popcount, rounded_product, trailing_zeros
from reversi_env.kernels.symmetry import mix

BLACK_PLAYER, WHITE_PLAYER = 0, 1

#: STATE.kind and POOL.kind
NO_OPPONENT, RANDOM_OPPONENT, GREEDY_OPPONENT, EXTERNAL_OPPONENT = range(4)
#: GAME.colour: which colour the agent has; ALTERNATING_COLOUR changes with every episode, black first.
RANDOM_COLOUR, ALTERNATING_COLOUR = 2, 3
#: GAME.reward
WIN_REWARD, DISC_REWARD, SHAPED_REWARD = range(3)
#: GAME.illegal: effect of an illegal action. With ILLEGAL_RAISES illegal actions never reach the kernels.
ILLEGAL_LOSES, ILLEGAL_IS_RANDOM, ILLEGAL_RAISES = range(3)

#: One episode, boards seen from the side to move.
STATE = np.dtype(
    [
        ("own", np.uint64),
        ("opp", np.uint64),
        ("legal", np.uint64),  # squares where the side to move may play; empty if it must pass or the game is over
        ("random", np.uint64),  # state of the episode's random generator
        ("potential", np.float64),  # of the agent's position, for shaped rewards
        ("episode", np.int32),  # episodes begun, for alternating colours
        ("opponent", np.int32),  # index of this episode's opponent in the pool
        ("kind", np.int8),  # its kind
        ("turn", np.int8),  # the player to move: 0 black, 1 white
        ("agent", np.int8),  # the player that the actions are for, where there is an opponent
        ("over", np.int8),
        ("illegal", np.int8),  # whether the last action was illegal
        ("last_square", np.int8),  # the last move made by either side, 64 for a pass, -1 before the first
        ("failed", np.int8),  # no random start was found
        ("game", np.int8),  # number of the game, checked when a state is restored; kernels ignore it
    ],
    align=True,
)

#: The game and the options of its episodes.
GAME = np.dtype(
    [
        ("playable", np.uint64),
        ("start_own", np.uint64),
        ("start_opp", np.uint64),
        ("discount", np.float64),
        ("start_turn", np.int64),
        ("opening_plies", np.int64),  # random plies before the first action
        ("empties", np.int64),  # random plies until at most this many squares are empty; -1: none
        ("square_count", np.int64),
        ("sign", np.int64),  # +1 normal, -1 reversed
        ("colour", np.int64),
        ("reward", np.int64),
        ("illegal", np.int64),
        ("observation", np.int64),
    ],
    align=True,
)

#: The opponents to draw from: kind, and cumulative probability (1 for the last one).
POOL = np.dtype([("kind", np.int64), ("cumulative_share", np.float64)], align=True)

RANDOM_START_TRIES = 1000


@kernel
def legal_moves_and_over(own, opp, playable):
    """The legal moves of the side to move, and whether the game is over: there are none for either side."""
    legal = legal_moves(own, opp, playable)
    return legal, legal == NO_SQUARES and legal_moves(opp, own, playable) == NO_SQUARES


@kernel
def _set_legal(state, game):
    state.legal, state.over = legal_moves_and_over(state.own, state.opp, game.playable)


@kernel
def _advance(state, game, sq):
    """Make the move *sq* (64: pass) for the side to move."""
    state.own, state.opp = play(sq, state.own, state.opp)
    state.turn = 1 - state.turn
    state.last_square = sq
    _set_legal(state, game)


@kernel
def _greedy_square(state, game):
    """The legal square that flips the most discs (in the reversed game: the fewest), ties broken at random."""
    best_gain, best = -1000, NO_SQUARES
    moves = state.legal
    while moves != NO_SQUARES:
        sq = trailing_zeros(moves)
        moves &= moves - ONE
        gain = game.sign * popcount(flips(sq, state.own, state.opp))
        if gain > best_gain:
            best_gain, best = gain, NO_SQUARES
        if gain == best_gain:
            best |= bit_of(sq)
    return draw_square(state, best)


@kernel
def _built_in_opponent_moves(state, game):
    """Let the opponent move, or pass, until it is the agent's turn or the game is over."""
    while not state.over and state.turn != state.agent:
        if state.legal == NO_SQUARES:
            _advance(state, game, PASS_SQUARE)
        elif state.kind == GREEDY_OPPONENT:
            _advance(state, game, _greedy_square(state, game))
        else:
            _advance(state, game, draw_square(state, state.legal))


@kernel
def _opponent_passes(state, game):
    if not state.over and state.turn != state.agent and state.legal == NO_SQUARES:
        _advance(state, game, PASS_SQUARE)


@kernel
def _view_from_agent(state):
    """After the end of the game, change the boards to the agent's side, whichever side is to move."""
    if state.over and state.turn != state.agent:
        state.own, state.opp = state.opp, state.own
        state.turn = state.agent


@kernel
def _opponent_replies(state, game):
    if state.kind == EXTERNAL_OPPONENT:
        _opponent_passes(state, game)
    else:
        _built_in_opponent_moves(state, game)
    _view_from_agent(state)


@kernel
def _random_start(state, game):
    state.own, state.opp, state.turn = game.start_own, game.start_opp, game.start_turn
    _set_legal(state, game)
    plies = 0
    while not state.over and (
        plies < game.opening_plies or (game.empties >= 0 and _empties(state, game) > game.empties)
    ):
        _advance(state, game, PASS_SQUARE if state.legal == NO_SQUARES else draw_square(state, state.legal))
        plies += 1


@kernel
def _empties(state, game):
    return game.square_count - popcount(state.own) - popcount(state.opp)


@kernel
def mobility_potential(state, game):
    """Potential of the agent's position for shaping: its share of both sides' moves, from -0.5 to 0.5; 0 when the game is over."""
    if state.over:
        return 0.0
    mine, theirs = popcount(state.legal), popcount(legal_moves(state.opp, state.own, game.playable))
    return 0.5 * (mine - theirs) / (mine + theirs)


@kernel
def _choose_opponent(state, pool):
    """Draw this episode's opponent; a pool of one needs no draw, an empty one means two-player mode."""
    state.opponent = 0
    if pool.size > 1:
        word, state.random = next_random(state.random)
        share = np.float64(word >> np.uint64(11)) * 2.0**-53
        while share >= pool[state.opponent].cumulative_share and state.opponent < pool.size - 1:
            state.opponent += 1
    state.kind = pool[state.opponent].kind if pool.size else NO_OPPONENT


@kernel
def _choose_colour(state, game):
    if game.colour == RANDOM_COLOUR:
        word, state.random = next_random(state.random)
        state.agent = np.int8(word >> np.uint64(63))
    elif game.colour == ALTERNATING_COLOUR:
        state.agent = (state.episode - 1) & 1
    else:
        state.agent = game.colour


@kernel
def draw_start(state, game):
    """A random opening, and the opponent's first move if it has one (an external opponent makes it later).

    A start that leaves the agent nothing to decide (the game is over already) is drawn again, up to RANDOM_START_TRIES
    times.
    """
    for _ in range(RANDOM_START_TRIES):
        _random_start(state, game)
        state.last_square = -1
        if state.kind != NO_OPPONENT and not state.over:
            _opponent_replies(state, game)
        if not state.over:
            break
    state.failed = state.over
    state.potential = mobility_potential(state, game)


@kernel
def begin_episode(state, game, pool):
    """Begin an episode: the agent's opponent and colour, then the start."""
    _choose_opponent(state, pool)
    begin_episode_against(state, game)


@kernel
def begin_episode_against(state, game):
    """Begin an episode against the opponent that the state names."""
    state.illegal = 0
    state.episode += 1
    _choose_colour(state, game)
    draw_start(state, game)


@kernel
def result_for(state, game, player):
    """The finished game's reward for *player*: win, draw, loss as 1, 0, -1, or the score in discs over the board's squares."""
    own_score = game.sign * final_score(state.own, state.opp, game.playable)
    score = own_score if player == state.turn else -own_score
    if game.reward == DISC_REWARD:
        return score / game.square_count
    return np.float64((score > 0) - (score < 0))


@kernel
def final_score_and_winner(state, game):
    """The finished episode's score and winner.

    The score is in discs, empty squares to the winner, for the agent or, in two-player mode, for the player that acted; an
    illegal action loses all squares. The winner is 0 for black, 1 for white, -1 for nobody.
    """
    # After a lost illegal action the turn is still that of the player that acted.
    lost = state.illegal and game.illegal == ILLEGAL_LOSES
    score = -game.square_count if lost else game.sign * final_score(state.own, state.opp, game.playable)
    winner = state.turn if score > 0 else 1 - state.turn if score < 0 else -1
    return score if lost or state.kind != NO_OPPONENT else -score, winner


@kernel
def step_action(state, game, action):
    """Play *action* for the side to move and let the opponent reply; the reward of the player that acted.

    With an external opponent that has to move the reward is not known yet: see `collect_agent_reward`.
    """
    return step_square(state, game, square_of_action(action, game))


@kernel
def step_square(state, game, sq):
    """`step_action` with the frame's square of the action (64: pass)."""
    mover = state.turn
    state.illegal = not is_legal(state, sq)
    if state.illegal:
        if game.illegal == ILLEGAL_LOSES:
            state.over, state.legal = 1, NO_SQUARES
            return -1.0 - (state.potential if game.reward == SHAPED_REWARD else 0.0)
        sq = PASS_SQUARE if state.legal == NO_SQUARES else draw_square(state, state.legal)
    _advance(state, game, sq)
    if state.kind == NO_OPPONENT:
        return result_for(state, game, mover) if state.over else 0.0
    _opponent_replies(state, game)
    return collect_agent_reward(state, game)


@kernel
def collect_agent_reward(state, game):
    """The agent's reward when it is to move again or the game is over; 0 while the opponent is to move."""
    if not state.over and state.turn != state.agent:
        return 0.0
    reward = result_for(state, game, state.agent) if state.over else 0.0
    if game.reward == SHAPED_REWARD:
        before = state.potential
        state.potential = mobility_potential(state, game)
        reward += rounded_product(game.discount, state.potential) - before
    return reward


# --- one environment: the bodies of the batch kernels, with the results as a tuple


@kernel
def step_one(states, games, squares, action, observation, mask):
    """Play one action in the only environment: (reward, over, player to move, agent, whether the action was illegal)."""
    state = states[0]
    reward = step_action(state, games[0], action)
    observe_one(states, games, squares, observation, mask)
    return reward, state.over, state.turn, state.agent, state.illegal


@kernel
def opponent_moves_one(states, games, squares, action, observation, mask):
    """Play an external opponent's legal action in the only environment; the tuple of `step_one`."""
    state = states[0]
    _advance(state, games[0], square_of_action(action, games[0]))
    _view_from_agent(state)
    reward = collect_agent_reward(state, games[0])
    observe_one(states, games, squares, observation, mask)
    return reward, state.over, state.turn, state.agent, state.illegal


@kernel
def begin_one(states, games, pool):
    """Begin an episode in the only environment."""
    begin_episode(states[0], games[0], pool)


# --- many environments ----------------------------------------------------------------------------


@kernel
def seed_all(states, seeds, which):
    """Seed the generators of the environments that *which* marks; same seed, same episodes from then on."""
    for i in range(states.size):
        if which[i]:
            states[i].random = mix(seeds[i])
            states[i].episode = 0


@loop(grain=512)
def begin_all(share, states, games, pool, which):
    """Begin an episode in the environments that *which* marks."""
    while claim_rows(share):
        for i in claimed_rows(share):
            if which[i]:
                begin_episode(states[i], games[0], pool)


@kernel
def draw_start_all(states, games, which):
    """Draw another start, for the same opponent and colour, in the environments that *which* marks."""
    for i in range(states.size):
        if which[i]:
            draw_start(states[i], games[0])


@loop(grain=512)
def step_all(
    share,
    states,
    games,
    pool,
    squares,
    actions,
    rewards,
    terminated,
    illegal,
    ended_at_reset,
    observations,
    masks,
    to_move,
):
    """Play one action in every environment, and observe.

    Where the episode is over, begin the next one instead, with reward 0; ``ended_at_reset[0]`` is set if that is over at once.
    """
    while claim_rows(share):
        for i in claimed_rows(share):
            state = states[i]
            if state.over:
                begin_episode(state, games[0], pool)
                rewards[i] = 0.0
                if state.over:
                    ended_at_reset[0] = True
            else:
                rewards[i] = step_action(state, games[0], actions[i])
            terminated[i], illegal[i] = state.over, state.illegal
        if games[0].observation == PLANES:
            observe_rows_as_planes(share, states, squares, observations, masks, to_move)
        else:
            observe_rows_flat(share, states, squares, observations, masks, to_move)


@kernel
def write_final_results(states, games, indices, scores, winners):
    """Write the scores and winners (`final_score_and_winner`) of the finished episodes *indices*."""
    for i in indices:
        scores[i], winners[i] = final_score_and_winner(states[i], games[0])


@kernel
def mark_opponent_to_move(states, out):
    """Mark the episodes in which an external opponent is to move."""
    for i in range(states.size):
        state = states[i]
        out[i] = state.kind == EXTERNAL_OPPONENT and not state.over and state.turn != state.agent


@loop(grain=512)
def opponent_moves(share, states, games, indices, actions, rewards, terminated):
    """Play external opponents' legal actions in the episodes *indices* and settle the rewards."""
    while claim_rows(share):
        for k in claimed_rows(share):
            i = indices[k]
            _advance(states[i], games[0], square_of_action(actions[k], games[0]))
            _view_from_agent(states[i])
            rewards[i] = collect_agent_reward(states[i], games[0])
            terminated[i] = states[i].over
