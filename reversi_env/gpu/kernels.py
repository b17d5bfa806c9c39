"""The GPU's kernels: one thread an environment, one launch a step, observations and masks included.

A block of threads steps its environments and leaves their boards in shared memory. Then the same threads write the
block's observations and masks, which are one contiguous piece of memory each: thread after thread the next eight bytes,
whatever environment they belong to, so that every access is as wide as the memory likes.

The rules, the opponents and the random generator are the CPU's own functions (`rollout`, `episodes`), which numba compiles
for the GPU when they are called from here. A kernel is compiled for one game, whose numbers are constants in it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from reversi_env.core.episodes import GAME, STATE, square_of_action
from reversi_env.core.rollout import (
    AGENT,
    FINAL_OPP,
    FINAL_OWN,
    FINAL_SCORE,
    ILLEGAL,
    LEGAL,
    META,
    OPP,
    OWN,
    RANDOM,
    TERMINATED,
    TO_MOVE,
    child_of,
    chosen_square,
    compact,
    load,
    mask_bytes,
    plane_bytes,
    plane_halves,
    random_choice,
    reset_state,
    set_game,
    set_start,
    step_state,
    words_of,
)
from reversi_env.gpu.driver import SIMULATED, cuda

#: Threads of a block, a multiple of 8. (A simulated thread is a Python thread: fewer of them are quicker.)
BLOCK = 8 if SIMULATED else 128
#: Boards of a block in shared memory: own, opp, legal; one more, since a mask's last bytes ask for the next environment's.
STAGED = (3, BLOCK + 1)
PACKED, BYTES, HALVES = range(3)

uint64 = np.uint64


class Kernels(NamedTuple):
    """The kernels of one game, not yet launched. The first three write observations and masks."""

    reset: Any
    step: Any
    random_step: Any
    expand: Any


def word_counts(squares: int, layout: int, count: int) -> tuple[int, int]:
    """64-bit words that the observations and the masks of *count* environments take."""
    if layout == PACKED:
        return 0, 0
    return count * 2 * squares // (8 if layout == BYTES else 4), (count * (squares + 1) + 7) // 8


def _observer(squares: int, layout: int) -> Any:
    """A device function: all threads of a block write the observations and masks of the block's environments."""
    in_word = 8 if layout == BYTES else 4
    plane_words = 2 * squares // in_word
    # A thread writes every BLOCK-th word: so many environments, and so many words of one, further on each time.
    skip_environments, skip_words = divmod(BLOCK, plane_words)
    width = squares + 1
    mask_words = BLOCK * width // 8
    rounds = (mask_words + BLOCK - 1) // BLOCK
    skip_masks, skip_bytes = divmod(8 * BLOCK, width)
    plane_word = plane_bytes if layout == BYTES else plane_halves

    @cuda.jit(device=True)
    def observe(boards, observations, masks):
        thread = cuda.threadIdx.x
        base = cuda.blockIdx.x * BLOCK * plane_words
        environment, word = thread // plane_words, thread % plane_words
        for turn in range(plane_words):
            at = base + turn * BLOCK + thread
            if at < observations.size:
                own, opp = boards[0, environment], boards[1, environment]
                observations[at] = plane_word(own, opp, squares, in_word * word)
            environment += skip_environments
            word += skip_words
            if word >= plane_words:
                word -= plane_words
                environment += 1
        base = cuda.blockIdx.x * mask_words
        environment, first = 8 * thread // width, 8 * thread % width
        for turn in range(rounds):
            index = turn * BLOCK + thread
            if index < mask_words and base + index < masks.size:
                legal, following = boards[2, environment], boards[2, environment + 1]
                masks[base + index] = mask_bytes(legal, following, squares, first)
            environment += skip_masks
            first += skip_bytes
            if first >= width:
                first -= width
                environment += 1

    return observe


def _nothing() -> Any:
    """The device function for packed boards, which are the state itself: there is nothing to write."""

    @cuda.jit(device=True)
    def observe(boards, observations, masks):
        pass

    return observe


def _game_maker(constants: tuple) -> Any:
    """A device function: fills a local `GAME` with constants, so that the compiler drops what this game does not need."""
    playable, start_own, start_opp, discount, start_turn, opening_plies, empties = constants[:7]
    squares, sign, colour, reward, illegal, observation = constants[7:]
    on_board, own, opp = uint64(playable), uint64(start_own), uint64(start_opp)

    @cuda.jit(device=True)
    def make_game(game):
        set_game(game, on_board, discount, squares, sign, reward, illegal, observation)
        set_start(game, own, opp, start_turn, opening_plies, empties, colour)

    return make_game


def _reset_kernel(constants: tuple, kind: int, layout: int) -> Any:
    """Seeds environments and begins episodes, by `orders`; *start* are the numbers that `set_start` takes."""
    squares = constants[7]
    observe = _nothing() if layout == PACKED else _observer(squares, layout)
    make_game = _game_maker(constants)

    @cuda.jit
    def reset(words, flags, rewards, start, orders, seeds, observations, masks):
        boards = cuda.shared.array(STAGED, uint64)
        thread, i = cuda.threadIdx.x, cuda.grid(1)
        if i < words.shape[1]:
            states, games = cuda.local.array(1, STATE), cuda.local.array(1, GAME)
            state, game = states[0], games[0]
            make_game(game)
            set_start(game, uint64(start[0]), uint64(start[1]), start[2], start[3], start[4], start[5])
            load(state, game, kind, words[OWN, i], words[OPP, i], words[LEGAL, i], words[RANDOM, i], words[META, i])
            if orders[i] != 0:
                reset_state(state, game, kind, orders[i], uint64(seeds[i]))
                rewards[i] = 0.0
                flags[TERMINATED, i], flags[ILLEGAL, i] = 0, 0
                flags[TO_MOVE, i], flags[AGENT, i] = state["turn"], state["agent"]
            own, opp, legal, random, meta = words_of(state)
            words[OWN, i], words[OPP, i], words[LEGAL, i] = own, opp, legal
            words[RANDOM, i], words[META, i] = random, meta
            boards[0, thread] = compact(uint64(own), squares)
            boards[1, thread] = compact(uint64(opp), squares)
            boards[2, thread] = compact(uint64(legal), squares)
        cuda.syncthreads()
        observe(boards, observations, masks)

    return reset


def _step_kernel(constants: tuple, kind: int, layout: int, at_random: bool) -> Any:
    """Plays an action in every environment, the given one or a random one, and begins the next episode where one ends."""
    squares = constants[7]
    observe = _nothing() if layout == PACKED else _observer(squares, layout)
    make_game = _game_maker(constants)

    @cuda.jit
    def step(words, flags, rewards, actions, observations, masks):
        boards = cuda.shared.array(STAGED, uint64)
        thread, i = cuda.threadIdx.x, cuda.grid(1)
        if i < words.shape[1]:
            states, games = cuda.local.array(1, STATE), cuda.local.array(1, GAME)
            state, game = states[0], games[0]
            make_game(game)
            load(state, game, kind, words[OWN, i], words[OPP, i], words[LEGAL, i], words[RANDOM, i], words[META, i])
            sq = random_choice(state) if at_random else chosen_square(state, game, actions[i])
            reward, over, illegal, final_own, final_opp, score = step_state(state, game, sq)
            rewards[i] = reward
            if over:
                words[FINAL_OWN, i], words[FINAL_OPP, i] = final_own, final_opp
                flags[FINAL_SCORE, i] = score & 0xFF
            own, opp, legal, random, meta = words_of(state)
            words[OWN, i], words[OPP, i], words[LEGAL, i] = own, opp, legal
            words[RANDOM, i], words[META, i] = random, meta
            flags[TERMINATED, i], flags[ILLEGAL, i] = over, illegal
            flags[TO_MOVE, i], flags[AGENT, i] = state["turn"], state["agent"]
            boards[0, thread] = compact(uint64(own), squares)
            boards[1, thread] = compact(uint64(opp), squares)
            boards[2, thread] = compact(uint64(legal), squares)
        cuda.syncthreads()
        observe(boards, observations, masks)

    return step


def _expand_kernel(constants: tuple) -> Any:
    """The boards after every legal move, and the discs turned: one thread a square."""
    squares = constants[7]
    make_game = _game_maker(constants)

    @cuda.jit
    def expand(words, children, turned):
        at = cuda.grid(1)
        i, action = at // squares, at % squares
        if i < words.shape[1]:
            games = cuda.local.array(1, GAME)
            game = games[0]
            make_game(game)
            sq = square_of_action(action, game)
            own, opp, count = child_of(words[OWN, i], words[OPP, i], words[LEGAL, i], sq)
            children[0, i, action], children[1, i, action], turned[i, action] = own, opp, count

    return expand


@lru_cache(maxsize=64)
def kernels_for(constants: tuple, kind: int, layout: int) -> Kernels:
    """The kernels of a game (the values of its `GAME` record), an opponent's kind (0: two-player mode) and a layout."""
    return Kernels(
        _reset_kernel(constants, kind, layout),
        _step_kernel(constants, kind, layout, at_random=False),
        _step_kernel(constants, kind, layout, at_random=True),
        _expand_kernel(constants),
    )
