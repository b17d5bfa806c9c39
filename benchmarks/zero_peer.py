"""AlphaZero's play in Pgx and mctx, in a process of its own: ``python -m benchmarks.zero_peer`` prints what it measured as JSON.

The network is that of `models.residual.net`, written in plain jax: as many channels, blocks and planes, in bfloat16 on a GPU. (The
plane of the opponent's moves, which Pgx does not have, is that of the own ones once more.) The search is
``mctx.gumbel_muzero_policy`` over Pgx's states, as Pgx's own AlphaZero example has it.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from itertools import count
from math import prod
from time import perf_counter, process_time
from typing import Any

#: The network's other sizes, and the discs that 1 stands for in its value: those of `models.residual.net`.
INPUT_PLANES, HEAD_MAPS, VALUE_UNITS, VALUE_DISCS, SQUARES = 6, 32, 256, 16.0, 64


def weights(key: Any, channels: int, blocks: int, kind: Any) -> dict[str, Any]:
    """Random ones; a block does nothing yet, the value is 0."""
    import jax
    import jax.numpy as jnp

    numbers = count()

    def drawn(*shape: int) -> Any:
        scale = (2 / prod(shape[:-1])) ** 0.5
        return (scale * jax.random.normal(jax.random.fold_in(key, next(numbers)), shape)).astype(kind)

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


def answers(net: dict[str, Any], state: Any) -> tuple[Any, Any]:
    """Numbers of all actions, the pass last, and values as shares of the board, for Pgx's states."""
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
    numbers = convolved(jax.nn.relu(convolved(maps, net["policy_maps"])), net["policy"]).reshape(-1, SQUARES)
    flat = jax.nn.relu(convolved(maps, net["value_maps"])).reshape(-1, SQUARES * HEAD_MAPS)
    values = (jax.nn.relu(flat @ net["units"]) @ net["value"])[:, 0].astype(jnp.float32)
    return jnp.pad(numbers.astype(jnp.float32), ((0, 0), (0, 1))), VALUE_DISCS / SQUARES * values


def move(simulations: int, game: Any, net: dict[str, Any], state: Any, key: Any) -> Any:
    """The states after a searched move in all games."""
    import jax
    import jax.numpy as jnp
    import mctx

    lowest = jnp.finfo(jnp.float32).min

    def after(net: Any, _: Any, action: Any, state: Any) -> Any:
        player = state.current_player
        state = jax.vmap(game.step)(state, action)
        numbers, value = answers(net, state)
        reward = jax.vmap(lambda rewards, who: rewards[who])(state.rewards, player)
        value, discount = jnp.where(state.terminated, 0.0, value), jnp.where(state.terminated, 0.0, -1.0)
        numbers = jnp.where(state.legal_action_mask, numbers, lowest)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=numbers, value=value), state

    numbers, value = answers(net, state)
    output = mctx.gumbel_muzero_policy(
        params=net,
        rng_key=key,
        root=mctx.RootFnOutput(prior_logits=numbers, value=value, embedding=state),
        recurrent_fn=after,
        num_simulations=simulations,
        invalid_actions=~state.legal_action_mask,
        qtransform=mctx.qtransform_completed_by_mix_value,
        max_num_considered_actions=16,
    )
    return jax.vmap(game.step)(state, output.action)


def measure(games: int, simulations: int, channels: int, blocks: int, rounds: int, opening: int) -> dict[str, Any]:
    """Seconds of a searched move of all games and of the network alone, medians of *rounds*; *opening*: random plies before."""
    import jax
    import jax.numpy as jnp
    import pgx

    game, key = pgx.make("othello"), jax.random.PRNGKey(1)
    on_gpu = jax.default_backend() != "cpu"
    clock = perf_counter if on_gpu else process_time
    net = weights(key, channels, blocks, jnp.bfloat16 if on_gpu else jnp.float32)
    state = jax.jit(jax.vmap(game.init))(jax.random.split(key, games))
    step = jax.jit(jax.vmap(game.step))
    for ply in range(opening):
        logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
        state = step(state, jax.random.categorical(jax.random.fold_in(key, ply), logits))

    def asked(net: Any, state: Any) -> Any:  # each time other boards, or jax would ask once
        def again(_: int, carried: Any) -> Any:
            boards, total = carried
            numbers, values = answers(net, boards)
            return boards.replace(legal_action_mask=numbers > values[:, None]), total + values

        return jax.lax.fori_loop(0, simulations + 1, again, (state, jnp.zeros(games)))[1]

    def seconds(work: Any, *given: Any) -> float:
        times = []
        for _ in range(rounds + 1):  # the first one compiles
            began = clock()
            jax.block_until_ready(work(*given))
            times.append(clock() - began)
        return sorted(times[1:])[rounds // 2]

    whole = seconds(jax.jit(partial(move, simulations, game)), net, state, key)
    network = seconds(jax.jit(asked), net, state)
    return {"seconds_per_ply": whole, "network_seconds": network, "backend": jax.default_backend()}


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
