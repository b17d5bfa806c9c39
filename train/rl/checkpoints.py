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

#: Counters of stable-baselines3 that a training resumes from.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "_current_progress_remaining")


def model_state(model: Any) -> dict[str, State]:
    """Return the state of a model without its environment: network, counters, pending log values, global generators."""
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
    return {**network_state(model.policy, model.policy.optimizer), "model": told}


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
    torch.set_rng_state(torch.from_numpy(told["torch"]))
    kind, *gaussian = told["gaussian"]
    np.random.set_state((kind, told["numpy"], *gaussian))
