"""Games of a network with itself, all in step on one device, every move chosen by a tree search (`models.tree_search`).

A game begins with some random plies, from none to as many as the options say, so that no two are alike; from then on each
position is kept, with the policy that the search found. It is worth what the game went on to be worth, mixed with the search's
values; where positions are solved, their score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from models.boards import bit_counts
from models.residual import Answers
from models.tree_search import TreeSearch
from reversi_env import functional
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.teacher.games import ONE, Positions, Solve, exact_values
from train.zero.options import ZeroOptions

with extra_libraries():
    import torch
    from torch import Tensor

Tell = Callable[[int, int], None]
#: Plies that a simulation goes down at most: a GPU goes down so many always, since it is not waited for.
DEEPEST = {"cuda": 12, "cpu": 24}


class Ply(NamedTuple):
    """All games at one moment: what the search found of the boards, and in which games it means something."""

    own: Tensor
    opp: Tensor
    policy: Tensor
    value: Tensor
    going: Tensor


def search_of(network: Answers, options: ZeroOptions, device: torch.device, threads: int | None = 1) -> TreeSearch:
    """The search that plays the games."""
    return TreeSearch(
        network,
        options.rules,
        options.simulations,
        method=options.method,
        considered=options.considered,
        exact=options.exact,
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
    tell: Tell = lambda done, total: None,
) -> Positions:
    """The positions of a generation's games. *solve* gives exact scores of arrays of boards; *tell* is told the plies played."""
    generator = torch.Generator(device).manual_seed(seed)
    state = _opened(functional.init(options.games, options.rules, device=device), options, generator)
    plies = list[Ply]()
    while (~functional.is_over(state)).any():
        tell(len(plies), options.rules.square_count)
        state = _step(search, state, options, generator, plies)
    return _worth(plies, state, solve, options)


def _opened(state: State, options: ZeroOptions, generator: torch.Generator) -> State:
    """The games after their random plies; one that ends in them is worth nothing, and is not played."""
    count, device = state.own.shape[0], state.own.device
    first = torch.randint(options.plies + 1, (count,), generator=generator, device=device)
    for number in range(options.plies):
        likely = functional.legal(state) * torch.rand(
            (count, options.rules.square_count + 1), generator=generator, device=device
        )
        state = functional.where(first > number, functional.step(state, likely.argmax(1)), state)
    return state


def _step(
    search: TreeSearch, state: State, options: ZeroOptions, generator: torch.Generator, plies: list[Ply]
) -> State:
    """A move in all games that go on; what there was before it is added to *plies*."""
    going, squares = ~functional.is_over(state), options.rules.square_count
    noise = search.noise(len(going), generator)
    # a GPU searches all games, always as many; a CPU is spared those that have ended
    rows = torch.arange(len(going), device=going.device) if going.is_cuda else going.nonzero().squeeze(1)
    found = search.run(functional.take(state, rows), noise[rows])
    action, value = torch.zeros_like(state.own), torch.zeros(len(going), device=going.device)
    policy = torch.zeros((len(going), squares), dtype=torch.uint8, device=going.device)
    action[rows], value[rows] = _played(found.action, found.policy, options, generator), found.value.float()
    policy[rows] = (ONE * found.policy[:, :-1]).round().to(torch.uint8)
    plies.append(Ply(state.own, state.opp, policy, squares * value, going))
    return functional.where(going, functional.step(state, action), state)


def _played(action: Tensor, policy: Tensor, options: ZeroOptions, generator: torch.Generator) -> Tensor:
    """The moves to play: Gumbel's are drawn already, PUCT's are drawn by their visits."""
    if options.method == "gumbel":
        return action
    return torch.multinomial(policy, 1, generator=generator).squeeze(1)


def _worth(plies: list[Ply], last: State, solve: Solve, options: ZeroOptions) -> Positions:
    """All positions with what they were worth, in discs for the side to move."""
    worth, parts = functional.score(last).float(), list[Positions]()
    for ply in reversed(plies):
        mixed = options.trace * -worth + (1 - options.trace) * ply.value
        worth = torch.where(ply.going, mixed, worth)
        near = ply.going & (options.rules.square_count - bit_counts(ply.own | ply.opp) <= options.exact)
        if options.exact:
            worth[near] = exact_values(solve, ply.own[near], ply.opp[near])
        parts.append(Positions(*(column[ply.going] for column in (ply.own, ply.opp, worth, ply.policy))))
    return Positions.together(parts)
