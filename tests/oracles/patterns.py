"""Boards and random networks for the tests of networks."""

import numpy as np
import torch

from models.patterns.trainable import PatternModule
from reversi_env import Rules, batch

LONGEST = {4: 11, 6: 30, 8: 58}
SIZES = (4, 6, 8)


def some_boards(size, count=300, seed=0):
    """Return boards of all stages of random games, and unreachable ones: random discs, few discs, or none."""
    rules, generator = Rules(size), np.random.default_rng(seed)
    own, opp = batch.random_positions(count, generator.integers(0, LONGEST[size], count), rules, seed=seed)
    filled, mine = generator.integers(0, 2**63, (2, count // 10), dtype=np.uint64) << np.uint64(1)
    filled &= np.uint64(rules.playable)
    sparse = np.array([0, rules.start_boards[0], rules.playable], np.uint64)
    return np.concatenate([own, filled & mine, sparse]), np.concatenate([opp, filled & ~mine, sparse * np.uint64(0)])


def loud_net(network, size, seed=0, scale=1.0):
    """Return a network with parameters so large that sums are clipped on both sides and values are distinct."""
    net, generator = PatternModule(network, size, seed), torch.Generator().manual_seed(seed + 1)
    spread = {"weights": 0.5, "constants": 3.0, "rows": 0.15, "heads": 0.7}
    for name, array in net.arrays.items():
        if name in spread:
            array.copy_(torch.randn(array.shape, generator=generator) * spread[name] * scale)
    return net


def random_network(network, size, seed=0, variant="normal", scale=1.0):
    """Return `loud_net` as a network with quantised weights, as in a weight file."""
    return loud_net(network, size, seed, scale).to_network(Rules(size, variant), {"seed": seed})


def digits_of(own, opp, squares):
    """Return 0 (empty), 1 (own) or 2 (opponent's) for each of the squares."""
    return [(own >> sq & 1) + 2 * (opp >> sq & 1) for sq in squares]
