"""Games of the teacher with itself, all in step on one device, and what their positions turned out to be worth.

A game begins with random moves, so that no two are alike; then a tree search chooses (`models.tree_search`), with a lot. From a
number of empty squares on all positions are solved. Before, a position is worth what the game went on to be worth, mixed with
what the search found.

Who is shown what one look ahead chooses, learns that the side to move is better off than it is in good games: a choice by a
search corrects many of the mistakes that the network makes at a glance. Positions aside of the games are shown too, after a
random move, solved or searched. And some games are played perfectly where positions are solved: there all moves are, and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from models.boards import after_move, bit_counts, board_planes, legal_moves, planes
from models.residual import Answers
from models.tree_search import TreeSearch
from reversi_env import Rules, functional
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.teacher.options import TeacherOptions

with extra_libraries():
    import torch
    from torch import Tensor

#: What stands for the value of a move that is not legal, below every value; for the number of one, below every number.
NO_VALUE, NO_NUMBER = -1000.0, -1e9
#: Share of the games with few random moves at the beginning, and how many those have at most, as a share of the others' most.
SHORT_SHARE, SHORT_MOST = 0.6, 0.3
#: Discs less in value that make a move e times less likely in the policy that is learnt.
POLICY_TEMPERATURE = 1.0
#: Plies that the search goes down at most: few simulations do not come further, and a GPU always goes so far.
DEEPEST = 8
#: The number that stands for 1 in a policy.
ONE = 255

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


class Ply(NamedTuple):
    """All games at one moment: boards, empty squares, and what the side to move can get.

    ``value``: what the search found that to be, in discs; ``policy``: how good all moves are. ``kept``: whether the game is past
    its first random moves, and goes on. ``solved``: positions after all moves in the games that are played perfectly.
    """

    own: Tensor
    opp: Tensor
    empties: Tensor
    value: Tensor
    policy: Tensor
    kept: Tensor
    solved: Positions


def search_of(network: Answers, options: TeacherOptions, device: torch.device) -> TreeSearch:
    """The search that chooses the moves, and tells what positions aside of the games are worth."""
    rules, count, compiled = options.rules, options.simulations, device.type == "cuda"
    return TreeSearch(network, rules, count, considered=options.considered, deepest=DEEPEST, compiled=compiled)


def play(
    search: TreeSearch | None, solve: Solve, options: TeacherOptions, seed: int, device: torch.device
) -> Positions:
    """The positions of a generation's games, whose moves *search* chooses; without, of random games' endgames.

    *solve* gives exact scores of arrays of boards.
    """
    generator = torch.Generator(device).manual_seed(seed)
    plies = list(_plies(search, solve, options, generator, device))
    parts = [_of_games(plies, solve, options, learnt=search is not None), *(ply.solved for ply in plies)]
    if options.aside:
        parts.append(_aside(plies, search, solve, options, generator))
    return Positions.together(parts)


# --- the games ------------------------------------------------------------------------------------


def _plies(
    search: TreeSearch | None, solve: Solve, options: TeacherOptions, generator: torch.Generator, device: torch.device
) -> Iterator[Ply]:
    """Play all games, and tell of every moment of them."""
    rules, count = options.rules, options.games
    state = functional.init(count, rules, device=device)
    first = random_moves(count, options, generator, device) if search is not None else torch.zeros_like(state.own)
    perfect = torch.arange(count, device=device) < options.perfect * count
    for number in range(2 * rules.square_count):
        empties = rules.square_count - bit_counts(state.own | state.opp)
        going_on = ~functional.is_over(state) & (empties >= options.fewest)
        if not going_on.any():
            return
        kept = going_on & (first <= number)
        noise = gumbel((count, rules.square_count + 1), generator, device)
        action = torch.where(functional.legal(state), noise, NO_NUMBER).argmax(1)
        value, policy = noise.new_zeros(count), torch.zeros_like(noise[:, :-1], dtype=torch.uint8)
        if search is not None:
            rows = kept.nonzero().squeeze(1)
            found = _searched(search, functional.take(state, rows), options, options.temperature * noise[rows])
            action[rows], value[rows], policy[rows] = found.action, found.value, found.policy
        ends = (kept & perfect & (empties <= options.exact + 1) & (state.legal != 0)).nonzero().squeeze(1)
        moves, solved = solved_moves(solve, state.own[ends], state.opp[ends], rules)
        action[ends], value[ends], policy[ends] = moves.argmax(1), moves.amax(1), _policy(moves)
        yield Ply(state.own, state.opp, empties, value, policy, kept, solved)
        state = functional.where(going_on, functional.step(state, action), state)


class Searched(NamedTuple):
    """The moves to play, values in discs for the side to move, and policies as `Positions` has them."""

    action: Tensor
    value: Tensor
    policy: Tensor


def _searched(search: TreeSearch, state: State, options: TeacherOptions, noise: Tensor | None = None) -> Searched:
    """What the search finds of positions; a GPU looks at so many at a time as there are games, since that is compiled."""
    count, size = state.shape[0], options.games
    parts = list[Searched]()
    for start in range(0, count, size):
        rows = torch.arange(start, start + size if state.own.is_cuda else min(count, start + size)) % count
        rows = rows.to(state.own.device)
        found = search.run(functional.take(state, rows), None if noise is None else noise[rows])
        policy = (ONE * found.policy[:, :-1]).round().to(torch.uint8)
        parts.append(Searched(found.action, options.rules.square_count * found.value.float(), policy))
    if not parts:
        nothing = state.own.new_zeros(0)
        return Searched(nothing, nothing.float(), nothing.new_zeros((0, options.rules.square_count), dtype=torch.uint8))
    return Searched(*(torch.cat(columns)[:count] for columns in zip(*parts, strict=True)))


def gumbel(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Gumbel's noise: with it the best number is a draw from the softmax."""
    return torch.empty(shape, device=device).exponential_(generator=generator).log_().neg_()


def random_moves(games: int, options: TeacherOptions, generator: torch.Generator, device: torch.device) -> Tensor:
    """How many random moves each game begins with: few in most, so that good play of all phases is seen."""
    share = torch.rand(2, games, generator=generator, device=device)
    most = options.rules.square_count - 8 - options.exact
    most_of_game = torch.where(share[0] < SHORT_SHARE, SHORT_MOST * most, float(most))
    return (share[1] * most_of_game).long()


def _of_games(plies: list[Ply], solve: Solve, options: TeacherOptions, *, learnt: bool) -> Positions:
    """What the positions of the games are worth; those that are not solved only if there is something to be *learnt* from them."""
    rows = [(ply.kept & (ply.empties <= options.exact)).nonzero().squeeze(1) for ply in plies]
    own, opp = (
        torch.cat([getattr(ply, side)[chosen] for ply, chosen in zip(plies, rows, strict=True)])
        for side in ("own", "opp")
    )
    solved = exact_values(solve, own, opp).split([len(chosen) for chosen in rows])
    worth, parts = torch.full_like(plies[0].value, torch.nan), list[Positions]()
    for ply, chosen, scores in zip(reversed(plies), reversed(rows), reversed(solved), strict=True):
        mixed = options.trace * -worth + (1 - options.trace) * ply.value
        worth = torch.where(worth.isnan(), ply.value, mixed)
        worth[chosen] = scores
        found = ply.kept & (learnt & (ply.empties > options.exact))
        found[chosen] = True
        parts.append(Positions(ply.own[found], ply.opp[found], worth[found], ply.policy[found]))
        worth = torch.where(ply.kept, worth, torch.nan)
    return Positions.together(parts)


# --- positions aside of them ----------------------------------------------------------------------


def _aside(
    plies: list[Ply], search: TreeSearch | None, solve: Solve, options: TeacherOptions, generator: torch.Generator
) -> Positions:
    """Positions after a random move from a share of those of the games, where a move is possible."""
    rules = options.rules
    of_games = torch.cat([torch.stack([ply.own, ply.opp], 1)[ply.kept] for ply in plies])
    drawn = torch.rand(len(of_games), generator=generator, device=of_games.device) < options.aside
    own, opp = of_games[drawn].T
    own, opp = random_children(own, opp, rules, generator)
    empties = rules.square_count - bit_counts(own | opp)
    wanted = (legal_moves(own, opp, rules.playable) != 0) & (empties >= options.fewest)
    if search is None:
        wanted &= empties <= options.exact
    own, opp, near = own[wanted], opp[wanted], (empties <= options.exact)[wanted]
    score = torch.zeros(len(own), device=own.device)
    policy = torch.zeros((len(own), rules.square_count), dtype=torch.uint8, device=own.device)
    if search is not None:
        _, score, policy = _searched(search, functional.from_boards(own, opp, rules), options)
    score[near] = exact_values(solve, own[near], opp[near])
    return Positions(own, opp, score, policy)


def random_children(own: Tensor, opp: Tensor, rules: Rules, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Boards after one random legal move, as the next side sees them; positions without a move are left out."""
    legal = legal_moves(own, opp, rules.playable)
    own, opp, legal = own[legal != 0], opp[legal != 0], legal[legal != 0]
    likely = planes(legal).float()
    drawn = (likely * (1 + torch.rand(likely.shape, generator=generator, device=own.device))).argmax(1)
    return after_move(own, opp, drawn)


# --- values ---------------------------------------------------------------------------------------


def solved_moves(solve: Solve, own: Tensor, opp: Tensor, rules: Rules) -> tuple[Tensor, Positions]:
    """Exact values of all moves in discs for the side to move, ``(n, squares)``, `NO_VALUE` where one is not legal.

    And the solved positions after the moves: those where the next side can move.
    """
    legal = board_planes(legal_moves(own, opp, rules.playable), rules.size).flatten(1) > 0
    found, (rows, actions) = torch.where(legal, 0.0, NO_VALUE), legal.nonzero(as_tuple=True)
    mine, theirs = after_move(own[rows], opp[rows], _squares(rules, own.device)[actions])
    scores = exact_values(solve, mine, theirs)
    found[rows, actions] = -scores
    wanted = legal_moves(mine, theirs, rules.playable) != 0
    policy = torch.zeros((int(wanted.sum()), rules.square_count), dtype=torch.uint8, device=own.device)
    return found, Positions(mine[wanted], theirs[wanted], scores[wanted], policy)


def _squares(rules: Rules, device: torch.device) -> Tensor:
    """The square of the frame, 0-63, for every action."""
    return torch.tensor([rules.square_of(action) for action in range(rules.square_count)], device=device)


def _policy(moves: Tensor) -> Tensor:
    """How good each move is, as `Positions` has it, by the values of all."""
    return (ONE * torch.softmax(moves / POLICY_TEMPERATURE, 1)).round().to(torch.uint8)


def exact_values(solve: Solve, own: Tensor, opp: Tensor) -> Tensor:
    """Exact scores for the side to move, on the device of the boards."""
    scores = solve(*(side.cpu().numpy().view(np.uint64) for side in (own, opp)))
    return torch.from_numpy(scores.astype(np.float32)).to(own.device)
