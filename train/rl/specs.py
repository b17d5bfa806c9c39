"""The agents ``rl`` and ``rl-search`` for `search.agents`; torch is loaded when one of them is made."""

from __future__ import annotations

from search.agents import DEPTH, EXACT, SEED, WEIGHT_FILE, made_when_needed, number, register

_COMMON = {"weights": WEIGHT_FILE, "seed": SEED}
for name, kind, options in (
    ("rl", "PolicyAgent", {"temperature": number(0, 100)}),
    ("rl-search", "PolicySearchAgent", {"depth": DEPTH, "exact": EXACT}),
):
    register(name, made_when_needed(f"train.rl.agent:{kind}"), _COMMON | options, first="weights")
