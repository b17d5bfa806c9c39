"""`Player`: what a residual network says of many positions, as fast as the device has it."""

from __future__ import annotations

import copy

from models.compiling import Compiled
from models.residual import ResidualNet
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor
    from torch.nn import functional

#: Positions that go through the network at once: on a GPU always so many, since what is compiled there has one shape.
CHUNK = {"cuda": 1 << 16, "cpu": 1 << 12}


class Player:
    """A copy of a network, on its *device* or another one; in bfloat16 and compiled where that is a GPU."""

    def __init__(self, net: ResidualNet, device: str | torch.device | None = None) -> None:
        self.device = next(net.parameters()).device if device is None else torch.device(device)
        self._is_gpu = self.device.type == "cuda"
        kind = torch.bfloat16 if self._is_gpu else torch.float32
        self._net = copy.deepcopy(net).requires_grad_(False).to(self.device, kind)
        self._value = Compiled(self._value_of) if self._is_gpu else self._value_of
        self._both = Compiled(self._net) if self._is_gpu else self._net

    def put(self, net: ResidualNet) -> None:
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
            with torch.no_grad():
                found[start : start + count] = self._value(*boards)[:count]
        return found

    def answers(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of all squares, legal or not, and values: those of a tree search (`models.tree_search`), all at once."""
        with torch.no_grad():
            numbers, values = self._both(own, opp)
        return numbers, values

    def _value_of(self, own: Tensor, opp: Tensor) -> Tensor:
        return self._net(own, opp)[1]
