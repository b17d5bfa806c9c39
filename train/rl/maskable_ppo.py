"""`MaskablePpoRun`: a resumable run of stable-baselines3's MaskablePPO in one folder.

The agent plays against baselines and snapshots of itself (`SelfPlayPool`), and is evaluated on the ladder and in solved endgames.
Besides the files of a `PolicyRun` the folder has ``model.zip``, the model for stable-baselines3; ``regret.csv`` and ``regret.svg``;
``pool/``, the snapshots; and ``tensorboard/``, if tensorboard is installed.

A run resumes after its last checkpoint, and on the same machine's CPU it ends with the same policy, curves and log, except for wall
times, as if it had not been interrupted.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from models.policy.files import SavedPolicy, read_policy
from models.policy.net import PolicyValueNet, frozen_copy
from reversi_env.errors import extra_libraries
from reversi_env.storage.atomic import write_atomically
from search import agents
from train.arena.network_players import BatchPolicy, BatchPolicyPlayer
from train.jobs.checkpoints import State, load_checkpoint, network_state, restore_network
from train.jobs.run import CHECKPOINT, Run, as_hashes
from train.rl.board_policy import BoardPolicy, net_of
from train.rl.callbacks import RegretCallback
from train.rl.opponents import SelfPlayPool
from train.rl.options import PpoOptions
from train.rl.policy_run import PolicyRun
from train.rl.training_env import TrainingEnv

with extra_libraries():
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter, Logger

MODEL, TENSORBOARD, SNAPSHOTS_FOLDER = "model.zip", "tensorboard", "pool"
#: A log value that stable-baselines3 counts from the last start of the process.
ITERATIONS = "time/iterations"


class MaskablePpoRun(PolicyRun):
    """A run in *folder*; *device* is the network's, *threads* are torch's."""

    model: Any

    def run(self) -> None:
        """Train to the end, if the run is not finished."""
        with Run(self.folder, self.options, as_hashes(self._opponent_hashes()), changeable=("total_timesteps",)):
            self._train()

    def _opponent_hashes(self) -> dict[str, str]:
        hashes = dict[str, str]()
        for spec in self.options.opponents:
            with agents.make_agent(spec) as agent:
                hashes |= agent.content_hashes(self.rules)
        return hashes

    def _train(self) -> None:
        torch.set_num_threads(self.threads)
        self._started = time.perf_counter()
        self.report("compiling")
        options, seed = self.options, self.options.seed
        self.pool = SelfPlayPool(options.opponents, self.rules, options.baseline_share, options.pool_size, seed)
        self.env = TrainingEnv(
            options.num_envs, self.pool, plies=options.opening_plies, symmetric=options.symmetric, seed=seed
        )
        self.model = _make_model(options, self.env, self.device_name)
        self._tasks_done_at = -1
        resumed = self._resume()
        # Regret comes first: the checkpoint at the end must come after everything else.
        callbacks: list[BaseCallback] = [self._regret_callback()] if self._regret else []
        left = options.total_timesteps - self.steps
        if left > 0:
            callbacks.append(_BetweenUpdates(self))
            # To reset the number of steps would reset all games.
            self.model.learn(left, callback=callbacks, reset_num_timesteps=not resumed)

    # --- between two updates ----------------------------------------------------------------------

    def between_updates(self, *, end: bool = False) -> None:
        """Add a snapshot, evaluate, and write a checkpoint, each when it is due."""
        self.steps = int(self.model.num_timesteps)
        self.pool.reset(self.steps)
        if end or self.steps != self._tasks_done_at:  # otherwise done before the checkpoint from which the run resumed
            self._run_due_tasks(end)
        self.report("learning")

    def _run_due_tasks(self, end: bool) -> None:
        steps, options = self.steps, self.options
        self._tasks_done_at = steps
        if not end and steps // options.snapshot_every > len(self.pool.snapshots):
            net, path = self._frozen_copy(), self._snapshot_path(len(self.pool.snapshots))
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, SavedPolicy(self.rules, net, {"steps": steps}).to_bytes())
            self.pool.add(net)
        last = self.evaluations[-1]["steps"] if self.evaluations else -options.eval_every
        evaluates = last != steps and (end or steps - last >= options.eval_every)
        if evaluates:
            self._evaluate()
        if end or evaluates or self.checkpoint_is_due():
            write_atomically(self.folder / MODEL, self._model_file())
            games, pool = self.env.state(), self.pool.state()
            parts = {**self.model.checkpoint(), "games": games, "pool": pool, "told": self.run_state()}
            self.save(self._frozen_copy(), parts)

    def _evaluate(self) -> None:
        self.report("evaluating")
        standing = self.ladder.measure(BatchPolicyPlayer(self._frozen_copy(), symmetric=True))
        self.evaluations.append({"steps": self.steps, "seconds": round(self.elapsed, 1), **standing.as_dict()})
        if (elo := self.evaluations[-1]["elo"]) is not None:
            self.model.logger.record("ladder/elo", elo)
        for name, score in standing.scores.items():
            self.model.logger.record(f"ladder/{name}", score.score)
        self.draw(self.options.algorithm.upper())

    def _regret_callback(self) -> BaseCallback:
        self.report("solving endgames")

        def policy(discs: np.ndarray, masks: np.ndarray) -> np.ndarray:
            return BatchPolicy(self._frozen_copy(), symmetric=True)(discs, masks)

        return RegretCallback(self.exact_set, self.folder, self.options.eval_every, policy=policy)

    def _frozen_copy(self) -> PolicyValueNet:
        return frozen_copy(net_of(self.model.policy))

    # --- files ------------------------------------------------------------------------------------

    def _snapshot_path(self, number: int) -> Path:
        return self.folder / SNAPSHOTS_FOLDER / f"{number:05d}.safetensors"

    def _read_snapshot(self, number: int) -> PolicyValueNet:
        net = read_policy(self._snapshot_path(number)).net.to(self.device_name).requires_grad_(False)
        net.trunk.half_precision = self.options.precision == "bfloat16"
        return net

    def _resume(self) -> bool:
        """Load the last checkpoint; return whether there is one."""
        self._saved_at = time.perf_counter()
        self.model.set_logger(Logger(None, []))
        parts = load_checkpoint(self.folder / CHECKPOINT)
        if parts is not None:
            self.set_run_state(parts["told"])
            snapshots = [self._read_snapshot(number) for number in range(parts["pool"]["selves"])]
            self.pool.set_state(parts["pool"], snapshots)
            observations = self.env.set_state(parts["games"])
            self.model.restore(parts, observations)  # the random generators last: making a network draws from them
            self.steps = self._tasks_done_at = int(self.model.num_timesteps)
        for path in (self.folder / SNAPSHOTS_FOLDER).glob("*.safetensors"):  # those after the checkpoint are made again
            if path.stem.isdigit() and int(path.stem) >= len(self.pool.snapshots):
                path.unlink()
        self.model.logger.output_formats = self._log_writers()
        return parts is not None

    def _model_file(self) -> bytes:
        stream = io.BytesIO()
        self.model.save(stream, exclude=["env", "logger", "rollout_buffer"])
        return stream.getvalue()

    def _log_writers(self) -> list[KVWriter]:
        writers: list[KVWriter] = [_LogWriter(self)]
        try:
            from stable_baselines3.common.logger import TensorBoardOutputFormat
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return writers
        board = TensorBoardOutputFormat(str(self.folder / TENSORBOARD))
        board.writer.close()
        # What a lost part of the run has written after this step is not shown.
        board.writer = SummaryWriter(str(self.folder / TENSORBOARD), purge_step=self.steps or None)
        return [*writers, board]


class _BetweenUpdates(BaseCallback):
    def __init__(self, run: MaskablePpoRun) -> None:
        super().__init__()
        self._run = run

    def _on_rollout_start(self) -> None:
        self._run.between_updates()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._run.between_updates(end=True)


class _LogWriter(KVWriter):
    """Appends stable-baselines3's log values to the log of a run."""

    def __init__(self, run: MaskablePpoRun) -> None:
        self._run = run

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        values = {
            key: float(value)
            for key, value in key_values.items()
            if key != ITERATIONS and (isinstance(value, (int, float)) or hasattr(value, "item"))
        }
        self._run.log.append({"steps": int(self._run.model.num_timesteps), **values})

    def close(self) -> None:
        """Do nothing."""


#: Counters of stable-baselines3 that a run resumes from.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_n_calls", "_current_progress_remaining")


class _ResumableModel(MaskablePPO):
    """MaskablePPO that resumes, without its environment: network, counters, pending log values, global random generators."""

    def checkpoint(self) -> dict[str, State]:
        log, (kind, keys, *gaussian) = self.logger, np.random.get_state()
        state = {
            "counters": {name: getattr(self, name) for name in _COUNTERS if hasattr(self, name)},
            "episodes": list(self.ep_info_buffer or ()),
            # The next line of the log has values of the last update, and of an evaluation since.
            "noted": {name: (float(value), log.name_to_excluded[name]) for name, value in log.name_to_value.items()},
            "started": np.asarray(self._last_episode_starts, np.uint8),
            "torch": torch.get_rng_state().numpy(),
            "numpy": np.asarray(keys),
            "gaussian": [str(kind), *gaussian],
        }
        return {**network_state(self.policy, self.policy.optimizer), "model": state}

    def restore(self, parts: Mapping[str, State], observations: Any) -> None:
        """Restore a `checkpoint`; *observations* are those of the restored environment."""
        state: Any = parts["model"]
        restore_network(parts, self.policy, self.policy.optimizer)
        for name, value in state["counters"].items():
            setattr(self, name, value)
        self.ep_info_buffer = deque(state["episodes"], maxlen=self._stats_window_size)
        self.ep_success_buffer = deque(maxlen=self._stats_window_size)
        for name, (value, excluded) in state["noted"].items():
            self.logger.record(name, value, tuple(excluded))
        self._last_obs = observations
        self._last_episode_starts = state["started"].astype(bool)
        torch.set_rng_state(torch.from_numpy(state["torch"]))
        kind, *gaussian = state["gaussian"]
        np.random.set_state((kind, state["numpy"], *gaussian))


def _make_model(options: PpoOptions, env: TrainingEnv, device: str) -> Any:
    return _ResumableModel(
        *(BoardPolicy, env),
        learning_rate=partial(_decayed_rate, options.learning_rate),
        gamma=1.0,
        n_steps=options.num_steps,
        batch_size=options.batch_size,
        n_epochs=options.n_epochs,
        ent_coef=options.ent_coef,
        gae_lambda=options.gae_lambda,
        seed=options.seed,
        device=device,
        policy_kwargs={
            "architecture": options.architecture.as_dict(),
            "half_precision": options.precision == "bfloat16",
        },
    )


def _decayed_rate(rate: float, left: float) -> float:
    """Return the learning rate when the share *left* of the run is still to come: linear decay to a tenth.

    The last rollout goes beyond the total number of steps, so that *left* may be negative.
    """
    return rate * (0.1 + 0.9 * max(0.0, left))
