"""The agent ``teacher`` for `search.agents`; torch is loaded when one is made."""

from __future__ import annotations

from search.agents import EXACT, SEED, WEIGHT_FILE, made_when_needed, register, whole_number

register(
    "teacher",
    made_when_needed("models.teacher:TeacherAgent"),
    {"weights": WEIGHT_FILE, "depth": whole_number(0, 10), "exact": EXACT, "seed": SEED},
    first="weights",
)
