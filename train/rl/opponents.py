"""Opponents of a training: baselines that move in thousands of games at once, and a pool of past selves that grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.policy.net import PolicyValueNet
from reversi_env import Rules
from reversi_env.envs import OpponentPool
from reversi_env.errors import extra_libraries
from reversi_env.options import derive_seed
from search import agents
from train.arena.batch import AgentPlayer, compiled_player
from train.arena.network_players import BatchPolicy
from train.evaluation.exact_set import action_table

with extra_libraries():
    import torch

#: Words that generators are seeded with lie below this.
_WORDS = 1 << 63
#: Streams of the seeds of baselines and of past selves.
_BASELINES, _SELVES = range(2)


class Baseline:
    """The agent of a spec as an opponent of the vector environment: a callable from discs and masks to actions.

    It plays in compiled code if it can. Otherwise it is asked move by move and made anew between updates, so that it has nothing
    in its memory that a checkpoint would need.
    """

    def __init__(self, spec: str, rules: Rules, seed: int) -> None:
        self._spec, self._rules, self._seed = spec, rules, seed
        self._compiled = compiled_player(spec, rules)
        self.words = np.random.default_rng(seed)
        self.renew(0)

    def renew(self, steps: int) -> None:
        """Before the rollout that begins after so many *steps*: an agent that is asked forgets everything, and draws other lots."""
        seed = derive_seed(self._seed, steps)
        self._player = self._compiled or AgentPlayer(agents.make_agent(self._spec, seed=seed), self._rules)

    def __call__(self, discs: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Legal actions; the pass where it is the only one."""
        actions = np.full(len(discs), self._rules.pass_action, np.int64)
        rows = np.flatnonzero(masks[:, -1] == 0)
        if rows.size:
            own, opp = discs_to_boards(discs[rows], self._rules)
            states = self.words.integers(1, _WORDS, rows.size, np.uint64)
            actions[rows] = action_table(self._rules)[self._player.choose(own, opp, rows, states)]
        return actions


def discs_to_boards(discs: np.ndarray, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of boards, uint64, from ``(n, 2, size, size)`` of discs."""
    rim = (8 - rules.size) // 2
    frame = np.zeros((len(discs), 2, 8, 8), np.uint8)
    frame[:, :, rim : rim + rules.size, rim : rim + rules.size] = discs
    boards = np.packbits(frame.reshape(-1, 2, 64), axis=2, bitorder="little").view("<u8")[:, :, 0]
    return boards[:, 0].astype(np.uint64), boards[:, 1].astype(np.uint64)


class SelfPlayPool:
    """The environment's pool: baselines, which stay, and past selves, of which some are drawn from at a time.

    Half of the selves that are drawn from are the latest ones; the others are drawn by lot from all earlier ones whenever a new one
    joins, so that nothing is unlearnt unnoticed. Baselines get *share* of the games, and all of them while there is no past self.
    """

    def __init__(self, specs: tuple[str, ...], rules: Rules, share: float, active: int, seed: int) -> None:
        self.rules, self.share, self.active, self._seed = rules, share, active, seed
        self.opponents = OpponentPool()
        self.lots = np.random.default_rng([seed, 1])
        self.baselines: list[Baseline] = []  # those that the environment does not play by itself
        for number, spec in enumerate(specs):
            built_in = spec in ("random", "greedy")
            if not built_in:
                self.baselines.append(Baseline(spec, rules, derive_seed(seed, _BASELINES, number)))
            self.opponents.add(spec if built_in else self.baselines[-1])
        self._first = len(specs)
        self.selves: list[BatchPolicy] = []
        self.drawn: list[int] = []

    def add(self, net: PolicyValueNet) -> int:
        """Let a frozen self join, and draw the earlier ones anew; its number among the selves."""
        self._join(net)
        latest = list(range(max(0, len(self.selves) - (self.active + 1) // 2), len(self.selves)))
        earlier = len(self.selves) - len(latest)
        others = self.lots.permutation(earlier)[: self.active - len(latest)]
        self.draw_from([*sorted(int(one) for one in others), *latest])
        return len(self.selves) - 1

    def draw_from(self, numbers: list[int]) -> None:
        """Draw opponents from these selves, all as often, and from the baselines."""
        self.drawn = list(numbers)
        first = self._first
        for number in range(len(self.selves)):
            weight = (1 - self.share) / len(numbers) if number in numbers else 0.0
            self.opponents.set_weight(first + number, weight)
        for number in range(first):
            self.opponents.set_weight(number, self.share / first if self.share or self.selves else 1.0)

    def renew(self, steps: int) -> None:
        """Before the rollout that begins after so many *steps*."""
        for baseline in self.baselines:
            baseline.renew(steps)

    def state(self) -> dict[str, Any]:
        """Everything that decides how the opponents go on, but for the networks of the selves."""
        return {
            "selves": len(self.selves),
            "drawn": list(self.drawn),
            "lots": self.lots.bit_generator.state,
            "generators": np.array([one.generator.get_state().numpy() for one in self.selves], np.uint8),
            "baselines": [baseline.words.bit_generator.state for baseline in self.baselines],
        }

    def set_state(self, state: dict[str, Any], nets: list[PolicyValueNet]) -> None:
        """Go on from a `state` with the selves that there were, in order."""
        for net, words in zip(nets, state["generators"], strict=True):
            self._join(net)
            self.selves[-1].generator.set_state(torch.from_numpy(words))
        if self.selves:
            self.draw_from(state["drawn"])
        self.lots.bit_generator.state = state["lots"]
        for baseline, words in zip(self.baselines, state["baselines"], strict=True):
            baseline.words.bit_generator.state = words

    def _join(self, net: PolicyValueNet) -> None:
        seed = derive_seed(self._seed, _SELVES, len(self.selves))
        self.selves.append(BatchPolicy(net, temperature=1.0, seed=seed))
        self.opponents.add(self.selves[-1], weight=0.0)
