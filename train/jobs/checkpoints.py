"""Checkpoints of a torch training: named parts of arrays and JSON values, in one file of `train.jobs.logs.save_state`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError, extra_libraries
from train.jobs.logs import load_state, save_state

with extra_libraries():
    import torch
    from torch import nn

State = dict[str, Any]


def save_checkpoint(path: Path, parts: Mapping[str, State]) -> None:
    arrays: State = {}
    header: dict[str, State] = {}
    for part, state in parts.items():
        arrays |= {f"{part}/{name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
        header[part] = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    save_state(path, arrays, header)


def load_checkpoint(path: Path) -> dict[str, State] | None:
    """Return the parts of `save_checkpoint`, None if there is no file; a corrupted file raises a `TrainError`."""
    state = load_state(path)
    if state is None:
        return None
    parts, arrays = state
    for name, array in arrays.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = array.copy()  # the arrays of a file are read-only
    return parts


@contextmanager
def restoring(path: Path) -> Iterator[None]:
    """Raise a `TrainError` if the checkpoint *path* was written by another version."""
    try:
        yield
    except (torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise TrainError(
            f"{str(path)!r} cannot be resumed ({reason}): expected a run of this version; start again in another folder"
        ) from error


def network_state(net: nn.Module, *optimisers: torch.optim.Optimizer) -> dict[str, State]:
    """Return two parts of a checkpoint: the weights, and the optimisers' state of each parameter."""
    moments: State = {}
    for optimiser in optimisers:
        states = optimiser.state_dict()["state"]
        for name, index in _parameter_indices(net, optimiser).items():
            moments |= {f"{name}/{key}": value for key, value in states.get(index, {}).items()}
    parts = {"net": net.state_dict(), "optimiser": moments}
    return {part: {name: value.detach().cpu().numpy() for name, value in of.items()} for part, of in parts.items()}


def restore_network(parts: Mapping[str, State], net: nn.Module, *optimisers: torch.optim.Optimizer) -> None:
    net.load_state_dict({name: torch.from_numpy(array) for name, array in parts["net"].items()})
    parameters = dict(net.named_parameters())
    for optimiser in optimisers:
        indices, moments = _parameter_indices(net, optimiser), dict[int, State]()
        for name, array in parts["optimiser"].items():
            parameter, _, key = name.rpartition("/")
            if parameter in indices:
                value, own = torch.from_numpy(array), parameters[parameter].detach()
                if value.shape == own.shape:  # fused steps require the strides of the parameter
                    value = torch.empty_like(own).copy_(value)
                moments.setdefault(indices[parameter], {})[key] = value
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})


def _parameter_indices(net: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, int]:
    """Return the place of each parameter, by name, in the optimiser's groups."""
    names = {parameter: name for name, parameter in net.named_parameters()}
    order = (parameter for group in optimiser.param_groups for parameter in group["params"])
    return {names[parameter]: index for index, parameter in enumerate(order)}
