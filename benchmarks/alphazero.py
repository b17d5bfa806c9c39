"""How fast AlphaZero plays itself: plies and games a second, and which share of the time is not the network's.

    python -m benchmarks.alphazero --device cuda --size 8 --games 8192 --simulations 32 --channels 128 --blocks 8 --peer

A ply of all games is one search and a step; the network is then asked as often about as many positions by itself. With ``--peer``
Pgx and mctx do the same on the same device, where they are installed (8x8 only): the same network, batch and simulations, in
bfloat16 on a GPU. ``--networks 128x8,32x3`` and ``--batches 1024,8192`` measure all of them, a line of JSON each. ``--torch``
measures it without the kernels of `models.mcts.kernels` as well.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.timing import measured_apart
from models.mcts import search as tree_search
from models.residual.inference import CudaGraphed, InferenceNetwork
from models.residual.net import ResidualNet
from reversi_env import Rules, functional
from train.alphazero.learner import fast_convolutions
from train.alphazero.options import preset
from train.alphazero.self_play import make_search

#: Plies of a game, nearly: one for each square that is empty at the start.
FIRST_DISCS = 4


def measure(
    size: int,
    device: str,
    games: int,
    simulations: int,
    channels: int,
    blocks: int,
    rounds: int = 3,
    *,
    kernels: bool = True,
) -> dict[str, Any]:
    """Seconds by the clock on a GPU, of the processor on a CPU; the median of *rounds*. Without *kernels*: by torch's alone."""
    rules, where = Rules(size), torch.device(device)
    options = preset(size, device, games=games, simulations=simulations, max_considered_actions=16, exact=0)
    player = InferenceNetwork(ResidualNet(size, channels=channels, blocks=blocks), where)
    search, generator = make_search(player.logits_and_values, options, where), torch.Generator(where).manual_seed(1)
    state = functional.init(games, rules, seed=1, opening_plies=rules.square_count // 4, device=device)

    def searched() -> None:
        functional.step(state, search.run(state, search.noise(games, generator)).action)

    def asked(*boards: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for _ in range(simulations + 1):
            logits_and_values = player.logits_and_values(*boards)
        return logits_and_values

    network_alone = CudaGraphed(asked) if device == "cuda" else asked
    with fast_convolutions(where):
        with patch.object(tree_search, "kernels_for", tree_search.kernels_for if kernels else lambda device: None):
            whole = _seconds(searched, where, rounds)
        network = _seconds(lambda: network_alone(state.own, state.opp), where, rounds)
    return _figures(rules, games, whole, network)


def _figures(rules: Rules, games: int, whole: float, network: float) -> dict[str, Any]:
    plies = games / whole
    rates = {"plies_per_second": plies, "games_per_second": plies / (rules.square_count - FIRST_DISCS)}
    return {**rates, "seconds_per_ply": whole, "network_seconds": network, "outside_network": 1 - network / whole}


def _seconds(work: Callable[[], Any], device: torch.device, rounds: int) -> float:
    clock = perf_counter if device.type == "cuda" else process_time
    times = []
    for _ in range(rounds + 1):  # the first one compiles
        began = clock()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(clock() - began)
    return sorted(times[1:])[rounds // 2]


def peer(device: str, games: int, simulations: int, channels: int, blocks: int, rounds: int = 3) -> dict[str, Any]:
    """The figures of `measure` for Pgx and mctx on 8x8; of nothing if they are not installed."""
    if not all(map(find_spec, ("jax", "pgx", "mctx"))):
        return {}
    rules, platform = Rules(8), {} if device == "cuda" else {"JAX_PLATFORMS": "cpu"}
    arguments = map(str, (games, simulations, channels, blocks, rounds, rules.square_count // 4))
    timings = measured_apart(
        "benchmarks.peers", "alphazero", *arguments, XLA_PYTHON_CLIENT_PREALLOCATE="false", **platform
    )
    figures = _figures(rules, games, timings["seconds_per_ply"], timings["network_seconds"])
    return {**figures, "backend": timings["backend"]}


def compared(with_peer: bool, with_torch: bool, *, size: int, **settings: Any) -> dict[str, Any]:
    """Ours, and the peer's beside it with the ratio of speeds."""
    figures: dict[str, Any] = {"ours": measure(size, **settings)}
    if with_torch:
        figures["by_torch"] = measure(size, **settings, kernels=False)
    if settings["device"] == "cuda":
        torch.cuda.empty_cache()
    theirs = peer(**settings) if with_peer and size == 8 else {}
    if theirs:
        ratio = figures["ours"]["plies_per_second"] / theirs["plies_per_second"]
        figures |= {"pgx_mctx": theirs, "times_as_fast": ratio}
    return figures


def main() -> None:
    """Read the options, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    for name in ("--peer", "--torch"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--networks", default="")
    parser.add_argument("--batches", default="")
    defaults = {"size": 6, "games": 256, "simulations": 8, "channels": 24, "blocks": 2, "rounds": 3}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args())
    beside = options.pop("peer"), options.pop("torch")
    networks, batches = options.pop("networks"), options.pop("batches")
    shapes = [tuple(map(int, text.split("x"))) for text in networks.split(",") if text]
    for channels, blocks in shapes or [(options["channels"], options["blocks"])]:
        for games in map(int, batches.split(",")) if batches else [options["games"]]:
            settings = options | {"channels": channels, "blocks": blocks, "games": games}
            print(json.dumps(settings | compared(*beside, **settings), default=float), flush=True)


if __name__ == "__main__":
    main()
