"""The agents ``rl`` and ``rl-search`` for `search.agents`; torch is loaded when one of them is made."""

from __future__ import annotations

from typing import Any

from search import agents


def _policy(**options: Any) -> agents.Agent:
    from train.rl.agent import PolicyAgent

    return PolicyAgent(**options)


def _search(**options: Any) -> agents.Agent:
    from train.rl.agent import PolicySearchAgent

    return PolicySearchAgent(**options)


_COMMON = {"weights": agents.WEIGHT_FILE, "seed": agents.SEED}
agents.register("rl", _policy, _COMMON | {"temperature": agents.number(0, 100)}, first="weights")
agents.register(
    "rl-search",
    _search,
    _COMMON | {"depth": agents.DEPTH, "exact": agents.EXACT},
    first="weights",
)
