"""Where the training of a torch network is, in one file: parts, each of them arrays and what JSON can say, by name.

The file is that of `train.jobs.run.save_state`: it is whole, or it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError, extra_libraries
from train.jobs.run import load_state, save_state

with extra_libraries():
    import torch
    from torch import nn

State = dict[str, Any]


def save_checkpoint(path: Path, parts: Mapping[str, State]) -> None:
    """Write where a training is."""
    arrays: State = {}
    header: dict[str, State] = {}
    for part, state in parts.items():
        arrays |= {f"{part}/{name}": value for name, value in state.items() if isinstance(value, np.ndarray)}
        header[part] = {name: value for name, value in state.items() if not isinstance(value, np.ndarray)}
    save_state(path, arrays, header)


def load_checkpoint(path: Path) -> dict[str, State] | None:
    """The parts of `save_checkpoint`; None where there is no file, a `TrainError` if it is not as it was written."""
    found = load_state(path)
    if found is None:
        return None
    parts, arrays = found
    for name, array in arrays.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = array.copy()  # as read they cannot be written to
    return parts


def check_same_device(folder: Path, begun: str, here: str) -> None:
    """Refuse to go on on another device than that which a training was begun on."""
    if begun != here:
        raise TrainError(f"{str(folder)!r} was begun on device {begun}: expected the same, or another folder")


# --- games ----------------------------------------------------------------------------------------


def games_state(states: np.ndarray) -> State:
    """The records that an environment's `get_state` gives, a column each."""
    return {name: states[name] for name in states.dtype.names or ()}


def put_games(columns: Mapping[str, Any], states: np.ndarray) -> np.ndarray:
    """Put such columns into records; those that were not known when they were written stay as they are."""
    for name in set(states.dtype.names or ()) & columns.keys():
        states[name] = columns[name]
    return states


# --- networks -------------------------------------------------------------------------------------


def network_state(net: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, State]:
    """Two parts: the weights, and what the optimiser remembers of each parameter."""
    names = [name for name, _ in net.named_parameters()]
    memory = {
        f"{names[index]}/{key}": value
        for index, state in optimiser.state_dict()["state"].items()
        for key, value in state.items()
    }
    parts = {"net": net.state_dict(), "adam": memory}
    return {part: {name: value.detach().cpu().numpy() for name, value in of.items()} for part, of in parts.items()}


def restore_network(parts: Mapping[str, State], net: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put the weights and the optimiser's memory back."""
    net.load_state_dict({name: torch.from_numpy(array) for name, array in parts["net"].items()})
    parameters = dict(net.named_parameters())
    numbers = {name: index for index, name in enumerate(parameters)}
    memory: dict[int, State] = {}
    for name, array in parts.get("adam", {}).items():
        parameter, _, key = name.rpartition("/")
        value, own = torch.from_numpy(array), parameters[parameter].detach()
        if value.shape == own.shape:  # in the order in memory that the parameter has, or fused steps would mix them up
            value = torch.empty_like(own).copy_(value)
        memory.setdefault(numbers[parameter], {})[key] = value
    optimiser.load_state_dict({"state": memory, "param_groups": optimiser.state_dict()["param_groups"]})
