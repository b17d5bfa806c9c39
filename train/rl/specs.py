"""The agents ``rl`` and ``rl-search`` for `search.agents`; torch is loaded when one of them is made."""

from __future__ import annotations

from search.agents import DEPTH, EXACT, SEED, WEIGHT_FILE, lazy_agent, number_option, register

_COMMON = {"weights": WEIGHT_FILE, "seed": SEED}
for name, kind, options in (
    ("rl", "PolicyAgent", {"temperature": number_option(0, 100)}),
    ("rl-search", "PolicySearchAgent", {"depth": DEPTH, "exact": EXACT}),
):
    register(name, lazy_agent(f"train.rl.agent:{kind}"), _COMMON | options, positional="weights")
