"""The agent ``zero`` for `search.agents`; torch is loaded when one is made."""

from __future__ import annotations

from search.agents import EXACT, SEED, WEIGHT_FILE, Option, made_when_needed, number, register, whole_number


def _device(text: str) -> str:
    if text not in ("cpu", "cuda"):
        raise ValueError
    return text


register(
    "zero",
    made_when_needed("models.zero:ZeroAgent"),
    {
        "weights": WEIGHT_FILE,
        "simulations": whole_number(0, 100_000),
        "depth": whole_number(0, 10),
        "exact": EXACT,
        "temperature": number(0, 100),
        "seed": SEED,
        "device": Option(_device, "cpu or cuda"),
    },
    first="weights",
)
