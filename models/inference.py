"""`InferenceNetwork`: what a residual network says of many positions, as fast as the device has it."""

from __future__ import annotations

import copy

from models.compiling import TorchCompiled, WithFallback
from models.residual import PolicyValueFunction, ResidualBlock, ResidualNet
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: Positions that go through the network at once: on a GPU always so many, since what is compiled there has one shape.
CHUNK = {"cuda": 1 << 16, "cpu": 1 << 12}


class InferenceNetwork:
    """A copy of a network, on its *device* or another one; in bfloat16, compiled and fused where that is a GPU."""

    def __init__(self, net: ResidualNet, device: str | torch.device | None = None) -> None:
        self.device = next(net.parameters()).device if device is None else torch.device(device)
        self._is_gpu = self.device.type == "cuda"
        kind = torch.bfloat16 if self._is_gpu else torch.float32
        self._net = copy.deepcopy(net).requires_grad_(False).to(self.device, kind)
        self._said = fused_network(self._net) if self._is_gpu else self._net

    def load_weights(self, net: ResidualNet) -> None:
        """Take the weights of *net*."""
        with torch.no_grad():
            for mine, theirs in zip(self._net.parameters(), net.parameters(), strict=True):
                mine.copy_(theirs)

    def values(self, own: Tensor, opp: Tensor) -> Tensor:
        """Values in discs for the side to move; boards are int64, on the network's device."""
        found, size = torch.empty(own.shape, device=self.device), CHUNK[self.device.type]
        for start in range(0, len(own), size):
            boards = [side[start : start + size] for side in (own, opp)]
            count = len(boards[0])
            if self._is_gpu:
                boards = [functional.pad(side, (0, size - count)) for side in boards]
            found[start : start + count] = self.logits_and_values(*boards)[1][:count]
        return found

    def logits_and_values(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of all squares, legal or not, and values: those of a tree search (`models.tree_search`), all at once."""
        with torch.no_grad():
            numbers, values = self._said(own, opp)
        return numbers, values


def fused_network(net: ResidualNet) -> PolicyValueFunction:
    """The network of a GPU: torch compiles what is before and after its blocks, cuDNN has the kernels of these.

    A compiled block writes what a convolution gives to memory, and reads it again to add to it and cut it at 0.
    """
    stem, heads = TorchCompiled(net.stem), TorchCompiled(net.heads)
    blocks = WithFallback("fuse", lambda maps: fused_blocks(net.blocks, maps), TorchCompiled(net.blocks))

    def logits_and_values(own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        numbers, values = heads(blocks(stem(own, opp)))
        return numbers, values

    return logits_and_values


def fused_blocks(blocks: nn.Sequential, maps: Tensor) -> Tensor:
    """What the blocks make of maps on a GPU: a convolution, what is added to it and the cut at 0 are one kernel.

    To the first one of a block nothing is added: its maps, times 0. (`cudnn_convolution_relu` takes memory that nobody has written
    for that, and 0 times not-a-number is not 0.)
    """

    def convolved(maps: Tensor, by: nn.Conv2d, added: Tensor, share: float) -> Tensor:
        how = (by.stride, by.padding, by.dilation, by.groups)
        return torch.ops.aten.cudnn_convolution_add_relu(maps, by.weight, added, share, by.bias, *how)

    for block in blocks:
        assert isinstance(block, ResidualBlock)
        maps = convolved(convolved(maps, block.first, maps, 0.0), block.second, maps, 1.0)
    return maps
