"""The agents ``rl`` and ``rl-search`` for `search.agents`; torch is loaded when one of them is made."""

from __future__ import annotations

from typing import Any

from search import agents


def _policy(**options: Any) -> Any:
    from train.rl.agent import PolicyAgent

    return PolicyAgent(**options)


def _search(**options: Any) -> Any:
    from train.rl.agent import PolicySearchAgent

    return PolicySearchAgent(**options)


_COMMON = {"weights": agents.reads_path, "seed": agents.reads_whole(0)}
agents.register("rl", _policy, _COMMON | {"temperature": agents.reads_number(0, 100)}, first="weights")
agents.register(
    "rl-search",
    _search,
    _COMMON | {"depth": agents.reads_whole(1, 60), "exact": agents.reads_whole(0, 64)},
    first="weights",
)
