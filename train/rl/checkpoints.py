"""Where a training with stable-baselines3 is: its model and the global random generators, as parts of `train.checkpoints`.

The other parts tell their states themselves (`TrainingEnv.state`, `SelfPlayPool.state`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from reversi_env.extras import extra_libraries
from train.checkpoints import State, network_state, restore_network

with extra_libraries():
    import torch

#: Counters of stable-baselines3 that a training goes on from, and what its replay buffer has for every step.
_COUNTERS = (
    *("num_timesteps", "_n_updates", "_episode_num", "_n_calls"),
    *("_current_progress_remaining", "exploration_rate"),
)
_REPLAY = ("actions", "rewards", "dones", "timeouts")


def model_state(model: Any) -> dict[str, State]:
    """All of a model but its environment: network, counters, what was not logged yet, replay buffer, global generators."""
    log, (kind, keys, *gaussian) = model.logger, np.random.get_state()
    told = {
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "episodes": list(model.ep_info_buffer or ()),
        # what the next line of the log will have: figures of the last update, and of an evaluation since
        "noted": {name: (float(value), log.name_to_excluded[name]) for name, value in log.name_to_value.items()},
        "started": np.asarray(model._last_episode_starts, np.uint8),
        "torch": torch.get_rng_state().numpy(),
        "numpy": np.asarray(keys),
        "gaussian": [str(kind), *gaussian],
    }
    parts = {**network_state(model.policy, model.policy.optimizer), "model": told}
    if getattr(model, "replay_buffer", None) is not None:
        buffer = model.replay_buffer
        filled = buffer.buffer_size if buffer.full else buffer.pos
        rows = {name: array[:filled] for name, array in _replay_arrays(buffer).items()}
        parts["replay"] = {"pos": buffer.pos, "full": buffer.full, **rows}
    return parts


def restore_model(parts: Mapping[str, State], model: Any) -> None:
    """Put a model with its environment, and the generators, back to where they were."""
    told = parts["model"]
    restore_network(parts, model.policy, model.policy.optimizer)
    for name, value in told["counters"].items():
        setattr(model, name, value)
    model.ep_info_buffer = deque(told["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    for name, (value, excluded) in told["noted"].items():
        model.logger.record(name, value, tuple(excluded))
    model._last_episode_starts = told["started"].astype(bool)
    if "replay" in parts:
        buffer, state = model.replay_buffer, parts["replay"]
        buffer.pos, buffer.full = state["pos"], state["full"]
        for name, array in _replay_arrays(buffer).items():
            array[: len(state[name])] = state[name]
    torch.set_rng_state(torch.from_numpy(told["torch"]))
    kind, *gaussian = told["gaussian"]
    np.random.set_state((kind, told["numpy"], *gaussian))


def _replay_arrays(buffer: Any) -> dict[str, np.ndarray]:
    """The arrays of a replay buffer, a row a step."""
    of_boards = {
        f"{name}/{key}": array
        for name in ("observations", "next_observations")
        for key, array in getattr(buffer, name).items()
    }
    return {name: getattr(buffer, name) for name in _REPLAY} | of_boards
