"""`reversi_env.functional` for tensors on a GPU: one launch per call, one thread per state, results in torch tensors.

The rules are those of `reversi_env.kernels.states`; observations are written as by the environments (`reversi_env.gpu.episodes`).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from reversi_env.errors import extra_libraries
from reversi_env.functional import arrays
from reversi_env.gpu import episodes as kernels
from reversi_env.gpu.driver import cuda, launch, require_gpu, shared_array
from reversi_env.gpu.episodes import LEGAL_ROW, MASK_ROW
from reversi_env.kernels.autoreset import compact, mask_rows, plane_rows
from reversi_env.kernels.bitboard import NO_SQUARES
from reversi_env.kernels.episodes import GAME
from reversi_env.kernels.states import next_state, score_of
from reversi_env.kernels.symmetry import transform
from reversi_env.rules import Rules

with extra_libraries():
    import torch

uint64 = np.uint64


class Kernels(NamedTuple):
    """The kernels of one game, not yet launched."""

    step: Any
    score: Any
    symmetry: Any
    planes: Any
    masks: Any
    block: int


@lru_cache(maxsize=16)
def kernels_of(rules: Rules) -> Kernels:
    """The kernels of a game; a `GpuError` is raised if numba cannot use a GPU."""
    require_gpu()
    constants = tuple(value.item() for value in arrays.game_of(rules)[0][0])
    make_game = kernels.game_maker(constants)

    @cuda.jit
    def step(own, opp, legal, turn, status, actions, own_out, opp_out, legal_out, turn_out, status_out):
        i = cuda.grid(1)
        if i < own.size:
            games = cuda.local.array(1, GAME)
            game = games[0]
            make_game(game)
            state = next_state(own[i], opp[i], legal[i], turn[i], status[i], actions[i], game)
            own_out[i], opp_out[i], legal_out[i] = state[0], state[1], state[2]
            turn_out[i], status_out[i] = state[3], state[4]

    @cuda.jit
    def score(own, opp, status, scores):
        i = cuda.grid(1)
        if i < own.size:
            games = cuda.local.array(1, GAME)
            game = games[0]
            make_game(game)
            scores[i] = score_of(own[i], opp[i], status[i], game)

    @cuda.jit
    def symmetry(own, opp, legal, symmetries, own_out, opp_out, legal_out):
        i = cuda.grid(1)
        if i < own.size:
            own_out[i] = transform(own[i], symmetries[i])
            opp_out[i] = transform(opp[i], symmetries[i])
            legal_out[i] = transform(legal[i], symmetries[i])

    block = kernels.block_size(rules.square_count, kernels.BYTES)
    return Kernels(step, score, symmetry, *_observers(rules.square_count), block)


def _observers(squares: int) -> tuple[Any, Any]:
    """Kernels that write planes, and masks: the environments' writers over boards that lie in tensors."""
    block = kernels.block_size(squares, kernels.BYTES)
    write_planes = kernels.plane_writer(squares, kernels.BYTES, block)
    write_masks = kernels.mask_writer(squares, block)
    staged = (kernels.ROWS, block + 1)

    @cuda.jit
    def planes(own, opp, written):
        rows = cuda.shared.array(staged, uint64)
        i, thread = cuda.grid(1), cuda.threadIdx.x
        if i < own.size:
            mine, theirs = uint64(compact(own[i], squares)), uint64(compact(opp[i], squares))
            rows[0, thread], rows[1, thread] = plane_rows(mine, theirs, squares)
        cuda.syncthreads()
        write_planes(rows, uint64(min(block, own.size - cuda.blockIdx.x * block)), written)

    @cuda.jit
    def masks(legal, written):
        rows = cuda.shared.array(staged, uint64)
        i, thread = cuda.grid(1), cuda.threadIdx.x
        rows[LEGAL_ROW, thread] = compact(legal[i], squares) if i < legal.size else NO_SQUARES
        cuda.syncthreads()
        mine, next_legal = rows[LEGAL_ROW, thread], rows[LEGAL_ROW, thread + 1]
        rows[MASK_ROW, thread], rows[MASK_ROW + 1, thread] = mask_rows(mine, next_legal, squares)
        cuda.syncthreads()
        write_masks(rows, uint64(min(block, legal.size - cuda.blockIdx.x * block)), written)

    return planes, masks


def step(state: Any, actions: torch.Tensor, out: Any = None) -> Any:
    shape = arrays.broadcast_shape(torch.broadcast_shapes, state.own.shape, actions.shape)
    if out is None:
        out = type(state)(*(torch.empty(shape, dtype=field.dtype, device=field.device) for field in state))
    else:
        arrays.check_out(out, type(state), shape)
        arrays.require_fitting_out(all(field.is_contiguous() and field.device == state.own.device for field in out))
    columns = [_flat(field, shape) for field in (*state, actions)]
    arguments = (*map(_argument, columns[:5]), shared_array(columns[5]), *map(_argument, out))
    _launch(state, "step", *arguments, count=columns[5].numel())
    return out


def legal(state: Any) -> torch.Tensor:
    boards, squares = _flat(state.legal, state.own.shape), state.rules.square_count
    words = _words(state, kernels.word_counts(squares, kernels.BYTES, boards.numel())[1])
    _launch(state, "masks", _argument(boards), _argument(words))
    rows = words.view(torch.uint8)[: boards.numel() * (squares + 1)]
    return rows.view(torch.bool).view(*state.own.shape, squares + 1)


def observe(state: Any) -> torch.Tensor:
    own, opp = (_flat(field, state.own.shape) for field in state[:2])
    size = state.rules.size
    words = _words(state, kernels.word_counts(size * size, kernels.BYTES, own.numel())[0])
    _launch(state, "planes", _argument(own), _argument(opp), _argument(words))
    return words.view(torch.uint8)[: own.numel() * 2 * size * size].view(*state.own.shape, 2, size, size)


def score(state: Any) -> torch.Tensor:
    own, opp, _, _, status = (_flat(field, state.own.shape) for field in state)
    scores = torch.empty(own.shape, dtype=torch.int8, device=own.device)
    _launch(state, "score", _argument(own), _argument(opp), shared_array(status), shared_array(scores))
    return scores.view(state.own.shape)


def symmetry(state: Any, numbers: torch.Tensor) -> Any:
    shape = arrays.broadcast_shape(torch.broadcast_shapes, state.own.shape, numbers.shape)
    columns = [_flat(field, shape) for field in (*state[:3], numbers)]
    boards = [torch.empty(shape, dtype=torch.int64, device=numbers.device) for _ in range(3)]
    arguments = (*map(_argument, columns[:3]), shared_array(columns[3]), *map(_argument, boards))
    _launch(state, "symmetry", *arguments, count=columns[3].numel())
    return type(state)(*boards, *(field.expand(shape).clone() for field in state[3:]))


def _flat(field: torch.Tensor, shape: Any) -> torch.Tensor:
    return field.expand(shape).reshape(-1).contiguous()


def _words(state: Any, count: int) -> torch.Tensor:
    """Return memory to write to; at least one word, because an empty tensor has no address."""
    return torch.empty(max(count, 1), dtype=torch.int64, device=state.own.device)


def _argument(tensor: torch.Tensor) -> Any:
    """Return a tensor's memory as a kernel's argument of one row, boards as uint64."""
    return shared_array(tensor.view(-1), np.uint64 if tensor.dtype == torch.int64 else None)


def _launch(state: Any, name: str, *arguments: Any, count: int | None = None) -> None:
    if threads := state.own.numel() if count is None else count:
        compiled = kernels_of(state.rules)
        launch(getattr(compiled, name), threads, compiled.block, state.own.device, *arguments)
