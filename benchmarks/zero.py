"""How fast AlphaZero plays itself: plies and games a second, and which share of the time is not the network's.

    python -m benchmarks.zero --device cuda --size 8 --games 8192 --simulations 32 --channels 128 --blocks 8

A ply of all games is one search; the network is then asked as often about as many positions by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import torch

from models.player import Player
from models.residual import ResidualNet
from reversi_env import Rules, functional
from train.zero.games import search_of
from train.zero.options import preset

#: Plies of a game, nearly: one for each square that is empty at the start.
FIRST_DISCS = 4


def measure(
    size: int, device: str, games: int, simulations: int, channels: int, blocks: int, rounds: int = 3
) -> dict[str, Any]:
    """Seconds by the clock on a GPU, of the processor on a CPU; the median of *rounds*."""
    rules, where = Rules(size), torch.device(device)
    options = preset(size, device, games=games, simulations=simulations, exact=0)
    player = Player(ResidualNet(size, channels=channels, blocks=blocks), where)
    search, generator = search_of(player.answers, options, where), torch.Generator(where).manual_seed(1)
    state = functional.init(games, rules, seed=1, opening_plies=rules.square_count // 4, device=device)

    def searched() -> None:
        search.run(state, search.noise(games, generator))

    def asked() -> None:
        for _ in range(simulations + 1):
            player.answers(state.own, state.opp)

    whole, network = _seconds(searched, where, rounds), _seconds(asked, where, rounds)
    plies = games / whole
    found = {"plies_per_second": plies, "games_per_second": plies / (rules.square_count - FIRST_DISCS)}
    return {**found, "seconds_per_ply": whole, "outside_network": 1 - network / whole}


def _seconds(work: Callable[[], None], device: torch.device, rounds: int) -> float:
    clock = perf_counter if device.type == "cuda" else process_time
    times = []
    for _ in range(rounds + 1):  # the first one compiles
        began = clock()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(clock() - began)
    return sorted(times[1:])[rounds // 2]


def main() -> None:
    """Read the options, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    defaults = {"size": 6, "games": 256, "simulations": 8, "channels": 24, "blocks": 2, "rounds": 3}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in measure(**vars(parser.parse_args())).items():
        print(f"{name:18} {value:.4g}")


if __name__ == "__main__":
    main()
