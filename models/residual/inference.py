"""`InferenceNetwork`: what a residual network says of many positions, as fast as the device has it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from models.residual.net import PolicyValueFunction, ResidualBlock, ResidualNet
from reversi_env.errors import extra_libraries

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
        """Numbers of all squares, legal or not, and values: those of a tree search (`models.mcts.search`), all at once."""
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


# --- compiled functions and CUDA graphs ------------------------------------------------------------


with extra_libraries():
    import torch
    from torch import Tensor

#: Runs before a recording: they compile, and let the libraries choose.
WARM_UPS = 2


class WithFallback:
    """The *fast* form of a function, made by *operation* something; its *plain* form from the first *failure* on."""

    def __init__(
        self,
        operation: str,
        fast: Callable[..., Any],
        plain: Callable[..., Any],
        failure: type[Exception] = RuntimeError,
    ) -> None:
        self._doing, self._fast, self._plain, self._failure = operation, fast, plain, failure

    def __call__(self, *args: Any) -> Any:
        """What the function returns."""
        try:
            return self._fast(*args)
        except self._failure as error:
            _tell(self._doing, self._plain, error)
            self._fast = self._plain
            return self._plain(*args)


class TorchCompiled(WithFallback):
    """A function compiled by torch for each shape that it meets; the function itself from the first failure to compile on.

    *deterministic*: nothing is chosen by a stopwatch, which would change the last digits of sums from run to run.
    """

    def __init__(self, function: Callable[..., Any], *, deterministic: bool = False) -> None:
        from torch._dynamo.exc import TorchDynamoException

        how: Any = (
            {"deterministic": True} if deterministic and "deterministic" in torch._inductor.list_options() else None
        )
        fast = torch.compile(function, dynamic=False, options=how)
        super().__init__("compile", fast, function, TorchDynamoException)


class CudaGraphed:
    """A function of tensors on a GPU as a CUDA graph for each of their shapes: what costs time is then on the GPU alone.

    It waits for nothing and gives a tuple of tensors; an argument may be None. From the first failure to record on it is called
    itself.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._plain, self._failed = function, False
        self._graphs: dict[Any, _Graph] = {}

    def __call__(self, *args: Tensor | None) -> tuple[Tensor, ...]:
        """What the function returns, in memory of its own."""
        if self._failed:
            return tuple(self._plain(*args))
        key = tuple(None if one is None else (one.shape, one.dtype, one.device) for one in args)
        if key not in self._graphs:
            try:
                self._graphs[key] = _Graph(self._plain, args)
            except RuntimeError as error:
                _tell("record", self._plain, error)
                self._failed = True
                self._graphs.clear()
                return tuple(self._plain(*args))
        return self._graphs[key](*args)


class _Graph:
    def __init__(self, function: Callable[..., Any], args: tuple[Tensor | None, ...]) -> None:
        self._given = tuple(None if one is None else one.clone() for one in args)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                function(*self._given)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):  # other threads may do as they like
            self._found = function(*self._given)

    def __call__(self, *args: Tensor | None) -> tuple[Tensor, ...]:
        for mine, theirs in zip(self._given, args, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
        self._graph.replay()
        return tuple(tensor.clone() for tensor in self._found)


def _tell(operation: str, function: Callable[..., Any], error: Exception) -> None:
    name, reason = getattr(function, "__name__", type(function).__name__), " ".join(str(error).split())[:300]
    warnings.warn(f"torch cannot {operation} {name}, which is slower without: {reason}", RuntimeWarning, stacklevel=3)
