"""Games of a network with itself (`train.teacher.playing`) in which AlphaZero's search chooses every move."""

from __future__ import annotations

from collections.abc import Callable

from models.residual import Answers
from models.tree_search import TreeSearch
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.teacher.playing import Chosen, Positions, Solve, let_strangers_in, opened, played, searched, worth
from train.zero.options import ZeroOptions

with extra_libraries():
    import torch
    from torch import Tensor

#: Plies that a simulation goes down at most: without kernels (`models.tree_kernels`) a GPU, which is not waited for, always does.
DEEPEST = {"cuda": 12, "cpu": 24}


def search_of(network: Answers, options: ZeroOptions, device: torch.device, threads: int | None = 1) -> TreeSearch:
    """The search that plays the games."""
    return TreeSearch(
        network,
        options.rules,
        options.simulations,
        method=options.method,
        considered=options.considered,
        exact=0 if device.type == "cuda" else options.exact,  # for which the GPU would have to be waited
        threads=threads,
        deepest=DEEPEST[device.type],
        compiled=device.type == "cuda",
    )


def play(
    search: TreeSearch,
    solve: Solve,
    options: ZeroOptions,
    seed: int,
    device: torch.device,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Positions:
    """The positions of a generation's games. *solve* gives exact scores of arrays of boards; *tell* is told the plies played."""
    rules, generator = options.rules, torch.Generator(device).manual_seed(seed)
    first = torch.randint(options.plies + 1, (options.games,), generator=generator, device=device)

    def choose(state: State, games: Tensor) -> Chosen:
        found = searched(search, state, options.games, generator)
        let_strangers_in(found, state, games, options, generator)
        return found

    start = opened(rules, first, generator)
    plies, last = played(start, choose, rules, tell=lambda done: tell(done, rules.square_count))
    return worth(plies, last, solve, rules, options.exact, options.trace)
