"""`PolicyValueNet`: a small residual network with a policy and a value head; the network of both PPOs and of the agent ``rl``.

>>> from reversi_env import batch
>>> net = PolicyValueNet(6)
>>> own, opp = batch.start(2, Rules(6))
>>> logits, values = net.of_boards(own, opp)
>>> tuple(logits.shape), tuple(values.shape)  # 36 squares and the pass
((2, 37), (2,))
"""

from copy import deepcopy

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

#: Logit of an illegal action: finite, so that 0 times it is 0, and negligible in any softmax.
ILLEGAL_LOGIT = -1e9
#: Own discs, the opponent's, legal squares, and ones, which distinguish the board from the padding around it.
INPUT_PLANES = 4
#: The order of the symmetries here: four quarter turns, and the same of the transposed board.
SYMMETRY_ORDER = [0, 5, 3, 6, 4, 1, 7, 2]
#: Channels between the trunk and a head.
HEAD_CHANNELS = 8
VALUE_WIDTH = 64
#: Positions in one forward pass.
BATCH = 2048


class BoardTrunk(nn.Module):
    """Maps a position to *channels* feature maps.

    With ``half_precision`` the convolutions are in bfloat16, twice as fast where the processor has instructions for it; weights,
    heads and outputs stay in single precision.
    """

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.half_precision = False
        self.entry = nn.Conv2d(INPUT_PLANES, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))

    def forward(self, discs: Tensor, mask: Tensor) -> Tensor:
        """Return ``(n, channels, size, size)`` from discs ``(n, 2, size, size)`` and action masks ``(n, size² + 1)``."""
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
        nn.init.orthogonal_(self.policy.weight, gain=0.01)  # nearly uniform at first
        nn.init.zeros_(self.policy.bias)
        self.value_maps = nn.Conv2d(channels, HEAD_CHANNELS, 1)
        self.value_hidden = nn.Linear(HEAD_CHANNELS * squares, VALUE_WIDTH)
        self.value = nn.Linear(VALUE_WIDTH, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, discs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of all actions, ``(n, size² + 1)``, legal or not, and values, ``(n,)``.

        *discs*: ``(n, 2, size, size)``, own and the opponent's, of any type; *mask*: ``(n, size² + 1)``, the legal actions.
        """
        maps = self.trunk(discs, mask)
        logits = self.policy(torch.relu(self.policy_maps(maps)).flatten(1))
        return logits, self._value(maps)

    def values(self, discs: Tensor, mask: Tensor) -> Tensor:
        return self._value(self.trunk(discs, mask))

    def of_boards(self, own: np.ndarray, opp: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return `forward` of two arrays of boards, uint64, without gradients."""
        with torch.inference_mode():
            return self(*self.inputs(own, opp))

    def inputs(self, own: np.ndarray, opp: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the arguments of `forward`, on the network's device, for two arrays of boards."""
        device = next(self.parameters()).device
        return net_inputs(board_tensor(own).to(device), board_tensor(opp).to(device), self.size)

    def _value(self, maps: Tensor) -> Tensor:
        hidden = torch.relu(self.value_hidden(torch.relu(self.value_maps(maps)).flatten(1)))
        return torch.tanh(self.value(hidden)).squeeze(1)


class ValueFromBoards(nn.Module):
    """The network's value as a module for `models.torch_evaluator.TorchEvaluator`: from two int64 tensors of boards."""

    def __init__(self, net: PolicyValueNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return values between -1 and 1 for the side to move."""
        return self.net.values(*net_inputs(own, opp, self.net.size))


def net_inputs(own: Tensor, opp: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return discs and action masks, int8, as `PolicyValueNet` takes them, from int64 tensors of boards."""
    legal = legal_moves(own, opp, Rules(size).playable)
    mask = torch.cat([board_planes(legal, size).flatten(1), (legal == 0).unsqueeze(1)], dim=1)
    return board_planes(torch.stack([own, opp], dim=1), size).to(torch.int8), mask.to(torch.int8)


def mask_illegal(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the logits of legal actions, and `ILLEGAL_LOGIT` for the others."""
    return logits.masked_fill(mask == 0, ILLEGAL_LOGIT)


def frozen_copy(net: PolicyValueNet) -> PolicyValueNet:
    """Return a copy without gradients, on the same device.

    A new network would draw its initial weights from torch's global generator, from which stable-baselines3 samples actions.
    """
    return deepcopy(net).eval().requires_grad_(False)


def symmetry_actions(rules: Rules) -> np.ndarray:
    """Return ``(8, squares + 1)``: under each symmetry, the action of the real board for every action that is shown."""
    return action_images(rules.size)[SYMMETRY_ORDER]


def transformed(discs: Tensor, mask: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Return discs and masks under one row of `symmetry_actions`, or under one row for each position."""
    actions = actions.expand(mask.shape)
    squares = actions[:, None, :-1].expand(-1, 2, -1)
    return discs.flatten(2).gather(2, squares).view(discs.shape), mask.gather(1, actions)


def action_logits(net: PolicyValueNet, discs: Tensor, mask: Tensor, *, symmetric: bool = False) -> Tensor:
    """Return the logits of all actions, `ILLEGAL_LOGIT` for illegal ones.

    *symmetric*: the mean of the log-probabilities under the eight symmetries, about fifty Elo stronger.
    """
    if not symmetric:
        return mask_illegal(net(discs, mask)[0], mask)
    total = torch.zeros(mask.shape, device=discs.device)
    for actions in torch.from_numpy(symmetry_actions(Rules(net.size))).to(discs.device):
        image, legal = transformed(discs, mask, actions)
        total[:, actions] += torch.log_softmax(mask_illegal(net(image, legal)[0], legal), 1)
    return mask_illegal(total / 8, mask)


def policy_logits(net: PolicyValueNet, own: Boards, opp: Boards, *, symmetric: bool = False) -> NDArray[np.float64]:
    """Return the `action_logits` of arrays of boards, ``(n, squares + 1)``."""
    parts = []
    for start in range(0, len(own), BATCH):
        rows = slice(start, start + BATCH)
        with torch.inference_mode():
            logits = action_logits(net, *net.inputs(own[rows], opp[rows]), symmetric=symmetric)
        parts.append(logits.to("cpu", torch.float64).numpy())
    return np.concatenate(parts)
