"""Speed of AlphaZero's self-play: plies and games per second, and the share of the time outside the network.

    python -m benchmarks.alphazero --device cuda --size 8 --networks 128x8 --batches 8192 --simulations 32 --peer

A ply of all games is one search and a step; the network alone is then called as often with as many positions. With ``--peer``
Pgx and mctx do the same on the same device, where they are installed (8x8 only): the same network, batch and simulations, in
bfloat16 on a GPU. With ``--torch`` the search is also measured without the kernels of `models.mcts.kernels`. There is a line of
JSON for each network and batch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.timing import measured_apart, median_seconds
from models.mcts import search as tree_search
from models.residual.inference import CudaGraphed, InferenceNetwork
from models.residual.net import ResidualNet
from reversi_env import Rules, functional
from train.alphazero.learner import fast_convolutions
from train.alphazero.options import preset
from train.alphazero.self_play import make_search


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
    """Measure the median of *rounds*, in wall time on a GPU and processor time on a CPU; without *kernels* by torch operations."""
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
    rates = {
        "plies_per_second": plies,
        "games_per_second": plies / (rules.square_count - 4),
    }  # about a ply per empty square
    return {**rates, "seconds_per_ply": whole, "network_seconds": network, "outside_network": 1 - network / whole}


def _seconds(work: Callable[[], Any], device: torch.device, rounds: int) -> float:
    def finished() -> None:
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return median_seconds(finished, rounds, perf_counter if device.type == "cuda" else process_time)


def peer(device: str, games: int, simulations: int, channels: int, blocks: int, rounds: int = 3) -> dict[str, Any]:
    """Return the results of `measure` for Pgx and mctx on 8x8; none if they are not installed."""
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
    """Return our results, those of Pgx and mctx, and the ratio of speeds."""
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
    """Measure all networks and batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    for name in ("--peer", "--torch"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--networks", default="24x2", help="channels x blocks, with commas")
    parser.add_argument("--batches", default="256", help="games at once, with commas")
    for name, value in {"size": 6, "simulations": 8, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args())
    with_peer, with_torch = options.pop("peer"), options.pop("torch")
    networks, batches = options.pop("networks").split(","), options.pop("batches").split(",")
    for network, games in product(networks, map(int, batches)):
        channels, blocks = map(int, network.split("x"))
        settings = options | {"channels": channels, "blocks": blocks, "games": games}
        print(json.dumps(settings | compared(with_peer, with_torch, **settings), default=float), flush=True)


if __name__ == "__main__":
    main()
