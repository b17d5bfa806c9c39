"""Random play in other people's Othello, in a process of its own: ``python -m benchmarks.peers pgx cpu`` prints plies a second.

``core`` instead of ``cpu`` keeps it on one core, ``cuda`` is for a GPU.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from typing import Any

from benchmarks.timing import measured_apart, rate

#: The modules that each peer needs.
MODULES = {"pgx": ("jax", "pgx"), "openspiel": ("pyspiel",), "envpool": ("envpool",)}
#: Batches, and plies a run, that Pgx is measured with; the best counts.
PGX_CPU_BATCHES = ((256, 200), (4096, 20))
PGX_GPU_BATCHES = ((65_536, 100), (2**20, 30))
#: Games in a batch, and steps, that EnvPool is measured with; the best counts.
ENVPOOL_BATCHES = ((64, 2000), (4096, 40))


def measured(peer: str, where: str) -> dict[str, Any] | None:
    """``plies_per_second`` of a peer and the ``backend`` that it ran on; None if it is not installed."""
    if not all(map(find_spec, MODULES[peer])):
        return None
    platform = {} if where == "cuda" else {"JAX_PLATFORMS": "cpu"}
    figures: dict[str, Any] = measured_apart(
        "benchmarks.peers", peer, where, XLA_PYTHON_CLIENT_PREALLOCATE="false", **platform
    )
    return figures


def pgx_rate(batches: tuple[tuple[int, int], ...]) -> tuple[float, str]:
    """Pgx: a compiled scan with automatic reset and uniformly random legal actions; observation and mask are part of its state.

    The best over the *batches*: games, and plies a run; and the backend that jax chose.
    """
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    game = pgx.make("othello")
    step = jax.vmap(auto_reset(game.step, game.init))

    def ply(carry: Any, _: Any) -> Any:
        state, key = carry
        key, draw = jax.random.split(key)
        logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
        action = jax.random.categorical(draw, logits, axis=-1)
        keys = jax.random.split(key, state.current_player.shape[0])
        return (step(state, action, keys), key), None

    best = 0.0
    for batch, plies in batches:
        roll = jax.jit(lambda carry, plies=plies: jax.lax.scan(ply, carry, None, length=plies)[0])
        carry = (jax.vmap(game.init)(jax.random.split(jax.random.PRNGKey(0), batch)), jax.random.PRNGKey(1))

        def run(carry: Any = carry, roll: Any = roll, plies: int = batch * plies) -> int:
            jax.block_until_ready(roll(carry))
            return plies

        best = max(best, rate(run, 3))
    return best, jax.default_backend()


def openspiel_rate(plies: int = 5000) -> float:
    """OpenSpiel from Python: legal actions and mask, observation tensor, apply."""
    import random

    import pyspiel

    game = pyspiel.load_game("othello")

    def run() -> int:
        state = game.new_initial_state()
        for _ in range(plies):
            if state.is_terminal():
                state = game.new_initial_state()
            state.observation_tensor(state.current_player())
            state.legal_actions_mask()
            state.apply_action(random.choice(state.legal_actions()))
        return plies

    return rate(run, 3)


def envpool_rate(batches: tuple[tuple[int, int], ...] = ENVPOOL_BATCHES) -> float:
    """EnvPool's ``Othello-v1`` on one thread, random legal actions; only its steps are timed, not the choice of actions."""
    import envpool
    import numpy as np

    best = 0.0
    for count, steps in batches:
        envs, rng = envpool.make_gymnasium("Othello-v1", num_envs=count, num_threads=1), np.random.default_rng(0)
        _, infos = envs.reset()
        spent = 0.0
        for _ in range(steps):
            masks = infos["legal_action_mask"]
            actions = (masks * rng.random(masks.shape, np.float32)).argmax(axis=1).astype(np.int32)
            begun = time.perf_counter()
            *_, infos = envs.step(actions)
            spent += time.perf_counter() - begun
        best = max(best, count * steps / spent)
    return best


def main(peer: str, where: str) -> None:
    """Print the figures of a peer."""
    if where == "core" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if peer == "pgx":
        plies, backend = pgx_rate(PGX_GPU_BATCHES if where == "cuda" else PGX_CPU_BATCHES)
    else:
        plies, backend = (envpool_rate if peer == "envpool" else openspiel_rate)(), "cpu"
    print(json.dumps({"plies_per_second": plies, "backend": backend}))


if __name__ == "__main__":
    main(*sys.argv[1:])
