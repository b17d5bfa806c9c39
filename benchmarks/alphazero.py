"""Speed of AlphaZero's self-play: plies and games per second, and the share of the time outside the network.

    python -m benchmarks.alphazero --device cuda --size 8 --networks 128x8 --batches 8192 --simulations 32 --peer

A ply of all games is one search and one step. The network alone is measured with the same number of calls and positions. With
``--peer`` Pgx and mctx are measured on the same device, if installed (8x8 only): the same network, batch and simulations, in
bfloat16 on a GPU. With ``--torch`` the search is also measured without the kernels of `models.mcts.kernels`. Prints a line of JSON
per network and batch.

    python -m benchmarks.alphazero --single 64,800 --size 8 --device cuda

measures the search of one game instead (`models.mcts.single`): milliseconds per move with the packaged network, in turn with the
batched search of one game; each has its own cache or tree.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import median
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.timing import measured_apart
from models.bitboards import board_tensor
from models.mcts import search as tree_search
from models.mcts.search import TreeSearch
from models.mcts.single import SingleSearch
from models.residual.inference import CudaGraphed, HostNetwork, InferenceNetwork
from models.residual.net import ResidualNet
from models.torch_evaluator import single_torch_thread
from models.zero import ZeroAgent
from reversi_env import Position, Rules, batch, functional
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
    """Return medians of *rounds*, in wall time on a GPU and processor time on a CPU; without *kernels* by torch operations."""
    rules, where = Rules(size), torch.device(device)
    options = preset(size, device, games=games, simulations=simulations, max_considered_actions=16, exact=0)
    player = InferenceNetwork(ResidualNet(size, channels=channels, blocks=blocks), where)
    search, generator = make_search(player.logits_and_values, options, where), torch.Generator(where).manual_seed(1)
    state = functional.init(games, rules, seed=1, opening_plies=rules.square_count // 4, device=device)

    def search_and_step() -> None:
        functional.step(state, search.run(state, search.noise(games, generator)).action)

    def network_calls(*boards: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for _ in range(simulations + 1):
            logits_and_values = player.logits_and_values(*boards)
        return logits_and_values

    network_alone = CudaGraphed(network_calls) if device == "cuda" else network_calls
    with fast_convolutions(where):
        with patch.object(tree_search, "kernels_for", tree_search.kernels_for if kernels else lambda device: None):
            whole = _seconds(search_and_step, where, rounds)
        network = _seconds(lambda: network_alone(state.own, state.opp), where, rounds)
    return _figures(rules, games, whole, network)


def measure_single(size: int, device: str, simulations: int, rounds: int) -> dict[str, Any]:
    """Return milliseconds per move, timed as in `measure`: medians of *rounds* positions, in turn; another one before compiles."""
    rules = Rules(size)
    net, plies = ZeroAgent().load(rules).net, np.linspace(0, rules.square_count // 2, rounds + 1).astype(np.int64)
    network, host = InferenceNetwork(net, device), HostNetwork(net, device)
    batched, times = TreeSearch(network.logits_and_values, rules, simulations), dict[str, list[float]]()
    with single_torch_thread():
        for boards in zip(*batch.random_positions(rounds + 1, plies, rules, seed=1), strict=True):
            position, single = Position(rules, int(boards[0]), int(boards[1])), SingleSearch(host, rules)
            own, opp = (board_tensor(np.array([side])).to(device) for side in boards)
            roots = functional.from_boards(own, opp, rules)
            searches: dict[str, Callable[[], Any]] = {
                "single": partial(single.run, position, simulations),
                "batched": partial(batched.run, roots),
            }
            for name, search in searches.items():
                times.setdefault(name, []).append(_timed(search, torch.device(device)))
    milliseconds = {name: 1e3 * median(seconds[1:]) for name, seconds in times.items()}
    return {
        "single_ms_per_move": milliseconds["single"],
        "batched_ms_per_move": milliseconds["batched"],
        "share": milliseconds["single"] / milliseconds["batched"],
    }


def _figures(rules: Rules, games: int, whole: float, network: float) -> dict[str, Any]:
    plies = games / whole
    games_per_second = plies / (rules.square_count - 4)  # about one ply per empty square
    rates = {"plies_per_second": plies, "games_per_second": games_per_second}
    return {**rates, "seconds_per_ply": whole, "network_seconds": network, "outside_network": 1 - network / whole}


def _seconds(work: Callable[[], Any], device: torch.device, rounds: int) -> float:
    return median([_timed(work, device) for _ in range(rounds + 1)][1:])  # the first one compiles


def _timed(work: Callable[[], Any], device: torch.device) -> float:
    clock = perf_counter if device.type == "cuda" else process_time
    began = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - began


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    for name in ("--peer", "--torch"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--networks", default="24x2", help="channels x blocks, with commas")
    parser.add_argument("--batches", default="256", help="games at once, with commas")
    parser.add_argument("--single", default="", help="simulations of one game, with commas")
    for name, value in {"size": 6, "simulations": 8, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args())
    with_peer, with_torch = options.pop("peer"), options.pop("torch")
    networks, batches, single = (options.pop(name).split(",") for name in ("networks", "batches", "single"))
    for simulations in map(int, filter(None, single)):
        one_game = {name: options[name] for name in ("size", "device", "rounds")} | {"simulations": simulations}
        print(json.dumps(one_game | measure_single(**one_game)), flush=True)
    for network, games in [] if any(single) else product(networks, map(int, batches)):
        channels, blocks = map(int, network.split("x"))
        settings = options | {"channels": channels, "blocks": blocks, "games": games}
        print(json.dumps(settings | compared(with_peer, with_torch, **settings), default=float), flush=True)


if __name__ == "__main__":
    main()
