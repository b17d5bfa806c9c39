"""The games of a generation (`train.alphazero.playing`), whose moves AlphaZero's search chooses.

A network that plays only itself does not learn positions that good play avoids. So in some games one side is a greedy opponent.
"""

from __future__ import annotations

from collections.abc import Callable

from models.boards import bit_counts
from models.residual import PolicyValueFunction
from models.tree_search import TreeSearch
from reversi_env import functional
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.alphazero.options import SelfPlayOptions
from train.alphazero.playing import Chosen, Positions, Solve, opened, played, searched, worth

with extra_libraries():
    import torch
    from torch import Tensor

#: Plies that a simulation goes down at most: without kernels (`models.tree_kernels`) a GPU, which is not waited for, always does.
MAX_DEPTH = {"cuda": 12, "cpu": 24}


def search_of(
    network: PolicyValueFunction, options: SelfPlayOptions, device: torch.device, threads: int | None = 1
) -> TreeSearch:
    """The search that plays the games."""
    return TreeSearch(
        network,
        options.rules,
        options.simulations,
        method=options.method,
        max_considered_actions=options.max_considered_actions,
        exact=0 if device.type == "cuda" else options.exact,  # for which the GPU would have to be waited
        threads=threads,
        max_depth=MAX_DEPTH[device.type],
        compiled=device.type == "cuda",
    )


def play(
    search: TreeSearch,
    solve: Solve,
    options: SelfPlayOptions,
    seed: int,
    device: torch.device,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Positions:
    """The positions of a generation's games. *solve* gives exact scores of arrays of boards; *tell* is told the plies played."""
    rules, generator = options.rules, torch.Generator(device).manual_seed(seed)
    first = torch.randint(options.plies + 1, (options.games,), generator=generator, device=device)

    def choose(state: State, games: Tensor) -> Chosen:
        found = searched(search, state, options.games, generator, options.temperature)
        let_strangers_in(found, state, games, options, generator)
        return found

    start = opened(rules, first, generator)
    plies, last = played(start, choose, rules, lambda done: tell(done, rules.square_count))
    return worth(plies, last, solve, rules, options.exact, options.td_lambda)


def greedy_actions(state: State, generator: torch.Generator) -> Tensor:
    """The action that is best in discs right after it in each game, one of them by lot; the pass where it is the only one."""
    legal = functional.legal(state)
    rows, actions = legal.nonzero(as_tuple=True)
    after = functional.step(functional.take(state, rows), actions)
    gains = torch.full(legal.shape, -torch.inf, device=legal.device)
    lots = torch.rand(rows.shape, generator=generator, device=legal.device)
    gains[rows, actions] = state.rules.sign * (bit_counts(after.opp) - bit_counts(after.own)) + lots
    return gains.argmax(1)


def let_strangers_in(
    found: Chosen, state: State, games: Tensor, options: SelfPlayOptions, generator: torch.Generator
) -> None:
    """Let strangers have the move in their games: the first ones, as black in those with even numbers, as white in the others.

    A network that meets nobody but itself does not learn what becomes of few discs beside somebody who takes all that he can.
    """
    theirs = (games < options.greedy_share * options.games) & (games % 2 == state.turn)
    found.action[theirs] = greedy_actions(functional.take(state, theirs), generator)
    found.strange[theirs] = True
