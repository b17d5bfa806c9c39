"""Run in a process of its own by `test_tree_kernels`: the kernels of the tree search against torch's operations, all that is found.

``python -m tests.oracles.cuda_trees`` runs them on a CPU with ``TRITON_INTERPRET=1``, which triton reads when it is imported, and
``python -m tests.oracles.cuda_trees cuda`` on a GPU, with more games. It prints a line for each search, and fails at the first
difference.
"""

from __future__ import annotations

import sys
import warnings

import torch

from models.bitboards import planes
from models.mcts.search import TreeSearch, kernels_for
from reversi_env import Rules, batch, functional

SEARCHES = [
    (8, "normal", {"simulations": 12, "max_considered_actions": 4}),
    (6, "reversed", {"simulations": 12, "method": "puct", "max_depth": 3}),
    (4, "reversed", {"simulations": 20, "max_depth": 2}),
    (4, "normal", {"simulations": 20, "method": "puct"}),
    (4, "normal", {"simulations": 17, "exact": 4}),
]


def answering(size, seed=1, device="cpu"):
    """A network that knows nothing, but says something else of every position; in double precision, as Python counts."""
    rules, generator = Rules(size), torch.Generator().manual_seed(seed)
    weights = torch.randn((128, rules.square_count + 1), dtype=torch.float64, generator=generator).to(device)

    def answers(own, opp):
        seen = torch.cat([planes(own), planes(opp)], 1).to(torch.float64) @ weights
        return torch.sin(seen[:, :-1]), 4 * torch.sin(seen[:, -1])

    return answers


def compare(size, variant, how, device):
    """Search the same games with kernels and without, with lots; in double precision, where rounding changes no choice."""
    rules, count = Rules(size, variant), 200 if device == "cuda" else 1
    plies = torch.arange(0, rules.square_count - 8, rules.square_count // 3).repeat(count)
    own, opp = batch.random_positions(len(plies), plies.numpy(), rules, seed=3)
    roots = functional.to(functional.from_boards(own, opp, rules), device)
    network = answering(size, device=device)
    fast, plain = (TreeSearch(network, rules, compiled=compiled, **how) for compiled in (True, False))
    noise = plain.noise(len(roots.own), torch.Generator(device).manual_seed(5)).double()
    found, expected = fast.run(roots, noise), plain.run(roots, noise)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name} of {size}x{size} {how}: {text}")
    print(size, variant, how, len(roots.own), "games alike", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("error", RuntimeWarning)  # a kernel that cannot run tells so
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    assert kernels_for(torch.device(device)), "no kernels: expected triton, and TRITON_INTERPRET=1 on a CPU"
    for size, variant, how in SEARCHES:
        compare(size, variant, how, device)
