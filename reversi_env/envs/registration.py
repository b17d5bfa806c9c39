"""Registers the environments' ids; the entry points are texts, so that nothing heavy is imported before an environment is made."""

from __future__ import annotations

import gymnasium
from pettingzoo.env_registry import registration as pettingzoo

IDS = {"Reversi-v0": "normal", "ReversedReversi-v0": "reversed"}


def register_all() -> None:
    """Register with Gymnasium (single, vector, and the tensor environment as Torch…) and with PettingZoo (AEC), once."""
    for name, variant in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="reversi_env.envs.single:ReversiEnv",
                vector_entry_point="reversi_env.envs.vector:ReversiVectorEnv",
                kwargs={"variant": variant},
            )
        if f"Torch{name}" not in gymnasium.registry:
            entry = "reversi_env.envs.torch_gymnasium:make"
            gymnasium.register(f"Torch{name}", vector_entry_point=entry, kwargs={"variant": variant})
        if name not in pettingzoo.aec_registry:
            pettingzoo.register("aec", name, "reversi_env.aec:env", kwargs={"variant": variant})
