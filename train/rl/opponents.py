"""Opponents of a training run: baselines that move in thousands of games at once, and a growing pool of snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.policy.net import PolicyValueNet
from reversi_env import Rules, batch
from reversi_env.envs import OpponentPool
from reversi_env.errors import extra_libraries
from reversi_env.options import derive_seed
from search import agents
from train.arena.batch import AgentPlayer, compiled_player
from train.arena.network_players import BatchPolicy

with extra_libraries():
    import torch

#: Upper bound of the states of the baselines' generators.
_MAX_STATE = 1 << 63
#: Streams of the seeds of baselines and of snapshots.
_BASELINES, _SNAPSHOTS = range(2)


class Baseline:
    """The agent of a spec as an opponent of the vector environment: a callable from discs and masks to actions.

    It plays in compiled code if it can. Otherwise it is asked move by move, and made again between updates, so that a checkpoint
    need not contain its memory.
    """

    def __init__(self, spec: str, rules: Rules, seed: int) -> None:
        self._spec, self._rules, self._seed = spec, rules, seed
        self._compiled = compiled_player(spec, rules)
        self.rng = np.random.default_rng(seed)
        self.reset(0)

    def reset(self, steps: int) -> None:
        """Prepare for the rollout after that many steps: an agent that is asked is made again, with a seed of its own."""
        seed = derive_seed(self._seed, steps)
        self._player = self._compiled or AgentPlayer(agents.make_agent(self._spec, seed=seed), self._rules)

    def __call__(self, discs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Return legal actions; the pass where it is the only one."""
        actions = np.full(len(discs), self._rules.pass_action, np.int64)
        rows = np.flatnonzero(masks[:, -1] == 0)
        if rows.size:
            own, opp = discs_to_boards(discs[rows], self._rules)
            states = self.rng.integers(1, _MAX_STATE, rows.size, np.uint64)
            actions[rows] = batch.action_table(self._rules)[self._player.choose(own, opp, rows, states)]
        return actions


def discs_to_boards(discs: np.ndarray, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of boards, uint64, from ``(n, 2, size, size)`` of discs."""
    rim = (8 - rules.size) // 2
    frame = np.zeros((len(discs), 2, 8, 8), np.uint8)
    frame[:, :, rim : rim + rules.size, rim : rim + rules.size] = discs
    boards = np.packbits(frame.reshape(-1, 2, 64), axis=2, bitorder="little").view("<u8")[:, :, 0]
    return boards[:, 0].astype(np.uint64), boards[:, 1].astype(np.uint64)


class SelfPlayPool:
    """The environment's opponents: baselines, and snapshots, of which at most *active_snapshots* play at a time.

    Half of the active snapshots are the latest ones; the others are sampled from all earlier ones whenever a snapshot is added.
    Baselines get *baseline_share* of the games, and all games while there is no snapshot.
    """

    def __init__(
        self, specs: tuple[str, ...], rules: Rules, baseline_share: float, active_snapshots: int, seed: int
    ) -> None:
        self.rules, self.baseline_share, self.active_snapshots, self._seed = (
            rules,
            baseline_share,
            active_snapshots,
            seed,
        )
        self.opponents = OpponentPool()
        self.rng = np.random.default_rng([seed, 1])
        self.baselines: list[Baseline] = []  # those that the environment does not play itself
        for number, spec in enumerate(specs):
            is_built_in = spec in ("random", "greedy")
            if not is_built_in:
                self.baselines.append(Baseline(spec, rules, derive_seed(seed, _BASELINES, number)))
            self.opponents.add(spec if is_built_in else self.baselines[-1])
        self._baseline_count = len(specs)
        self.snapshots: list[BatchPolicy] = []
        self.active: list[int] = []

    def add(self, net: PolicyValueNet) -> None:
        """Add a snapshot, and sample the active ones again."""
        self._append(net)
        latest = range(max(0, len(self.snapshots) - (self.active_snapshots + 1) // 2), len(self.snapshots))
        earlier = len(self.snapshots) - len(latest)
        others = self.rng.permutation(earlier)[: self.active_snapshots - len(latest)]
        self._activate([*sorted(int(one) for one in others), *latest])

    def _append(self, net: PolicyValueNet) -> None:
        seed = derive_seed(self._seed, _SNAPSHOTS, len(self.snapshots))
        self.snapshots.append(BatchPolicy(net, temperature=1.0, seed=seed))
        self.opponents.add(self.snapshots[-1], weight=0.0)

    def _activate(self, active: list[int]) -> None:
        """Let these snapshots play, all equally often, and the baselines."""
        self.active = active
        for number in range(len(self.snapshots)):
            weight = (1 - self.baseline_share) / len(active) if number in active else 0.0
            self.opponents.set_weight(self._baseline_count + number, weight)
        for number in range(self._baseline_count):
            share = self.baseline_share / self._baseline_count
            self.opponents.set_weight(number, share if self.baseline_share or self.snapshots else 1.0)

    def reset(self, steps: int) -> None:
        """Prepare for the rollout after that many steps."""
        for baseline in self.baselines:
            baseline.reset(steps)

    def state(self) -> dict[str, Any]:
        """Return all that decides how the opponents play, except for the networks of the snapshots."""
        return {
            "selves": len(self.snapshots),
            "drawn": list(self.active),
            "lots": self.rng.bit_generator.state,
            "generators": np.array([one.generator.get_state().numpy() for one in self.snapshots], np.uint8),
            "baselines": [baseline.rng.bit_generator.state for baseline in self.baselines],
        }

    def set_state(self, state: dict[str, Any], nets: list[PolicyValueNet]) -> None:
        """Resume from a `state` with the networks of its snapshots, in order."""
        for net, generator in zip(nets, state["generators"], strict=True):
            self._append(net)
            self.snapshots[-1].generator.set_state(torch.from_numpy(generator))
        if self.snapshots:
            self._activate(list(state["drawn"]))
        self.rng.bit_generator.state = state["lots"]
        for baseline, generator in zip(self.baselines, state["baselines"], strict=True):
            baseline.rng.bit_generator.state = generator
