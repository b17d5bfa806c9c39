"""`PolicyValueNet`: a small residual network over the board, with a number for every action and one for the position.

It is a plain torch module: stable-baselines3's policies contain it (`train.rl.board_policy`), and the agent ``rl`` plays
with it. Nothing here imports stable-baselines3.

>>> from reversi_env import batch
>>> net = PolicyValueNet(6)
>>> own, opp = batch.start(2, Rules(6))
>>> logits, values = net.of_boards(own, opp)
>>> tuple(logits.shape), tuple(values.shape)  # 36 squares and the pass
((2, 37), (2,))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_planes, board_tensor, legal_moves
from models.policy import Architecture
from models.residual.net import ResidualBlock
from reversi_env import Rules
from reversi_env.batch import action_images
from reversi_env.errors import TrainError, extra_libraries, quoted
from reversi_env.rules import SIZES

with extra_libraries():
    import torch
    from torch import Tensor, nn

Boards = NDArray[np.uint64]

#: What stands in place of the number of an illegal action: finite, so that 0 times it is 0, and lost in any softmax.
ILLEGAL = -1e9
#: Own discs, the opponent's, legal squares, and ones, which tell the board from the padding around it.
INPUT_PLANES = 4
#: The order of the symmetries here: four quarter turns, and the same of the transposed board.
VIEWS = [0, 5, 3, 6, 4, 1, 7, 2]
#: Channels between the trunk and a head.
HEAD_CHANNELS = 8
VALUE_WIDTH = 64
#: Positions that go through the network at once.
BATCH = 2048


class BoardTrunk(nn.Module):
    """From a position to *channels* maps of the board.

    With ``half_precision`` the convolutions are in bfloat16, twice as fast where the processor has instructions for it; weights,
    heads and what comes out stay in single precision. It is no part of the weights.
    """

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.half_precision = False
        self.entry = nn.Conv2d(INPUT_PLANES, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))

    def forward(self, discs: Tensor, mask: Tensor) -> Tensor:
        """``(n, channels, size, size)`` from ``(n, 2, size, size)`` of discs and the mask of legal actions ``(n, size² + 1)``."""
        size = discs.shape[-1]
        legal = mask[:, :-1].reshape(-1, 1, size, size).to(torch.float32)
        inputs = torch.cat([discs.to(torch.float32), legal, torch.ones_like(legal)], dim=1)
        inputs = inputs.contiguous(memory_format=torch.channels_last)  # half as long again otherwise
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=self.half_precision):
            maps: Tensor = self.blocks(torch.relu(self.entry(inputs)))
        return maps.to(torch.float32)


class PolicyValueNet(nn.Module):
    """A network for one board size; the variant of the game is in its weights.

    Values are between -1 and 1 for the side to move, 1 for a certain win.
    """

    def __init__(self, size: int, architecture: Architecture | None = None) -> None:
        super().__init__()
        if size not in SIZES:
            raise TrainError(f"size={quoted(size)}: expected one of {', '.join(map(str, SIZES))}")
        self.size, self.architecture = size, architecture or Architecture()
        channels, squares = self.architecture.channels, size * size
        self.trunk = BoardTrunk(channels, self.architecture.blocks)
        self.policy_maps = nn.Conv2d(channels, HEAD_CHANNELS, 1)
        self.policy = nn.Linear(HEAD_CHANNELS * squares, squares + 1)
        nn.init.orthogonal_(self.policy.weight, gain=0.01)  # all moves are as likely at first
        nn.init.zeros_(self.policy.bias)
        self.value_maps = nn.Conv2d(channels, HEAD_CHANNELS, 1)
        self.value_hidden = nn.Linear(HEAD_CHANNELS * squares, VALUE_WIDTH)
        self.value = nn.Linear(VALUE_WIDTH, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, discs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of all actions, ``(n, size² + 1)``, legal or not, and values, ``(n,)``.

        *discs*: ``(n, 2, size, size)``, own and the opponent's, of any type; *mask*: ``(n, size² + 1)``, the legal actions.
        """
        maps = self.trunk(discs, mask)
        numbers = self.policy(torch.relu(self.policy_maps(maps)).flatten(1))
        return numbers, self._value(maps)

    def values(self, discs: Tensor, mask: Tensor) -> Tensor:
        """The values alone."""
        return self._value(self.trunk(discs, mask))

    def of_boards(self, own: np.ndarray, opp: np.ndarray) -> tuple[Tensor, Tensor]:
        """`forward` for positions given as two arrays of boards, uint64; nothing is kept for gradients."""
        with torch.inference_mode():
            return self(*self.inputs(own, opp))

    def inputs(self, own: np.ndarray, opp: np.ndarray) -> tuple[Tensor, Tensor]:
        """What `forward` takes, where the network is, for positions given as two arrays of boards."""
        device = next(self.parameters()).device
        return net_inputs(board_tensor(own).to(device), board_tensor(opp).to(device), self.size)

    def _value(self, maps: Tensor) -> Tensor:
        hidden = torch.relu(self.value_hidden(torch.relu(self.value_maps(maps)).flatten(1)))
        return torch.tanh(self.value(hidden)).squeeze(1)


class ValueFromBoards(nn.Module):
    """The network's value as `models.torch_evaluator.TorchEvaluator` wants it: from two int64 tensors of boards."""

    def __init__(self, net: PolicyValueNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values between -1 and 1 for the side to move."""
        return self.net.values(*net_inputs(own, opp, self.net.size))


def net_inputs(own: Tensor, opp: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Discs and mask, int8, as `PolicyValueNet` takes them, from int64 tensors of boards; the pass where there is no move."""
    legal = legal_moves(own, opp, Rules(size).playable)
    mask = torch.cat([board_planes(legal, size).flatten(1), (legal == 0).unsqueeze(1)], dim=1)
    return board_planes(torch.stack([own, opp], dim=1), size).to(torch.int8), mask.to(torch.int8)


def masked(numbers: Tensor, mask: Tensor) -> Tensor:
    """The numbers of the legal actions; `ILLEGAL` for the others."""
    return numbers.masked_fill(mask == 0, ILLEGAL)


# --- symmetries -----------------------------------------------------------------------------------


def views(rules: Rules) -> np.ndarray:
    """``(8, squares + 1)``: the action of the board that lies where action *a* is, under each symmetry; the pass stays."""
    return action_images(rules.size)[VIEWS]


def turned(discs: Tensor, mask: Tensor, view: Tensor) -> tuple[Tensor, Tensor]:
    """Discs and masks under one of the `views`, or under one for each position."""
    view = view.expand(mask.shape)
    squares = view[:, None, :-1].expand(-1, 2, -1)
    return discs.flatten(2).gather(2, squares).view(discs.shape), mask.gather(1, view)


def action_numbers(net: PolicyValueNet, discs: Tensor, mask: Tensor, *, symmetric: bool = False) -> Tensor:
    """The numbers of the legal actions; if *symmetric*, in the mean over the eight symmetries of the board.

    Eight opinions about one position, whose errors are different: some fifty Elo for a policy that has seen all symmetries. The
    result is the mean of log-probabilities then.
    """
    if not symmetric:
        return masked(net(discs, mask)[0], mask)
    total = torch.zeros(mask.shape, device=discs.device)
    for view in torch.from_numpy(views(Rules(net.size))).to(discs.device):
        seen, legal = turned(discs, mask, view)
        total[:, view] += torch.log_softmax(masked(net(seen, legal)[0], legal), 1)
    return masked(total / 8, mask)


def policy_numbers(net: PolicyValueNet, own: Boards, opp: Boards, *, symmetric: bool = False) -> NDArray[np.float64]:
    """Numbers of all actions, (N, squares + 1), `ILLEGAL` where they are; *symmetric*: the mean over all symmetries."""
    parts = []
    for start in range(0, len(own), BATCH):
        rows = slice(start, start + BATCH)
        with torch.inference_mode():
            numbers = action_numbers(net, *net.inputs(own[rows], opp[rows]), symmetric=symmetric)
        parts.append(numbers.to("cpu", torch.float64).numpy())
    return np.concatenate(parts)
