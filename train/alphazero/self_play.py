"""The games of a generation (`train.alphazero.self_play`), whose moves AlphaZero's search chooses.

A network that plays only itself does not learn positions that good play avoids. So in some games one side is a greedy opponent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.bitboards import bit_counts
from models.mcts.search import TreeSearch
from models.residual.net import PolicyValueFunction
from reversi_env import Rules, functional
from reversi_env.errors import extra_libraries
from reversi_env.functional import State
from train.alphazero.options import SelfPlayOptions

with extra_libraries():
    import torch
    from torch import Tensor

#: Plies that a simulation goes down at most: without kernels (`models.mcts.kernels`) a GPU, which is not waited for, always does.
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


# --- games in lockstep -----------------------------------------------------------------------------


with extra_libraries():
    import torch
    from torch import Tensor

#: The number that stands for 1 in a policy.
ONE = 255

#: Exact scores of arrays of boards, own and the opponent's.
Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Positions(NamedTuple):
    """Positions and what they are worth, on the device.

    ``own``, ``opp``: boards, int64, of the side to move and the other. ``score``: discs for the side to move, float32.
    ``policy``: how good each move is, uint8, `ONE` to 1, ``(n, squares)``; nothing but zeros where that is not known.
    """

    own: Tensor
    opp: Tensor
    score: Tensor
    policy: Tensor

    @staticmethod
    def together(parts: list[Positions]) -> Positions:
        """All of them, one part after the other."""
        return Positions(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


#: The columns of `Positions`, in order.
COLUMNS = tuple(Positions.__annotations__)


class Chosen(NamedTuple):
    """The moves to play, values in discs for the side to move, and policies as `Positions` has them.

    ``strange``: where the move is a stranger's, whatever value and policy say of the position.
    """

    action: Tensor
    value: Tensor
    policy: Tensor
    strange: Tensor

    @staticmethod
    def nothing(count: int, rules: Rules, device: torch.device) -> Chosen:
        """Zeros for so many positions."""
        policy = torch.zeros((count, rules.square_count), dtype=torch.uint8, device=device)
        action, value, strange = (
            policy.new_zeros(count, dtype=kind) for kind in (torch.int64, torch.float32, torch.bool)
        )
        return Chosen(action, value, policy, strange)


class Ply(NamedTuple):
    """All games at one moment, with what was chosen there; ``kept``: where that is a position to learn from."""

    own: Tensor
    opp: Tensor
    value: Tensor
    policy: Tensor
    strange: Tensor
    kept: Tensor


#: What to play in states, those of the games with these numbers.
Choose = Callable[[State, Tensor], Chosen]


def empties(state: State | Ply, rules: Rules) -> Tensor:
    """Empty squares of each position."""
    return rules.square_count - bit_counts(state.own | state.opp)


def random_actions(state: State, generator: torch.Generator) -> Tensor:
    """A random legal action in each game, the pass where it is the only one."""
    legal = functional.legal(state)
    return (legal * (1 + torch.rand(legal.shape, generator=generator, device=legal.device))).argmax(1)


def opened(rules: Rules, plies: Tensor, generator: torch.Generator) -> State:
    """Games after so many random plies each; one that ends in them is worth nothing, and is not played."""
    state = functional.init(len(plies), rules, device=plies.device)
    for number in range(int(plies.max())):
        after = functional.step(state, random_actions(state, generator))
        state = functional.where((plies > number) & ~functional.is_over(state), after, state)
    return state


def searched(
    search: TreeSearch, state: State, most: int, generator: torch.Generator | None = None, temperature: float = 1.0
) -> Chosen:
    """What the search finds of positions, with a *generator* by lot; a GPU looks at *most* at a time, since that is compiled.

    *temperature*: how much the lot counts, 0 not at all. A Gumbel search draws with it; PUCT's visits are drawn from.
    """
    count, device, parts = state.shape[0], state.own.device, list[Chosen]()
    noise, by_visits = None if generator is None else search.noise(count, generator), search.method == "puct"
    if noise is not None and not by_visits:
        noise *= temperature
    for start in range(0, count, most):
        rows = (
            torch.arange(start, start + most if state.own.is_cuda else min(count, start + most), device=device) % count
        )
        found = search.run(functional.take(state, rows), None if noise is None else noise[rows])
        action = found.action
        if by_visits and generator is not None and temperature:
            likely = found.policy if temperature == 1 else _sharpened(found.policy, temperature)
            action = torch.multinomial(likely, 1, generator=generator).squeeze(1)
        policy = (ONE * found.policy[:, :-1]).round().to(torch.uint8)
        strange = torch.zeros_like(action, dtype=torch.bool)
        parts.append(Chosen(action, search.rules.square_count * found.value.float(), policy, strange))
    if not parts:
        return Chosen.nothing(0, search.rules, device)
    return Chosen(*(torch.cat(columns)[:count] for columns in zip(*parts, strict=True)))


def _sharpened(policy: Tensor, temperature: float) -> Tensor:
    """Weights of moves to draw from: the most likely one has 1, so that no power of a small share is lost."""
    return (policy / policy.amax(1, keepdim=True)) ** (1 / temperature)


def played(
    state: State, choose: Choose, rules: Rules, tell: Callable[[int], None] = lambda plies: None
) -> tuple[list[Ply], State]:
    """Play games until they are over: all their plies, and how they stand then. *tell* is told the plies played."""
    plies = list[Ply]()
    while (going := ~functional.is_over(state)).any():
        tell(len(plies))
        rows, found = going.nonzero().squeeze(1), Chosen.nothing(len(going), rules, going.device)
        for column, chosen in zip(found, choose(functional.take(state, rows), rows), strict=True):
            column[rows] = chosen
        plies.append(Ply(state.own, state.opp, found.value, found.policy, found.strange, going))
        state = functional.where(going, functional.step(state, found.action), state)
    return plies, state


def worth(plies: list[Ply], last: State, solve: Solve, rules: Rules, exact: int, td_lambda: float) -> Positions:
    """All positions with what they were worth, in discs for the side to move; those with *exact* empties and fewer are solved.

    *td_lambda*: weight of the later positions of the game, beside the value of the search; *last*: the final states. A greedy
    opponent may play a bad move: before it a position gets the value of the search, or the result of the move if that is higher.
    """
    near = [(ply.kept & (empties(ply, rules) <= exact)).nonzero().squeeze(1) for ply in plies]
    own, opp = (
        torch.cat([getattr(ply, side)[rows] for ply, rows in zip(plies, near, strict=True)]) for side in ("own", "opp")
    )
    solved = exact_values(solve, own, opp).split([len(rows) for rows in near])  # at once: a GPU likes many
    now, parts = functional.score(last).float(), list[Positions]()
    for ply, rows, scores in zip(reversed(plies), reversed(near), reversed(solved), strict=True):
        mixed = td_lambda * -now + (1 - td_lambda) * ply.value
        now = torch.where(ply.kept, torch.where(ply.strange, torch.maximum(ply.value, -now), mixed), now)
        now[rows] = scores
        parts.append(Positions(*(column[ply.kept] for column in (ply.own, ply.opp, now, ply.policy))))
    return Positions.together(parts)


def exact_values(solve: Solve, own: Tensor, opp: Tensor) -> Tensor:
    """Exact scores for the side to move, on the device of the boards."""
    scores = solve(*(side.cpu().numpy().view(np.uint64) for side in (own, opp)))
    return torch.from_numpy(scores.astype(np.float32)).to(own.device)
