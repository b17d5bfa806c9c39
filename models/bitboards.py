"""Positions as torch tensors: a board is an int64 with the bits of the uint64."""

import numpy as np

from reversi_env.errors import extra_libraries
from reversi_env.kernels.frame import AXIS_MASKS, AXIS_STEPS

with extra_libraries():
    import torch
    from torch import Tensor


def board_tensor(boards: np.ndarray) -> Tensor:
    """Return a uint64 array as an int64 tensor with the same bits, which shares its memory."""
    return torch.from_numpy(np.ascontiguousarray(boards, np.uint64).view(np.int64))


def planes(boards: Tensor) -> Tensor:
    """Return ``(…, 64)`` of 0 and 1, int64: the squares of the 8x8 frame."""
    return boards.unsqueeze(-1) >> torch.arange(64, device=boards.device) & 1


def board_planes(boards: Tensor, size: int) -> Tensor:
    """Return ``(…, size, size)`` of 0 and 1, int64: the squares of the board itself."""
    rim = (8 - size) // 2
    return planes(boards).unflatten(-1, (8, 8))[..., rim : rim + size, rim : rim + size]


def boards_of_planes(planes: Tensor) -> Tensor:
    """Return the boards of planes ``(…, size, size)``, the inverse of `board_planes`; squares that are not 0 are set."""
    rim = (8 - planes.shape[-1]) // 2
    bits = 1 << torch.arange(64, device=planes.device).view(8, 8)[rim : 8 - rim, rim : 8 - rim]
    return ((planes != 0) * bits).sum((-2, -1))


def bit_counts(boards: Tensor) -> Tensor:
    return planes(boards).sum(-1)


def _down(boards: Tensor, step: int) -> Tensor:
    """Return a logical right shift, towards lower squares; torch's shift of int64 copies the sign bit."""
    return boards >> step & ((1 << (64 - step)) - 1)


def legal_moves(own: Tensor, opp: Tensor, playable: int) -> Tensor:
    """Return the legal squares of the side to move, as `reversi_env.kernels.bitboard.legal_moves` for tensors."""
    moves = torch.zeros_like(own)
    for step, mask in zip(AXIS_STEPS.tolist(), AXIS_MASKS.view(np.int64).tolist(), strict=True):
        inside = opp & mask
        up, down = inside & own << step, inside & _down(own, step)
        for _ in range(5):
            up, down = up | inside & up << step, down | inside & _down(down, step)
        moves = moves | up << step | _down(down, step)
    return moves & _signed(playable) & ~(own | opp)


def transformed(boards: Tensor, symmetries: Tensor) -> Tensor:
    """Return boards under symmetries 0 to 7, one for each board, as `reversi_env.kernels.symmetry.transform` for tensors."""
    for bit, image in ((1, _mirrored_rows), (2, _mirrored_columns), (4, _transposed)):
        boards = torch.where((symmetries & bit).bool(), image(boards), boards)
    return boards


def _swapped(boards: Tensor, mask: int, distance: int) -> Tensor:
    """Swap the bits of *mask* with those *distance* higher."""
    moved = (boards ^ _down(boards, distance)) & mask
    return boards ^ moved ^ moved << distance


def _mirrored_rows(boards: Tensor) -> Tensor:
    boards = _swapped(_swapped(boards, 0x00FF_00FF_00FF_00FF, 8), 0x0000_FFFF_0000_FFFF, 16)
    return _down(boards, 32) | boards << 32


def _mirrored_columns(boards: Tensor) -> Tensor:
    boards = _swapped(_swapped(boards, 0x5555_5555_5555_5555, 1), 0x3333_3333_3333_3333, 2)
    return _swapped(boards, 0x0F0F_0F0F_0F0F_0F0F, 4)


def _transposed(boards: Tensor) -> Tensor:
    boards = _swapped(_swapped(boards, 0x00AA_00AA_00AA_00AA, 7), 0x0000_CCCC_0000_CCCC, 14)
    return _swapped(boards, 0x0000_0000_F0F0_F0F0, 28)


def _signed(board: int) -> int:
    return board - (1 << 64) if board >> 63 else board
