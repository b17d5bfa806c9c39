"""`ResidualNet`: a residual network over the board, with a value in discs and a policy logit for every square.

It sees more than patterns do, and takes thousands of times as long as a compiled network on a CPU. A GPU values a million positions
with it in a second: `train.alphazero` trains it by self-play, and `reversi label` labels positions with its values.

>>> from models.bitboards import board_tensor
>>> from reversi_env import batch
>>> net = ResidualNet(6, channels=8, blocks=1)
>>> numbers, values = net(*(board_tensor(side) for side in batch.start(2, Rules(6))))
>>> tuple(numbers.shape), tuple(values.shape)
((2, 36), (2,))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.bitboards import bit_counts, board_planes, legal_moves, transformed
from models.files import WeightsError, file_content, named_by_hash, read_file
from reversi_env import ReversiError, Rules
from reversi_env.batch import action_images
from reversi_env.errors import extra_libraries, quoted
from reversi_env.kernels.symmetry import INVERSE_SYMMETRY

with extra_libraries():
    import torch
    from torch import Tensor, nn

#: Numbers of all squares, ``(n, squares)``, and values in discs for the side to move, from boards of int64.
PolicyValueFunction = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
ARCHITECTURE = "residual"
#: Own discs, the opponent's, the squares where each may play, ones, which tell the board from what is around it, and ones or zeros:
#: whether the number of empty squares is odd. Who moves last is worth discs, and convolutions cannot count.
INPUT_PLANES = 6
#: Maps between the trunk and each head, and units of the value's layer after them.
HEAD_MAPS, VALUE_UNITS = 32, 256
#: Discs that 1 stands for in the value's last layer.
VALUE_DISCS = 16.0
#: Weights of a file at most: no header makes a process ask for more memory.
MAX_CHANNELS, MAX_BLOCKS = 512, 64


class ResidualBlock(nn.Module):
    """Two convolutions and a way around them.

    With *zero_init* there is nothing but that way at the beginning, so that a deep network learns as soon as a shallow one.
    """

    def __init__(self, channels: int, *, zero_init: bool = False) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        if not zero_init:
            return
        nn.init.kaiming_normal_(self.first.weight)
        for zero in (self.first.bias, self.second.weight, self.second.bias):
            assert zero is not None
            nn.init.zeros_(zero)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of the same shape."""
        return torch.relu(maps + self.second(torch.relu(self.first(maps))))


class ResidualNet(nn.Module):
    """A network for one board size; the variant of the game is in its weights."""

    def __init__(self, size: int, *, channels: int = 128, blocks: int = 8) -> None:
        super().__init__()
        self.size, self.channels, self.playable = size, channels, Rules(size).playable
        self.entry = nn.Conv2d(INPUT_PLANES, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels, zero_init=True) for _ in range(blocks)))
        self.policy_maps = nn.Conv2d(channels, HEAD_MAPS, 1)
        self.policy = nn.Conv2d(HEAD_MAPS, 1, 3, padding=1)
        self.value_maps = nn.Conv2d(channels, HEAD_MAPS, 1)
        self.value_units = nn.Linear(HEAD_MAPS * size * size, VALUE_UNITS)
        self.value = nn.Linear(VALUE_UNITS, 1)
        nn.init.zeros_(self.value.weight)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the convolutions are faster so

    def forward(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of all squares, ``(n, size²)``, legal or not, and values in discs for the side to move; boards are int64."""
        return self.heads(self.blocks(self.stem(own, opp)))

    def stem(self, own: Tensor, opp: Tensor) -> Tensor:
        """The maps that the blocks begin with, of boards."""
        sides = [own, opp, legal_moves(own, opp, self.playable), legal_moves(opp, own, self.playable)]
        sides += [torch.full_like(own, -1), -(bit_counts(own | opp) & 1)]  # boards have an even number of squares
        planes = board_planes(torch.stack(sides, dim=1), self.size)
        return torch.relu(self.entry(planes.to(self.entry.weight.dtype, memory_format=torch.channels_last)))

    def heads(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """What `forward` gives, of the maps that the blocks end with."""
        logits = self.policy(torch.relu(self.policy_maps(maps))).flatten(1)
        units = torch.relu(self.value_units(torch.relu(self.value_maps(maps)).flatten(1)))
        return logits.float(), VALUE_DISCS * self.value(units).squeeze(1).float()

    def symmetric_values(self, own: Tensor, opp: Tensor) -> Tensor:
        """The mean of the values of a position's eight images: what is noise in one is less in all."""
        total = torch.zeros(own.shape, device=own.device)
        for symmetry in range(8):
            image = torch.full_like(own, symmetry)
            total += self(transformed(own, image), transformed(opp, image))[1]
        return total / 8


class ValueFromBoards(nn.Module):
    """The network's value alone, from two int64 tensors of boards: what `models.torch_evaluator.TorchEvaluator` takes."""

    def __init__(self, net: ResidualNet, *, symmetric: bool = False) -> None:
        super().__init__()
        self.net, self.symmetric = net, symmetric

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs for the side to move."""
        return self.net.symmetric_values(own, opp) if self.symmetric else self.net(own, opp)[1]


def square_images(rules: Rules) -> Tensor:
    """``(8, squares)``: the square whose image under each symmetry (`models.bitboards.turned`) is that square."""
    return torch.from_numpy(action_images(rules.size)[INVERSE_SYMMETRY, :-1])


def symmetrised(network: PolicyValueFunction, rules: Rules) -> PolicyValueFunction:
    """Another network: its numbers of squares and its values are the mean over the eight images of a position."""

    def symmetric_logits_and_values(own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        images, count = square_images(rules).to(own.device), len(own)
        turns = torch.arange(8, device=own.device).repeat_interleave(count)
        logits, values = network(*(transformed(side.repeat(8), turns) for side in (own, opp)))
        back = torch.zeros_like(logits).scatter_(1, images[turns], logits)
        return back.unflatten(0, (8, count)).mean(0), values.unflatten(0, (8, count)).mean(0)

    return symmetric_logits_and_values


def best_policy_actions(network: PolicyValueFunction, own: Tensor, opp: Tensor, rules: Rules) -> Tensor:
    """The legal move with the highest number in each position; the first square where there is none."""
    legal = board_planes(legal_moves(own, opp, rules.playable), rules.size).flatten(1) > 0
    return torch.where(legal, network(own, opp)[0], -torch.inf).argmax(1)


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedResidual:
    """A network with its game; ``record``: what is known about its training, as JSON has it."""

    rules: Rules
    net: ResidualNet
    record: dict[str, Any]

    def to_bytes(self) -> bytes:
        """The content of its file, in half precision."""
        state = self.net.state_dict()
        tensors = {name: tensor.detach().cpu().contiguous().to(torch.float16).numpy() for name, tensor in state.items()}
        if not all(np.isfinite(array).all() for array in tensors.values()):
            raise WeightsError("weights beyond half precision: expected a training that has not diverged")
        shape = {"channels": self.net.channels, "blocks": len(self.net.blocks), "planes": INPUT_PLANES}
        game = {"size": self.rules.size, "variant": self.rules.variant}
        return file_content(tensors, {"architecture": ARCHITECTURE, **game, **shape, "record": self.record})

    def file_name(self, data: bytes) -> str:
        """The name of the file with that content."""
        return named_by_hash(f"zero-{self.rules.size}x{self.rules.size}-{self.rules.variant}", data)


def read_residual(path: Path) -> SavedResidual:
    """The network in a file, in single precision, checked against the hashes that there are."""
    header, tensors = read_file(path)
    if header["architecture"] != ARCHITECTURE:
        raise WeightsError(
            f"weight file {str(path)!r} of architecture {quoted(header['architecture'])}: expected {ARCHITECTURE}"
        )
    try:
        rules = Rules(header["size"], header["variant"])
        channels, blocks = header["channels"], header["blocks"]
        if not (_within(channels, MAX_CHANNELS) and _within(blocks, MAX_BLOCKS)):
            raise WeightsError(
                f"{quoted(channels)} channels in {quoted(blocks)} blocks: expected 1 to {MAX_CHANNELS} in 1 to {MAX_BLOCKS}"
            )
        net = ResidualNet(rules.size, channels=channels, blocks=blocks)
        if not all(np.isfinite(array).all() for array in tensors.values()):
            raise WeightsError("infinities or not-a-number among its weights: expected finite ones")
        net.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()})
    except (ReversiError, RuntimeError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weight file {str(path)!r}: {reason}") from None
    return SavedResidual(rules, net.eval(), header["record"])


def _within(number: Any, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= most
