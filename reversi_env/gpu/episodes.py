"""The GPU's kernels: one thread per environment, one launch per step, observations and masks included.

A block of threads steps its environments and leaves their boards in shared memory. Then the same threads write the
block's observations and masks, each in one contiguous piece of memory: consecutive threads write consecutive groups of eight
bytes, of any environment, so that every access has the full width of the memory. Boards are staged so that any eight
consecutive squares need only one shift.

The rules, the opponents and the random generator are the CPU's own functions (`autoreset`, `episodes`), which numba compiles
for the GPU when they are called from here. A kernel is compiled for one game, whose numbers are constants in it.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from reversi_env.envs.settings import Settings
from reversi_env.errors import extra_libraries
from reversi_env.gpu.driver import SIMULATED, GpuError, cuda, launch, require_gpu, shared_array
from reversi_env.kernels import autoreset, episodes
from reversi_env.kernels.autoreset import (
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
    WINNER,
    child_of,
    chosen_square,
    compact,
    load,
    mask_rows,
    mask_split,
    plane_rows,
    plane_split,
    random_choice,
    reset_state,
    set_game,
    set_start,
    spread_to_bytes,
    spread_to_float16,
    step_state,
    words_of,
)
from reversi_env.kernels.bitboard import NO_SQUARES
from reversi_env.kernels.episodes import GAME, STATE
from reversi_env.kernels.observations import square_of_action

#: Threads of a block on a GPU, a multiple of 32.
BLOCK = 128
#: Rows of a block's shared memory: planes, masks (two each, `plane_rows` and `mask_rows`), and the legal squares.
MASK_ROW, LEGAL_ROW, ROWS = 2, 4, 5
PACKED, BYTES, HALVES = range(3)
#: Values, bytes or float16, in one 64-bit word.
IN_WORD = {BYTES: 8, HALVES: 4}

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
    return count * 2 * squares // IN_WORD[layout], (count * (squares + 1) + 7) // 8


def block_size(squares: int, layout: int) -> int:
    """Threads of a block. A simulated thread is a Python thread, so there are only enough for one environment's planes."""
    if not SIMULATED:
        return BLOCK
    plane_words = word_counts(squares, layout, 1)[0]
    return max(8, (plane_words + 7) // 8 * 8)


def _observer(squares: int, layout: int) -> Any:
    """A device function: all threads of a block write the observations and masks of the block's environments."""
    if layout == PACKED:  # the boards are the state itself: there is nothing to write

        @cuda.jit(device=True)
        def no_observation(rows, own, opp, legal, count, observations, masks):
            pass

        return no_observation
    block = block_size(squares, layout)
    write_planes, write_masks = plane_writer(squares, layout, block), mask_writer(squares, block)

    @cuda.jit(device=True)
    def observe(rows, own, opp, legal, count, observations, masks):
        thread = cuda.threadIdx.x
        # uint64(…) is for the simulator, where a kernel's result comes back as a Python int.
        mine, theirs = uint64(compact(own, squares)), uint64(compact(opp, squares))
        rows[0, thread], rows[1, thread] = plane_rows(mine, theirs, squares)
        rows[LEGAL_ROW, thread] = compact(legal, squares)
        cuda.syncthreads()
        next_legal = rows[LEGAL_ROW, thread + 1]
        rows[MASK_ROW, thread], rows[MASK_ROW + 1, thread] = mask_rows(rows[LEGAL_ROW, thread], next_legal, squares)
        live = min(block, count - cuda.blockIdx.x * block)
        write_planes(rows, uint64(live), observations)
        cuda.syncthreads()
        write_masks(rows, uint64(live), masks)

    return observe


def plane_writer(squares: int, layout: int, block: int) -> Any:
    """A device function that writes planes. A thread writes the same word of every n-th environment."""
    in_word = IN_WORD[layout]
    words = 2 * squares // in_word
    at_once, even = block // words, block % words == 0
    split, spread = plane_split(squares), spread_to_bytes if layout == BYTES else spread_to_float16
    # Indices are unsigned, so that numba does not look for negative ones; unsigned mixed with signed would be a float.
    one_word, in_block, active, step = uint64(words), uint64(block), uint64(at_once * words), uint64(at_once)
    width, border, zero, one = uint64(in_word), uint64(split), uint64(0), uint64(1)

    @cuda.jit(device=True)
    def write_planes(rows, live, observations):
        thread = uint64(cuda.threadIdx.x)
        if thread < active:
            environment, first = thread // one_word, thread % one_word * width
            row = one if first >= border else zero
            first -= row * border
            at = uint64(cuda.blockIdx.x) * (in_block * one_word) + thread
            if even and live == in_block:  # a constant number of rounds, which the compiler unrolls
                turn = zero
                while turn < one_word:
                    bits = rows[row, environment + turn * step] >> first
                    observations[at + turn * active] = spread(bits)
                    turn += one
                return
            while environment < live:
                observations[at] = spread(rows[row, environment] >> first)
                environment += step
                at += active

    return write_planes


def mask_writer(squares: int, block: int) -> Any:
    """A device function that writes masks: per round, consecutive threads write consecutive groups of eight bytes."""
    split, skipped = mask_split(squares), divmod(8 * block, squares + 1)
    skip, skip_bytes, bytes_each, border = uint64(skipped[0]), uint64(skipped[1]), uint64(squares + 1), uint64(split)
    in_block, words_each_block = uint64(block), uint64(block * (squares + 1) // 8)
    low, high, zero, one, seven, eight = (
        uint64(MASK_ROW),
        uint64(MASK_ROW + 1),
        uint64(0),
        uint64(1),
        uint64(7),
        uint64(8),
    )

    @cuda.jit(device=True)
    def write_masks(rows, live, masks):
        index = uint64(cuda.threadIdx.x)
        words = (live * bytes_each + seven) // eight
        base = uint64(cuda.blockIdx.x) * words_each_block
        environment, first = eight * index // bytes_each, eight * index % bytes_each
        while index < words:
            row, begin = (high, border) if first >= border else (low, zero)
            masks[base + index] = spread_to_bytes(rows[row, environment] >> (first - begin))
            index += in_block
            environment += skip
            first += skip_bytes
            if first >= bytes_each:
                first -= bytes_each
                environment += one

    return write_masks


def game_maker(constants: tuple) -> Any:
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
    """Seeds environments and begins episodes, by `orders`; *start* has the arguments of `set_start`."""
    squares = constants[7]
    staged = (ROWS, block_size(squares, layout) + 1)  # one more column, for the environment after the last
    observe = _observer(squares, layout)
    make_game = game_maker(constants)

    @cuda.jit
    def reset(words, flags, rewards, start, orders, seeds, observations, masks):
        rows = cuda.shared.array(staged, uint64)
        i = cuda.grid(1)
        own = opp = legal = NO_SQUARES
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
        observe(rows, uint64(own), uint64(opp), uint64(legal), words.shape[1], observations, masks)

    return reset


def _step_kernel(constants: tuple, kind: int, layout: int, at_random: bool) -> Any:
    """Plays an action in every environment, that of the caller or a random one, and begins the next episode where one ends."""
    squares = constants[7]
    staged = (ROWS, block_size(squares, layout) + 1)  # one more column, for the environment after the last
    observe = _observer(squares, layout)
    make_game = game_maker(constants)

    @cuda.jit
    def step(words, flags, rewards, actions, observations, masks):
        rows = cuda.shared.array(staged, uint64)
        i = cuda.grid(1)
        own = opp = legal = NO_SQUARES
        if i < words.shape[1]:
            states, games = cuda.local.array(1, STATE), cuda.local.array(1, GAME)
            state, game = states[0], games[0]
            make_game(game)
            load(state, game, kind, words[OWN, i], words[OPP, i], words[LEGAL, i], words[RANDOM, i], words[META, i])
            sq = random_choice(state) if at_random else chosen_square(state, game, actions[i])
            reward, over, illegal, final_own, final_opp, score, winner = step_state(state, game, sq)
            rewards[i] = reward
            if over:
                words[FINAL_OWN, i], words[FINAL_OPP, i] = final_own, final_opp
                flags[FINAL_SCORE, i], flags[WINNER, i] = score & 0xFF, winner & 0xFF
            own, opp, legal, random, meta = words_of(state)
            words[OWN, i], words[OPP, i], words[LEGAL, i] = own, opp, legal
            words[RANDOM, i], words[META, i] = random, meta
            flags[TERMINATED, i], flags[ILLEGAL, i] = over, illegal
            flags[TO_MOVE, i], flags[AGENT, i] = state["turn"], state["agent"]
        observe(rows, uint64(own), uint64(opp), uint64(legal), words.shape[1], observations, masks)

    return step


def _expand_kernel(constants: tuple) -> Any:
    """The boards after every legal move, and the numbers of flipped discs: one thread per square."""
    squares = constants[7]
    make_game = game_maker(constants)

    @cuda.jit
    def expand(words, children, flipped):
        at = cuda.grid(1)
        i, action = at // squares, at % squares
        if i < words.shape[1]:
            games = cuda.local.array(1, GAME)
            game = games[0]
            make_game(game)
            sq = square_of_action(action, game)
            own, opp, count = child_of(words[OWN, i], words[OPP, i], words[LEGAL, i], sq)
            children[0, i, action], children[1, i, action], flipped[i, action] = own, opp, count

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


with extra_libraries():
    import torch

LAYOUTS = {"packed": PACKED, "planes": BYTES, "half": HALVES}
#: What a reset may change of a game, in the order of `autoreset.set_start`.
START_FIELDS = ["start_own", "start_opp", "start_turn", "opening_plies", "empties", "colour"]


def usable_device(device: torch.device) -> torch.device:
    """The device with its number, if both torch and numba can use it; the CPU where numba simulates a GPU."""
    require_gpu()
    if SIMULATED:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise GpuError(f"device={str(device)!r}: torch {torch.__version__} sees no GPU; expected a build with CUDA")
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise GpuError(f"device={str(device)!r}: torch sees {torch.cuda.device_count()} GPU(s), numbered from 0")
    return torch.device("cuda", index)


class DeviceBatch:
    """`HostBatch` on a GPU. Methods return when the work is queued; operations that torch queues later see the results."""

    def __init__(self, count: int, settings: Settings, kind: int, layout: str, *, device: torch.device) -> None:
        self._count, self._kind, self._game = count, kind, settings.game()
        self._device = device
        squares, size, code = settings.rules.square_count, settings.size, LAYOUTS[layout]
        plane_words, mask_words = word_counts(squares, code, count)
        rows = 0 if layout == "packed" else count

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._words, self.flags = zeros(autoreset.WORDS, count), zeros(autoreset.FLAGS, count, dtype=torch.uint8)
        self.rewards = zeros(count, dtype=torch.float32)
        # At least one word each, because an empty array has no address.
        planes, masks = zeros(max(plane_words, 1)), zeros(max(mask_words, 1))
        self.boards, self.legal = self._words[: autoreset.LEGAL].T, self._words[autoreset.LEGAL]
        self.final_boards = self._words[autoreset.FINAL_OWN :].T
        numbers = planes.view(torch.float16 if layout == "half" else torch.uint8)
        self.planes = numbers[: rows * 2 * squares].view(rows, 2, size, size)
        flat_masks = masks.view(torch.uint8)[: rows * (squares + 1)]
        self.masks = flat_masks.view(torch.bool).view(rows, squares + 1)

        self._state_arguments = (
            shared_array(self._words, np.uint64),
            shared_array(self.flags),
            shared_array(self.rewards),
        )
        self._observation_arguments = (shared_array(planes, np.uint64), shared_array(masks, np.uint64))
        self._no_actions = shared_array(zeros(1))
        constants = tuple(value.item() for value in self._game[0])
        self._kernels = kernels_for(constants, kind, code)
        self._block = block_size(squares, code)

    def reset(self, orders: np.ndarray, seeds: np.ndarray, game: np.ndarray) -> None:
        start = game[START_FIELDS].tolist()[0]
        numbers = np.array([number % 2**64 for number in start], np.uint64)
        # The tensors may be freed on return: torch does not reuse their memory before the kernel has ended.
        arrays = [shared_array(torch.from_numpy(a.view(np.int64)).to(self._device)) for a in (numbers, seeds)]
        order_array = shared_array(torch.from_numpy(orders).to(self._device))
        arguments = (arrays[0], order_array, arrays[1])
        self._launch("reset", *self._state_arguments, *arguments, *self._observation_arguments)

    def step(self, actions: torch.Tensor | None) -> None:
        """Play the actions (int64), or random ones for None: one launch."""
        action_array, name = (self._no_actions, "random_step") if actions is None else (shared_array(actions), "step")
        self._launch(name, *self._state_arguments, action_array, *self._observation_arguments)

    def children(self) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (self._count, int(self._game["square_count"][0]))
        boards = torch.empty((2, *shape), dtype=torch.int64, device=self._device)
        flipped = torch.empty(shape, dtype=torch.int8, device=self._device)
        arguments = (self._state_arguments[0], shared_array(boards, np.uint64), shared_array(flipped))
        self._launch("expand", *arguments, threads=flipped.numel())
        return boards, flipped

    def get_states(self) -> np.ndarray:
        states = np.zeros(self._count, episodes.STATE)
        words = self._words.cpu().numpy().view(np.uint64)
        autoreset.words_to_states(words, self._game, self._kind, states)
        return states

    def set_states(self, states: np.ndarray) -> None:
        words = np.zeros((autoreset.WORDS, self._count), np.uint64)
        autoreset.states_to_words(states, words)
        self._words[: autoreset.FINAL_OWN] = torch.from_numpy(words[: autoreset.FINAL_OWN].view(np.int64)).to(
            self._device
        )
        for row, name in ((autoreset.TO_MOVE, "turn"), (autoreset.AGENT, "agent")):
            self.flags[row] = torch.from_numpy(states[name].astype(np.uint8)).to(self._device)
        nothing = np.zeros(self._count, np.uint8)
        self.reset(nothing, nothing.astype(np.uint64), self._game)  # writes the observations

    def _launch(self, name: str, *arguments: Any, threads: int = 0) -> None:
        launch(getattr(self._kernels, name), threads or self._count, self._block, self._device, *arguments)
