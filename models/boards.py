"""Positions as torch tensors: boards are int64 with the bits of uint64, one number a position."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from reversi_env.core.geometry import AXIS_MASKS, AXIS_STEPS

_SQUARES = torch.arange(64)


def board_tensor(boards: np.ndarray) -> Tensor:
    """A uint64 array as an int64 tensor with the same bits, sharing its memory."""
    return torch.from_numpy(np.ascontiguousarray(boards, np.uint64).view(np.int64))


def planes(boards: Tensor) -> Tensor:
    """``(n, 64)`` of 0 and 1, int64: which squares are set."""
    return boards.unsqueeze(-1) >> _SQUARES.to(boards.device) & 1


def bit_counts(boards: Tensor) -> Tensor:
    """Number of set bits of each board, int64."""
    return planes(boards).sum(-1)


def _down(boards: Tensor, step: int) -> Tensor:
    """Shift towards lower squares; the sign bit that int64 drags along is cleared."""
    return boards >> step & ((1 << (64 - step)) - 1)


def legal_moves(own: Tensor, opp: Tensor, playable: int) -> Tensor:
    """Squares where the side to move may play: the twin of `reversi_env.core.bitboard.legal_moves` on tensors."""
    found = torch.zeros_like(own)
    for step, mask in zip(AXIS_STEPS.tolist(), AXIS_MASKS.view(np.int64).tolist(), strict=True):
        inside = opp & mask
        up, down = inside & own << step, inside & _down(own, step)
        for _ in range(5):
            up, down = up | inside & up << step, down | inside & _down(down, step)
        found = found | up << step | _down(down, step)
    return found & _signed(playable) & ~(own | opp)


def _signed(board: int) -> int:
    return board - (1 << 64) if board >> 63 else board
