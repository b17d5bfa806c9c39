"""The agent ``zero`` for `search.agents`; torch is loaded when one is made."""

from __future__ import annotations

from search.agents import EXACT, SEED, WEIGHT_FILE, Option, integer_option, lazy_agent, number_option, register


def _device(text: str) -> str:
    if text not in ("cpu", "cuda"):
        raise ValueError
    return text


register(
    "zero",
    lazy_agent("models.zero:ZeroAgent"),
    {
        "weights": WEIGHT_FILE,
        "simulations": integer_option(0, 100_000),
        "depth": integer_option(0, 10),
        "exact": EXACT,
        "temperature": number_option(0, 100),
        "seed": SEED,
        "device": Option(_device, "cpu or cuda"),
    },
    positional="weights",
)
