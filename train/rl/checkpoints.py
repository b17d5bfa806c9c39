"""Where a training is, in one file: weights, optimiser, counters, games, pool and all random generators.

The file holds tensors, numbers and texts only and is read as such (`torch.load` with ``weights_only``). It is written whole or not
at all; the past selves, which never change, are files of their own beside it, written before a checkpoint names them.
"""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.extras import extra_libraries
from reversi_env.writing import write_atomically
from train.errors import TrainError
from train.rl.environment import TrainingEnv
from train.rl.files import SavedPolicy, read_policy
from train.rl.opponents import BatchBaseline, SelfPlayPool
from train.rl.policies import frozen, net_of

with extra_libraries():
    import torch

FORMAT = 1
CHECKPOINT, SELVES = "checkpoint.pt", "pool"
#: Counters of stable-baselines3 that a training goes on from.
_COUNTERS = (
    *("num_timesteps", "_n_updates", "_episode_num", "_n_calls"),
    *("_current_progress_remaining", "exploration_rate"),
)


def save_self(folder: Path, number: int, saved: SavedPolicy) -> None:
    """Write a past self."""
    (folder / SELVES).mkdir(exist_ok=True)
    write_atomically(_self_path(folder, number), saved.to_bytes())


def save_checkpoint(folder: Path, model: Any, env: TrainingEnv, pool: SelfPlayPool, more: dict[str, Any]) -> None:
    """Write where the training is; *more* is for the caller, as JSON has it."""
    name, keys, *gaussian = np.random.get_state()
    log, state = model.logger, env.state()
    content = {
        "format": FORMAT,
        "policy": model.policy.state_dict(),
        "optimiser": model.policy.optimizer.state_dict(),
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "episodes": list(model.ep_info_buffer or ()),
        # what the next line of the log will have: figures of the last update, and of an evaluation since
        "noted": {name: (float(value), log.name_to_excluded[name]) for name, value in log.name_to_value.items()},
        "started": torch.from_numpy(np.asarray(model._last_episode_starts, np.uint8)),
        "games": {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in state.items()},
        "pool": _pool_state(pool),
        "torch": torch.get_rng_state(),
        "numpy": [str(name), torch.from_numpy(np.asarray(keys).astype(np.int64)), *gaussian],
        "more": json.dumps(more),
    }
    if getattr(model, "replay_buffer", None) is not None:
        content["replay"] = _replay_state(model.replay_buffer)
    stream = io.BytesIO()
    torch.save(content, stream)
    write_atomically(folder / CHECKPOINT, stream.getvalue())


def load_checkpoint(folder: Path, model: Any, env: TrainingEnv, pool: SelfPlayPool) -> dict[str, Any]:
    """Put model, games, pool and generators back to where the last checkpoint found them; the caller's own part of it."""
    path = folder / CHECKPOINT
    try:
        with zipfile.ZipFile(path) as members:  # torch.save writes checksums, torch.load does not look at them
            damaged = members.testzip()
        if damaged is not None:
            raise ValueError(f"damaged, the checksum of its {damaged} is another")
        with warnings.catch_warnings(action="ignore"):  # about a file that is none of ours, and then it is refused
            content = torch.load(path, map_location=model.device, weights_only=True)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}")
        return _restored(content, folder, model, env, pool)
    except (
        *(OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError, AttributeError),
        *(pickle.UnpicklingError, zipfile.BadZipFile),
    ) as error:
        if isinstance(error, TrainError):
            raise
        reason = " ".join(str(error).split())[:160]
        raise TrainError(f"{str(path)!r} cannot be read ({reason}): expected what a training wrote") from None


def _restored(
    content: dict[str, Any], folder: Path, model: Any, env: TrainingEnv, pool: SelfPlayPool
) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content["more"])
    model.policy.load_state_dict(content["policy"])
    model.policy.optimizer.load_state_dict(content["optimiser"])
    for name, value in content["counters"].items():
        setattr(model, name, value)
    model.ep_info_buffer = deque(content["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(maxlen=model._stats_window_size)
    for name, (value, excluded) in content.get("noted", {}).items():
        model.logger.record(name, value, tuple(excluded))
    state = content["pool"]
    nets = [read_policy(_self_path(folder, number)).net for number in range(state["selves"])]
    for net in nets:
        net.trunk.half_precision = net_of(model.policy).trunk.half_precision
    pool.restore([frozen(net.to(model.device)) for net in nets], state["drawn"])
    pool.lots.bit_generator.state = json.loads(state["lots"])
    for policy, words in zip(pool.selves, state["generators"], strict=True):
        policy.generator.set_state(words.cpu())
    for baseline, text in zip(_seeded(pool), state["baselines"], strict=True):
        baseline.words.bit_generator.state = json.loads(text)
    games = content["games"].items()
    model._last_obs = env.set_state({k: v.cpu().numpy() if isinstance(v, torch.Tensor) else v for k, v in games})
    model._last_episode_starts = content["started"].cpu().numpy().astype(bool)
    if "replay" in content:
        _restore_replay(model.replay_buffer, content["replay"])
    torch.set_rng_state(content["torch"].cpu())
    name, keys, *rest = content["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), *rest))
    return found


def forget_later_selves(folder: Path, selves: int) -> None:
    """Remove past selves that were written after the last checkpoint: the training makes them again."""
    for path in (folder / SELVES).glob("*.safetensors"):
        if path.stem.isdigit() and int(path.stem) >= selves:
            path.unlink()


def as_saved(model: Any, rules: Any, record: dict[str, Any]) -> SavedPolicy:
    """The present policy of a model, frozen."""
    return SavedPolicy(rules, frozen(net_of(model.policy)), record)


def _self_path(folder: Path, number: int) -> Path:
    return folder / SELVES / f"{number:05d}.safetensors"


def _pool_state(pool: SelfPlayPool) -> dict[str, Any]:
    return {
        "selves": len(pool.selves),
        "drawn": pool.drawn,
        "lots": json.dumps(pool.lots.bit_generator.state),
        "generators": [policy.generator.get_state() for policy in pool.selves],
        "baselines": [json.dumps(baseline.words.bit_generator.state) for baseline in _seeded(pool)],
    }


def _seeded(pool: SelfPlayPool) -> list[BatchBaseline]:
    """The baselines with generators that go on from rollout to rollout."""
    return [baseline for baseline in pool.baselines if isinstance(baseline, BatchBaseline)]


_BUFFER = ("actions", "rewards", "dones", "timeouts")


def _replay_state(buffer: Any) -> dict[str, Any]:
    """The filled part of a replay buffer."""
    rows = buffer.buffer_size if buffer.full else buffer.pos
    state: dict[str, Any] = {"pos": buffer.pos, "full": buffer.full}
    for name in _BUFFER:
        state[name] = torch.from_numpy(getattr(buffer, name)[:rows].copy())
    for name in ("observations", "next_observations"):
        state[name] = {key: torch.from_numpy(rows_of[:rows].copy()) for key, rows_of in getattr(buffer, name).items()}
    return state


def _restore_replay(buffer: Any, state: dict[str, Any]) -> None:
    buffer.pos, buffer.full = state["pos"], state["full"]
    for name in _BUFFER:
        rows = state[name].cpu().numpy()
        getattr(buffer, name)[: len(rows)] = rows
    for name in ("observations", "next_observations"):
        for key, rows in state[name].items():
            getattr(buffer, name)[key][: len(rows)] = rows.cpu().numpy()
