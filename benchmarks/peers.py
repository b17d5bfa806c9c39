"""Othello of other libraries, in other processes; each prints its results as JSON.

``python -m benchmarks.peers pgx|openspiel|envpool cpu|core|cuda``: plies per second of random play; ``core`` uses one core.

``python -m benchmarks.peers alphazero GAMES SIMULATIONS CHANNELS BLOCKS ROUNDS OPENING``: AlphaZero's play in Pgx and mctx. The
network is that of `models.residual.net`, written in plain jax: the same channels, blocks and planes, in bfloat16 on a GPU; the
plane of the opponent's moves, which Pgx does not have, is a copy of that of the own moves. The search is
``mctx.gumbel_muzero_policy`` over Pgx's states, as in Pgx's own AlphaZero example.
"""

import json
import os
import sys
from functools import partial
from importlib.util import find_spec
from itertools import count
from math import prod
from time import perf_counter, process_time
from typing import Any

from benchmarks.timing import measured_apart, median_seconds, rate

#: The modules that each peer of random play needs.
MODULES = {"pgx": ("jax", "pgx"), "openspiel": ("pyspiel",), "envpool": ("envpool",)}
#: Batch sizes and plies per run of Pgx; the best rate counts.
PGX_CPU_BATCHES = ((256, 200), (4096, 20))
PGX_GPU_BATCHES = ((65_536, 100), (2**20, 30))
#: Batch sizes and steps of EnvPool; the best rate counts.
ENVPOOL_BATCHES = ((64, 2000), (4096, 40))


def measured(peer: str, where: str) -> dict[str, Any] | None:
    """Return ``plies_per_second`` of a library and its ``backend``; None if it is not installed."""
    if not all(map(find_spec, MODULES[peer])):
        return None
    platform = {} if where == "cuda" else {"JAX_PLATFORMS": "cpu"}
    figures: dict[str, Any] = measured_apart(
        "benchmarks.peers", peer, where, XLA_PYTHON_CLIENT_PREALLOCATE="false", **platform
    )
    return figures


def _random_actions(state: Any, key: Any) -> Any:
    """Return uniformly random legal actions of Pgx's states."""
    import jax
    import jax.numpy as jnp

    return jax.random.categorical(key, jnp.log(state.legal_action_mask.astype(jnp.float32)), axis=-1)


def pgx_rate(batches: tuple[tuple[int, int], ...]) -> tuple[float, str]:
    """Pgx: a compiled scan with automatic reset and uniformly random legal actions; observation and mask are part of its state.

    Return the best rate over the *batches* (games, plies per run), and the backend that jax chose.
    """
    import jax
    import pgx
    from pgx.experimental import auto_reset

    game = pgx.make("othello")
    step = jax.vmap(auto_reset(game.step, game.init))

    def ply(carry: Any, _: Any) -> Any:
        state, key = carry
        key, draw = jax.random.split(key)
        action = _random_actions(state, draw)
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
    for games, steps in batches:
        envs, rng = envpool.make_gymnasium("Othello-v1", num_envs=games, num_threads=1), np.random.default_rng(0)
        _, infos = envs.reset()
        spent = 0.0
        for _ in range(steps):
            masks = infos["legal_action_mask"]
            actions = (masks * rng.random(masks.shape, np.float32)).argmax(axis=1).astype(np.int32)
            begun = perf_counter()
            *_, infos = envs.step(actions)
            spent += perf_counter() - begun
        best = max(best, games * steps / spent)
    return best


#: Other sizes of the network, and the discs per unit of its value, as in `models.residual.net`.
INPUT_PLANES, HEAD_MAPS, VALUE_UNITS, VALUE_DISCS, SQUARES = 6, 32, 256, 16.0, 64


def _weights(key: Any, channels: int, blocks: int, kind: Any) -> dict[str, Any]:
    """Return random weights; a block is the identity and the value 0."""
    import jax
    import jax.numpy as jnp

    keys = count()

    def drawn(*shape: int) -> Any:
        scale = (2 / prod(shape[:-1])) ** 0.5
        return (scale * jax.random.normal(jax.random.fold_in(key, next(keys)), shape)).astype(kind)

    first = [drawn(3, 3, channels, channels) for _ in range(blocks)]
    return {
        "entry": drawn(3, 3, INPUT_PLANES, channels),
        "blocks": [(one, jnp.zeros_like(one), jnp.zeros((2, channels), kind)) for one in first],
        "policy_maps": drawn(1, 1, channels, HEAD_MAPS),
        "policy": drawn(3, 3, HEAD_MAPS, 1),
        "value_maps": drawn(1, 1, channels, HEAD_MAPS),
        "units": drawn(SQUARES * HEAD_MAPS, VALUE_UNITS),
        "value": jnp.zeros((VALUE_UNITS, 1), kind),
    }


def _logits_and_values(net: dict[str, Any], state: Any) -> tuple[Any, Any]:
    """Return logits of all actions, the pass last, and values as shares of the board, for Pgx's states."""
    import jax
    import jax.numpy as jnp

    def convolved(maps: Any, kernel: Any) -> Any:
        return jax.lax.conv_general_dilated(maps, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    legal = state.legal_action_mask[:, :SQUARES].reshape(-1, 8, 8, 1)
    ones = jnp.ones_like(legal)
    planes = jnp.concatenate([state.observation, legal, legal, ones, ones], -1)
    maps = jax.nn.relu(convolved(planes.astype(net["entry"].dtype), net["entry"]))
    for first, second, bias in net["blocks"]:
        inner = jax.nn.relu(convolved(maps, first) + bias[0])
        maps = jax.nn.relu(maps + convolved(inner, second) + bias[1])
    logits = convolved(jax.nn.relu(convolved(maps, net["policy_maps"])), net["policy"]).reshape(-1, SQUARES)
    flat = jax.nn.relu(convolved(maps, net["value_maps"])).reshape(-1, SQUARES * HEAD_MAPS)
    values = (jax.nn.relu(flat @ net["units"]) @ net["value"])[:, 0].astype(jnp.float32)
    return jnp.pad(logits.astype(jnp.float32), ((0, 0), (0, 1))), VALUE_DISCS / SQUARES * values


def _searched_move(simulations: int, game: Any, net: dict[str, Any], state: Any, key: Any) -> Any:
    import jax
    import jax.numpy as jnp
    import mctx

    lowest = jnp.finfo(jnp.float32).min

    def after(net: Any, _: Any, action: Any, state: Any) -> Any:
        player = state.current_player
        state = jax.vmap(game.step)(state, action)
        logits, value = _logits_and_values(net, state)
        reward = jax.vmap(lambda rewards, who: rewards[who])(state.rewards, player)
        value, discount = jnp.where(state.terminated, 0.0, value), jnp.where(state.terminated, 0.0, -1.0)
        logits = jnp.where(state.legal_action_mask, logits, lowest)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), state

    logits, value = _logits_and_values(net, state)
    output = mctx.gumbel_muzero_policy(
        params=net,
        rng_key=key,
        root=mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
        recurrent_fn=after,
        num_simulations=simulations,
        invalid_actions=~state.legal_action_mask,
        qtransform=mctx.qtransform_completed_by_mix_value,
        max_num_considered_actions=16,
    )
    return jax.vmap(game.step)(state, output.action)


def alphazero(games: int, simulations: int, channels: int, blocks: int, rounds: int, opening: int) -> dict[str, Any]:
    """Return median seconds of a searched move of all games, and of the network alone, after *opening* random plies."""
    import jax
    import jax.numpy as jnp
    import pgx

    game, key = pgx.make("othello"), jax.random.PRNGKey(1)
    on_gpu = jax.default_backend() != "cpu"
    clock = perf_counter if on_gpu else process_time
    net = _weights(key, channels, blocks, jnp.bfloat16 if on_gpu else jnp.float32)
    state = jax.jit(jax.vmap(game.init))(jax.random.split(key, games))
    step = jax.jit(jax.vmap(game.step))
    for ply in range(opening):
        state = step(state, _random_actions(state, jax.random.fold_in(key, ply)))

    def network_calls(net: Any, state: Any) -> Any:  # with different boards each time, or jax would call it once
        def again(_: int, state_and_total: Any) -> Any:
            boards, total = state_and_total
            logits, values = _logits_and_values(net, boards)
            return boards.replace(legal_action_mask=logits > values[:, None]), total + values

        return jax.lax.fori_loop(0, simulations + 1, again, (state, jnp.zeros(games)))[1]

    def seconds(work: Any, *arguments: Any) -> float:
        return median_seconds(lambda: jax.block_until_ready(work(*arguments)), rounds, clock)

    whole = seconds(jax.jit(partial(_searched_move, simulations, game)), net, state, key)
    network = seconds(jax.jit(network_calls), net, state)
    return {"seconds_per_ply": whole, "network_seconds": network, "backend": jax.default_backend()}


def main(peer: str, *words: str) -> None:
    if peer == "alphazero":
        print(json.dumps(alphazero(*map(int, words))))
        return
    [where] = words
    if where == "core" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if peer == "pgx":
        plies, backend = pgx_rate(PGX_GPU_BATCHES if where == "cuda" else PGX_CPU_BATCHES)
    else:
        plies, backend = (envpool_rate if peer == "envpool" else openspiel_rate)(), "cpu"
    print(json.dumps({"plies_per_second": plies, "backend": backend}))


if __name__ == "__main__":
    main(*sys.argv[1:])
