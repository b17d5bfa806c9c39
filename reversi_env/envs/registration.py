"""Registers the environments' ids with Gymnasium and PettingZoo.

The entry points are texts: no environment is imported before it is made.
"""

from __future__ import annotations

import sys

IDS = {"Reversi-v0": "normal", "ReversedReversi-v0": "reversed"}


def register_all() -> None:
    """Register with Gymnasium, and with PettingZoo if it is loaded; `reversi_env.envs.pettingzoo` does it otherwise."""
    import gymnasium

    for name, variant in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="reversi_env.envs.single:ReversiEnv",
                vector_entry_point="reversi_env.envs.vector:ReversiVectorEnv",
                kwargs={"variant": variant},
            )
        if f"Torch{name}" not in gymnasium.registry:
            entry = "reversi_env.envs.torch_vector:TorchVectorEnv"
            gymnasium.register(f"Torch{name}", vector_entry_point=entry, kwargs={"variant": variant})
    if "pettingzoo" in sys.modules:
        register_with_pettingzoo()


def register_with_pettingzoo() -> None:
    from pettingzoo.env_registry import registration

    for name, variant in IDS.items():
        if name not in registration.aec_registry:
            registration.register("aec", name, "reversi_env.envs.pettingzoo:env", kwargs={"variant": variant})
