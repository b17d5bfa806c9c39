"""Random play in other people's Othello, run as a script of its own on one core: ``python peers.py pgx`` prints plies a second."""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter
from typing import Any


def best_of(run: Any, plies: int, repeats: int = 3) -> float:
    """Best plies a second of *repeats* runs after one that warms up."""
    run()
    best = 0.0
    for _ in range(repeats):
        began = perf_counter()
        run()
        best = max(best, plies / (perf_counter() - began))
    return best


def pgx_rate(batches: tuple[tuple[int, int], ...] = ((256, 200), (4096, 20))) -> float:
    """Pgx: a compiled scan with automatic reset and uniformly random legal actions; observation and mask are part of its state.

    The best over the *batches*: games, and plies a run.
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
        best = max(best, best_of(lambda carry=carry, roll=roll: jax.block_until_ready(roll(carry)), batch * plies))
    return best


def openspiel_rate(plies: int = 5000) -> float:
    """OpenSpiel from Python: legal actions and mask, observation tensor, apply."""
    import random

    import pyspiel

    game = pyspiel.load_game("othello")

    def run() -> None:
        state = game.new_initial_state()
        for _ in range(plies):
            if state.is_terminal():
                state = game.new_initial_state()
            state.observation_tensor(state.current_player())
            state.legal_actions_mask()
            state.apply_action(random.choice(state.legal_actions()))

    return best_of(run, plies)


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(json.dumps(pgx_rate() if sys.argv[1] == "pgx" else openspiel_rate()))
