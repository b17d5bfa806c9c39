"""`InferenceNetwork`: fast inference of a residual network; functions compiled by torch, and CUDA graphs, with fallbacks."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.kernels.tree import fill_planes
from models.residual.net import INPUT_PLANES, PolicyValueFunction, ResidualBlock, ResidualNet
from reversi_env.errors import extra_libraries

with extra_libraries():
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

#: Positions in one forward pass; on a GPU always that many, since the compiled function has one shape.
CHUNK = {"cuda": 1 << 16, "cpu": 1 << 12}
#: Positions in one forward pass of a search of one game.
SINGLE_BATCH = 16
#: Channels from which on bfloat16 is faster than float32 on a CPU that has instructions for it (docs/lab/alphazero.md).
MIN_BFLOAT16_CHANNELS = 64
#: Runs before a CUDA graph is recorded, in which functions are compiled and libraries choose their kernels.
WARM_UPS = 2


class InferenceNetwork:
    """A copy of a network on *device*, by default the network's; on a GPU in bfloat16, compiled and fused."""

    def __init__(self, net: ResidualNet, device: str | torch.device | None = None) -> None:
        self.device = next(net.parameters()).device if device is None else torch.device(device)
        self._is_gpu = self.device.type == "cuda"
        dtype = torch.bfloat16 if self._is_gpu else torch.float32
        self._net = copy.deepcopy(net).requires_grad_(False).to(self.device, dtype)
        self._forward = fused_network(self._net) if self._is_gpu else self._net

    def load_weights(self, net: ResidualNet) -> None:
        with torch.no_grad():
            for mine, theirs in zip(self._net.parameters(), net.parameters(), strict=True):
                mine.copy_(theirs)

    def values(self, own: Tensor, opp: Tensor) -> Tensor:
        """Return values in discs for the side to move; boards are int64, on the network's device."""
        values, size = torch.empty(own.shape, device=self.device), CHUNK[self.device.type]
        for start in range(0, len(own), size):
            boards = [side[start : start + size] for side in (own, opp)]
            count = len(boards[0])
            if self._is_gpu:
                boards = [functional.pad(side, (0, size - count)) for side in boards]
            values[start : start + count] = self.logits_and_values(*boards)[1][:count]
        return values

    def logits_and_values(self, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Return policy logits of all squares, legal or not, and values, in one forward pass."""
        with torch.no_grad():
            logits, values = self._forward(own, opp)
        return logits, values


class HostNetwork:
    """A copy of a network on *device* for searches of one game: from boards in numpy arrays to outputs in numpy arrays.

    The host makes the input planes. On a GPU every batch is padded to `SINGLE_BATCH` positions, and the forward pass is a
    CUDA graph without functions that torch would have to compile.
    """

    def __init__(self, net: ResidualNet, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        self._is_gpu = self.device.type == "cuda"
        is_wide = net.channels >= MIN_BFLOAT16_CHANNELS and _cpu_has_bfloat16()
        self._dtype = torch.bfloat16 if self._is_gpu or is_wide else torch.float32
        self._net = copy.deepcopy(net).requires_grad_(False).to(self.device, self._dtype)
        self._blocks: Callable[[Tensor], Tensor] = self._net.blocks
        self._forward: Callable[[Tensor], tuple[Tensor, ...]] = self._outputs
        if self._is_gpu:
            self._blocks = WithFallback("fuse", lambda maps: fused_blocks(self._net.blocks, maps), self._net.blocks)
            self._forward = CudaGraphed(self._outputs)

    def __call__(self, own: NDArray[np.uint64], opp: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return logits of all squares, legal or not, and last the value in discs, ``(n, squares + 1)``."""
        starts = range(0, len(own), SINGLE_BATCH)
        batches = [(own[start : start + SINGLE_BATCH], opp[start : start + SINGLE_BATCH]) for start in starts]
        return np.concatenate([self._batch_outputs(*boards) for boards in batches])

    def _batch_outputs(self, own: NDArray[np.uint64], opp: NDArray[np.uint64]) -> NDArray[np.float32]:
        size, count = self._net.size, len(own)
        planes = np.zeros((SINGLE_BATCH if self._is_gpu else count, size * size, INPUT_PLANES), np.float32)
        fill_planes(own, opp, np.uint64(self._net.playable), planes)
        maps = torch.from_numpy(planes).to(self.device, self._dtype).unflatten(1, (size, size)).permute(0, 3, 1, 2)
        with torch.no_grad():
            outputs: NDArray[np.float32] = self._forward(maps)[0][:count].cpu().numpy()
        return outputs

    def _outputs(self, planes: Tensor) -> tuple[Tensor]:
        logits, values = self._net.heads(self._blocks(torch.relu(self._net.entry(planes))))
        return (torch.cat([logits, values[:, None]], 1),)


def _cpu_has_bfloat16() -> bool:
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # older versions of torch have none
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def fused_network(net: ResidualNet) -> PolicyValueFunction:
    """Return the network for a GPU: torch compiles stem and heads, cuDNN has fused kernels for the blocks.

    A block compiled by torch would write a convolution's output to memory, and read it again for the addition and the ReLU.
    """
    stem, heads = TorchCompiled(net.stem), TorchCompiled(net.heads)
    blocks = WithFallback("fuse", lambda maps: fused_blocks(net.blocks, maps), TorchCompiled(net.blocks))

    def logits_and_values(own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        logits, values = heads(blocks(stem(own, opp)))
        return logits, values

    return logits_and_values


def fused_blocks(blocks: nn.Sequential, maps: Tensor) -> Tensor:
    """Return the output of the blocks on a GPU: convolution, addition and ReLU are one kernel.

    The first convolution of a block adds the block's input times 0. `cudnn_convolution_relu` would add uninitialised memory times
    0, which may be NaN.
    """

    def convolve(maps: Tensor, conv: nn.Conv2d, added: Tensor, factor: float) -> Tensor:
        return torch.ops.aten.cudnn_convolution_add_relu(
            maps, conv.weight, added, factor, conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups
        )

    for block in blocks:
        assert isinstance(block, ResidualBlock)
        maps = convolve(convolve(maps, block.first, maps, 0.0), block.second, maps, 1.0)
    return maps


class WithFallback:
    """Calls *fast*; after its first *failure*, which is reported with the name of the *operation*, always *plain*."""

    def __init__(
        self,
        operation: str,
        fast: Callable[..., Any],
        plain: Callable[..., Any],
        failure: type[Exception] = RuntimeError,
    ) -> None:
        self._operation, self._fast, self._plain, self._failure = operation, fast, plain, failure

    def __call__(self, *args: Any) -> Any:
        try:
            return self._fast(*args)
        except self._failure as error:
            _warn_fallback(self._operation, self._plain, error)
            self._fast = self._plain
            return self._plain(*args)


class TorchCompiled(WithFallback):
    """A function compiled by torch for each shape of its arguments; the function itself if it cannot be compiled.

    *deterministic*: no kernel is chosen by timing, which would change the last digits of sums from run to run.
    """

    def __init__(self, function: Callable[..., Any], *, deterministic: bool = False) -> None:
        try:
            fast = torch.compile(function, dynamic=False, options={"deterministic": True} if deterministic else None)
        except RuntimeError:  # older versions of torch have no such option
            fast = torch.compile(function, dynamic=False)
        super().__init__("compile", fast, function)


class CudaGraphed:
    """A function of GPU tensors, recorded as a CUDA graph for each of their shapes; the plain function if recording fails.

    The function does not wait for the device and returns a tuple of tensors; an argument may be None.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._plain, self._failed = function, False
        self._graphs: dict[Any, _Graph] = {}

    def __call__(self, *args: Tensor | None) -> tuple[Tensor, ...]:
        """Return the function's result as new tensors."""
        key = tuple(None if one is None else (one.shape, one.dtype, one.device) for one in args)
        if not self._failed and key not in self._graphs:
            try:
                self._graphs[key] = _Graph(self._plain, args)
            except RuntimeError as error:
                _warn_fallback("record", self._plain, error)
                self._failed = True
                self._graphs.clear()
        return tuple(self._plain(*args)) if self._failed else self._graphs[key](*args)


class _Graph:
    def __init__(self, function: Callable[..., Any], args: tuple[Tensor | None, ...]) -> None:
        self._args = tuple(None if one is None else one.clone() for one in args)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                function(*self._args)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):  # other threads may use the GPU
            self._result = function(*self._args)

    def __call__(self, *args: Tensor | None) -> tuple[Tensor, ...]:
        for mine, theirs in zip(self._args, args, strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs)
        self._graph.replay()
        return tuple(tensor.clone() for tensor in self._result)


def _warn_fallback(operation: str, function: Callable[..., Any], error: Exception) -> None:
    name, reason = getattr(function, "__name__", type(function).__name__), " ".join(str(error).split())[:300]
    warnings.warn(f"torch cannot {operation} {name}, which is therefore slow: {reason}", RuntimeWarning, stacklevel=3)
