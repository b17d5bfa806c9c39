"""Checkpoints of a torch training: named parts of arrays and JSON values, in one file of `train.jobs.logs.save_state`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import extra_libraries
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


def network_state(net: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, State]:
    """Return two parts of a checkpoint: the weights, and the optimiser's state of each parameter."""
    names = _parameter_names(net, optimiser)
    moments = {
        f"{names[index]}/{key}": value
        for index, state in optimiser.state_dict()["state"].items()
        for key, value in state.items()
    }
    parts = {"net": net.state_dict(), "adam": moments}
    return {part: {name: value.detach().cpu().numpy() for name, value in of.items()} for part, of in parts.items()}


def restore_network(parts: Mapping[str, State], net: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    net.load_state_dict({name: torch.from_numpy(array) for name, array in parts["net"].items()})
    parameters = dict(net.named_parameters())
    indices = {name: index for index, name in enumerate(_parameter_names(net, optimiser))}
    moments: dict[int, State] = {}
    for name, array in parts.get("adam", {}).items():
        parameter, _, key = name.rpartition("/")
        value, own = torch.from_numpy(array), parameters[parameter].detach()
        if value.shape == own.shape:  # fused steps require the strides of the parameter
            value = torch.empty_like(own).copy_(value)
        moments.setdefault(indices[parameter], {})[key] = value
    optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})


def _parameter_names(net: nn.Module, optimiser: torch.optim.Optimizer) -> list[str]:
    """Return the names of the parameters in the order of the optimiser's groups."""
    names = {parameter: name for name, parameter in net.named_parameters()}
    return [names[parameter] for group in optimiser.param_groups for parameter in group["params"]]
