"""Games of the teacher with itself (`train.teacher.playing`), and positions aside of them.

Who is shown what one look ahead chooses, learns that the side to move is better off than it is in good games: a choice by a
search corrects many of the mistakes that the network makes at a glance. Positions aside of the games are shown too, after a
random move, solved or searched. And some games are played perfectly where positions are solved: there all moves are, and shown.
"""

from __future__ import annotations

from models.boards import after_move, bit_counts, board_planes, legal_moves, planes
from models.residual import Answers
from models.tree_search import TreeSearch
from reversi_env import Rules, functional
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.teacher.options import TeacherOptions
from train.teacher.playing import (
    ONE,
    Chosen,
    Ply,
    Positions,
    Solve,
    empties,
    exact_values,
    let_strangers_in,
    opened,
    played,
    random_actions,
    searched,
    worth,
)

with extra_libraries():
    import torch
    from torch import Tensor

#: What stands for the value of a move that is not legal, below every value; for the number of one, below every number.
NO_VALUE, NO_NUMBER = -1000.0, -1e9
#: Share of the games with few random moves at the beginning, and how many those have at most, as a share of the others' most.
SHORT_SHARE, SHORT_MOST = 0.6, 0.3
#: Discs less in value that make a move e times less likely in the policy that is learnt.
POLICY_TEMPERATURE = 1.0
#: Plies that the search goes down at most: few simulations do not come further.
DEEPEST = 8


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
    rules, count, generator = options.rules, options.games, torch.Generator(device).manual_seed(seed)
    shown = list[Positions]()

    def choose(state: State, games: Tensor) -> Chosen:
        if search is None:
            found = Chosen.nothing(len(games), rules, device)._replace(action=random_actions(state, generator))
        else:
            found = searched(search, state, count, generator, options.temperature)
            let_strangers_in(found, state, games, options, generator)
        near = (
            (games >= (1 - options.perfect) * count) & (empties(state, rules) <= options.exact + 1) & (state.legal != 0)
        )
        moves, solved = solved_moves(solve, state.own[near], state.opp[near], rules)
        found.action[near], found.value[near], found.policy[near] = moves.argmax(1), moves.amax(1), _policy(moves)
        shown.append(solved)
        return found

    first = random_moves(count, options, generator, device)
    plies, last = played(opened(rules, first, generator), choose, rules, options.fewest)
    if search is None:  # nothing is known of the positions before
        plies = [ply._replace(kept=ply.kept & (empties(ply, rules) <= options.exact)) for ply in plies]
    parts = [worth(plies, last, solve, rules, options.exact, options.trace), *shown]
    if options.aside:
        parts.append(_aside(plies, search, solve, options, generator))
    return Positions.together(parts)


def gumbel(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """Gumbel's noise: with it the best number is a draw from the softmax."""
    return torch.empty(shape, device=device).exponential_(generator=generator).log_().neg_()


def random_moves(games: int, options: TeacherOptions, generator: torch.Generator, device: torch.device) -> Tensor:
    """How many random moves each game begins with: few in most, so that good play of all phases is seen."""
    share = torch.rand(2, games, generator=generator, device=device)
    most = options.rules.square_count - 8 - options.exact
    most_of_game = torch.where(share[0] < SHORT_SHARE, SHORT_MOST * most, float(most))
    return (share[1] * most_of_game).long()


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
    left = rules.square_count - bit_counts(own | opp)
    wanted = (legal_moves(own, opp, rules.playable) != 0) & (left >= options.fewest)
    own, opp, near = own[wanted], opp[wanted], (left <= options.exact)[wanted]
    score = torch.zeros(len(own), device=own.device)
    policy = torch.zeros((len(own), rules.square_count), dtype=torch.uint8, device=own.device)
    if search is not None:
        _, score, policy, _ = searched(search, functional.from_boards(own, opp, rules), options.games)
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
