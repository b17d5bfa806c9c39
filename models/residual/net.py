"""`ResidualNet`: a residual network over the board, with a value in discs and a policy logit for every square; `PolicyNet` for PPO.

On a CPU it takes thousands of times as long as a compiled pattern network; a GPU evaluates a million positions per second with it.
`train.alphazero` trains it by self-play, and `reversi label` labels positions with its values.

>>> from models.bitboards import board_tensor
>>> from reversi_env import batch
>>> net = ResidualNet(6, channels=8, blocks=1)
>>> logits, values = net(*(board_tensor(side) for side in batch.start(2, Rules(6))))
>>> tuple(logits.shape), tuple(values.shape)
((2, 36), (2,))
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

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
    from torch.nn import functional

#: Policy logits of all squares, ``(n, squares)``, and values in discs for the side to move, from int64 boards.
PolicyValueFunction = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
#: Own discs, the opponent's, the legal squares of both sides, ones, which distinguish the board from the padding, and the parity of
#: the number of empty squares: to move last is an advantage, and convolutions cannot count.
INPUT_PLANES = 6
#: Logit of an illegal action: finite, so that 0 times it is 0, and negligible in any softmax.
ILLEGAL_LOGIT = -1e9
#: Discs for an output of 1 of the value's last layer.
VALUE_SCALE = 16.0
#: Maxima for files, so that no header makes a process allocate too much memory.
MAX_CHANNELS, MAX_BLOCKS = 512, 64


class ResidualBlock(nn.Module):
    """Two convolutions with a residual connection; with *zero_init* the block begins as the identity."""

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
        return torch.relu(maps + self.second(torch.relu(self.first(maps))))


class ResidualNet(nn.Module):
    """A network for one board size; the variant of the game is in its weights."""

    #: The name in files, channels between the trunk and each head, and units of the value's hidden layer.
    architecture: ClassVar[str] = "residual"
    head_channels, value_hidden_units = 32, 256

    def __init__(self, size: int, *, channels: int = 128, blocks: int = 8) -> None:
        super().__init__()
        self.size, self.channels, self.playable = size, channels, Rules(size).playable
        self.entry = nn.Conv2d(INPUT_PLANES, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(ResidualBlock(channels, zero_init=True) for _ in range(blocks)))
        self.policy_maps = nn.Conv2d(channels, self.head_channels, 1)
        self.policy: nn.Module = nn.Conv2d(self.head_channels, 1, 3, padding=1)
        self.value_maps = nn.Conv2d(channels, self.head_channels, 1)
        self.value_units = nn.Linear(self.head_channels * size * size, self.value_hidden_units)
        self.value = nn.Linear(self.value_hidden_units, 1)
        nn.init.zeros_(self.value.weight)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster convolutions

    def forward(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of all squares, ``(n, size²)``, legal or not, and values in discs. Boards are int64."""
        return self.heads(self.blocks(self.stem(own, opp)))

    def stem(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return the input maps of the blocks for boards."""
        sides = [own, opp, legal_moves(own, opp, self.playable), legal_moves(opp, own, self.playable)]
        sides += [torch.full_like(own, -1), -(bit_counts(own | opp) & 1)]  # boards have an even number of squares
        planes = board_planes(torch.stack(sides, dim=1), self.size)
        return torch.relu(self.entry(planes.to(self.entry.weight.dtype, memory_format=torch.channels_last)))

    def heads(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return the results of `forward` for the output maps of the blocks."""
        logits = self.policy(torch.relu(self.policy_maps(maps))).flatten(1)
        units = torch.relu(self.value_units(torch.relu(self.value_maps(maps)).flatten(1)))
        return logits.float(), self.in_discs(self.value(units).squeeze(1).float())

    def in_discs(self, values: Tensor) -> Tensor:
        return VALUE_SCALE * values

    def of_actions(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of all actions, ``(n, size² + 1)``, that of a pass 0, and values in shares of the number of squares."""
        logits, values = self(own, opp)
        return functional.pad(logits, (0, 1)), values / self.size**2

    def symmetric_values(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return the mean of the values of a position's eight symmetric images."""
        total = torch.zeros(own.shape, device=own.device)
        for symmetry in range(8):
            image = torch.full_like(own, symmetry)
            total += self(transformed(own, image), transformed(opp, image))[1]
        return total / 8


class PolicyNet(ResidualNet):
    """The network of PPO: smaller heads, logits that depend on the whole board, and values below the number of squares.

    With ``half_precision`` the convolutions are in bfloat16, twice as fast where the processor has instructions for it; weights,
    heads and outputs stay in single precision.
    """

    architecture = "policy"
    head_channels, value_hidden_units = 8, 64

    def __init__(self, size: int, *, channels: int = 32, blocks: int = 2) -> None:
        super().__init__(size, channels=channels, blocks=blocks)
        self.half_precision = False
        linear = nn.Linear(self.head_channels * size * size, size * size)
        nn.init.orthogonal_(linear.weight, gain=0.01)  # nearly uniform at first
        nn.init.zeros_(linear.bias)
        self.policy = nn.Sequential(nn.Flatten(), linear)

    def forward(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(own.device.type, torch.bfloat16, enabled=self.half_precision):
            maps = self.blocks(self.stem(own, opp))
        return self.heads(maps.to(self.value.weight.dtype))

    def in_discs(self, values: Tensor) -> Tensor:
        return self.size**2 * torch.tanh(values)


class ValueFromBoards(nn.Module):
    """The network's value as a module for `models.torch_evaluator.TorchEvaluator`: from two int64 tensors of boards."""

    def __init__(self, net: ResidualNet, *, symmetric: bool = False) -> None:
        super().__init__()
        self.net, self.symmetric = net, symmetric

    def forward(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return values in discs for the side to move."""
        return self.net.symmetric_values(own, opp) if self.symmetric else self.net(own, opp)[1]


def mask_illegal(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the logits of legal actions, and `ILLEGAL_LOGIT` for the others."""
    return logits.masked_fill(mask == 0, ILLEGAL_LOGIT)


def square_images(rules: Rules) -> Tensor:
    """Return ``(8, squares)``: the square whose image under each symmetry (`models.bitboards.transformed`) is that square."""
    return torch.from_numpy(action_images(rules.size)[INVERSE_SYMMETRY, :-1])


def symmetrised(network: PolicyValueFunction, rules: Rules) -> PolicyValueFunction:
    """Return a network whose logits and values are the means over the eight symmetric images of a position."""

    def symmetric_logits_and_values(own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        images, count = square_images(rules).to(own.device), len(own)
        symmetries = torch.arange(8, device=own.device).repeat_interleave(count)
        logits, values = network(*(transformed(side.repeat(8), symmetries) for side in (own, opp)))
        back = torch.zeros_like(logits).scatter_(1, images[symmetries], logits)
        return back.unflatten(0, (8, count)).mean(0), values.unflatten(0, (8, count)).mean(0)

    return symmetric_logits_and_values


def best_policy_actions(network: PolicyValueFunction, own: Tensor, opp: Tensor, rules: Rules) -> Tensor:
    """Return the legal square with the highest logit in each position; the first square if there is none."""
    legal = board_planes(legal_moves(own, opp, rules.playable), rules.size).flatten(1) > 0
    return torch.where(legal, network(own, opp)[0], -torch.inf).argmax(1)


@dataclass(frozen=True)
class SavedResidual:
    """A network with its game; ``record``: the JSON record of its training."""

    rules: Rules
    net: ResidualNet
    record: dict[str, Any]

    def to_bytes(self) -> bytes:
        state = self.net.state_dict()
        tensors = {name: tensor.detach().cpu().contiguous().to(torch.float16).numpy() for name, tensor in state.items()}
        if not all(np.isfinite(array).all() for array in tensors.values()):
            raise WeightsError("weights exceed the range of float16: the training has probably diverged")
        shape = {"channels": self.net.channels, "blocks": len(self.net.blocks), "planes": INPUT_PLANES}
        game = {"size": self.rules.size, "variant": self.rules.variant}
        header = {"architecture": self.net.architecture, **game, **shape, "record": self.record}
        return file_content(tensors, header)

    def file_name(self, data: bytes) -> str:
        return named_by_hash(f"zero-{self.rules.size}x{self.rules.size}-{self.rules.variant}", data)


def read_residual(path: Path) -> SavedResidual:
    """Return the network in a file, in single precision, after a check of the file's hashes."""
    header, tensors = read_file(path)
    kinds = {kind.architecture: kind for kind in (ResidualNet, PolicyNet)}
    kind = kinds.get(str(header["architecture"]))
    if kind is None:
        raise WeightsError(
            f"weight file {str(path)!r} of architecture {quoted(header['architecture'])}: expected {' or '.join(kinds)}"
        )
    try:
        rules = Rules(header["size"], header["variant"])
        channels, blocks = header.get("channels", 0), header.get("blocks", 0)
        if not (_within(channels, MAX_CHANNELS) and _within(blocks, MAX_BLOCKS)):
            raise WeightsError(
                f"{quoted(channels)} channels in {quoted(blocks)} blocks: expected 1 to {MAX_CHANNELS} in 1 to {MAX_BLOCKS}"
            )
        net = kind(rules.size, channels=channels, blocks=blocks)
        if not all(np.isfinite(array).all() for array in tensors.values()):
            raise WeightsError("weights contain inf or NaN: expected finite values")
        net.load_state_dict({name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()})
    except (ReversiError, RuntimeError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise WeightsError(f"weight file {str(path)!r}: {reason}") from None
    return SavedResidual(rules, net.eval(), header["record"])


def _within(value: Any, maximum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= maximum
