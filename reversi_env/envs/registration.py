"""Registers the environments' ids with Gymnasium and PettingZoo.

The entry points are texts: no environment is imported before it is made.
"""

import sys

IDS = {"Reversi-v0": "normal", "ReversedReversi-v0": "reversed"}
ENTRY_POINTS = ("single:ReversiEnv", "vector:ReversiVectorEnv", "torch_vector:TorchVectorEnv")


def register_all() -> None:
    """Register with Gymnasium, and with PettingZoo if it is loaded; `reversi_env.envs.pettingzoo` does it otherwise."""
    import gymnasium

    single, vector, torch = (f"reversi_env.envs.{path}" for path in ENTRY_POINTS)
    for name, variant in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, single, vector_entry_point=vector, kwargs={"variant": variant})
            gymnasium.register(f"Torch{name}", vector_entry_point=torch, kwargs={"variant": variant})
    if "pettingzoo" in sys.modules:
        register_with_pettingzoo()


def register_with_pettingzoo() -> None:
    from pettingzoo.env_registry import registration

    for name, variant in IDS.items():
        if name not in registration.aec_registry:
            registration.register("aec", name, "reversi_env.envs.pettingzoo:env", kwargs={"variant": variant})
