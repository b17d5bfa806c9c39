"""Functions of tensors made fast for a GPU, compiled by torch or recorded as CUDA graphs: plain, and said so, where that fails."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from reversi_env.extras import extra_libraries

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
