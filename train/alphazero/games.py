"""The games of a generation (`train.alphazero.playing`), whose moves AlphaZero's search chooses, and positions aside of them.

A network knows positions like those that it has seen, and players whom it has met. So in some games one side is a stranger, who
takes whatever he can; some are played perfectly where positions are solved, and there those after all moves are shown; and
positions aside of the games, after a random move, may be shown too, solved or searched.
"""

from __future__ import annotations

from collections.abc import Callable

from models.boards import after_move, bit_counts, board_planes, legal_moves, planes
from models.residual import Answers
from models.tree_search import TreeSearch
from reversi_env import Rules, functional
from reversi_env.extras import extra_libraries
from reversi_env.functional import State
from train.alphazero.options import SelfPlayOptions
from train.alphazero.playing import (
    ONE,
    Chosen,
    Ply,
    Positions,
    Solve,
    empties,
    exact_values,
    opened,
    played,
    searched,
    worth,
)

with extra_libraries():
    import torch
    from torch import Tensor

#: What stands for the value of a move that is not legal, below every value.
NO_VALUE = -1000.0
#: Discs less in value that make a move e times less likely in the policy that is learnt where all moves are solved.
POLICY_TEMPERATURE = 1.0
#: Plies that a simulation goes down at most: without kernels (`models.tree_kernels`) a GPU, which is not waited for, always does.
DEEPEST = {"cuda": 12, "cpu": 24}


def search_of(network: Answers, options: SelfPlayOptions, device: torch.device, threads: int | None = 1) -> TreeSearch:
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
    options: SelfPlayOptions,
    seed: int,
    device: torch.device,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Positions:
    """The positions of a generation's games. *solve* gives exact scores of arrays of boards; *tell* is told the plies played."""
    rules, generator = options.rules, torch.Generator(device).manual_seed(seed)
    first = torch.randint(options.plies + 1, (options.games,), generator=generator, device=device)
    shown = list[Positions]()

    def choose(state: State, games: Tensor) -> Chosen:
        found = searched(search, state, options.games, generator, options.temperature)
        let_strangers_in(found, state, games, options, generator)
        if options.perfect and options.exact:
            shown.append(play_perfectly(found, state, games, options, solve))
        return found

    start = opened(rules, first, generator)
    plies, last = played(start, choose, rules, lambda done: tell(done, rules.square_count))
    parts = [worth(plies, last, solve, rules, options.exact, options.trace), *shown]
    if options.aside:
        parts.append(_aside(plies, search, solve, options, generator))
    return Positions.together(parts)


# --- who plays, beside the search -----------------------------------------------------------------


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
    theirs = (games < options.strangers * options.games) & (games % 2 == state.turn)
    found.action[theirs] = greedy_actions(functional.take(state, theirs), generator)
    found.strange[theirs] = True


def play_perfectly(found: Chosen, state: State, games: Tensor, options: SelfPlayOptions, solve: Solve) -> Positions:
    """Let the solver have the moves in its games, the last ones, one ply before positions are solved: those after all moves."""
    far = games < (1 - options.perfect) * options.games
    near = ~far & (empties(state, options.rules) <= options.exact + 1) & (state.legal != 0)
    moves, solved = solved_moves(solve, state.own[near], state.opp[near], options.rules)
    policy = (ONE * torch.softmax(moves / POLICY_TEMPERATURE, 1)).round().to(torch.uint8)
    found.action[near], found.value[near], found.policy[near] = moves.argmax(1), moves.amax(1), policy
    return solved


def solved_moves(solve: Solve, own: Tensor, opp: Tensor, rules: Rules) -> tuple[Tensor, Positions]:
    """Exact values of all moves in discs for the side to move, ``(n, squares)``, `NO_VALUE` where one is not legal.

    And the solved positions after the moves: those where the next side can move.
    """
    legal = board_planes(legal_moves(own, opp, rules.playable), rules.size).flatten(1) > 0
    found, (rows, actions) = torch.where(legal, 0.0, NO_VALUE), legal.nonzero(as_tuple=True)
    squares = torch.tensor(list(rules.squares()), device=own.device)
    mine, theirs = after_move(own[rows], opp[rows], squares[actions])
    scores = exact_values(solve, mine, theirs)
    found[rows, actions] = -scores
    wanted = legal_moves(mine, theirs, rules.playable) != 0
    policy = torch.zeros((int(wanted.sum()), rules.square_count), dtype=torch.uint8, device=own.device)
    return found, Positions(mine[wanted], theirs[wanted], scores[wanted], policy)


# --- positions aside of them ----------------------------------------------------------------------


def _aside(
    plies: list[Ply], search: TreeSearch, solve: Solve, options: SelfPlayOptions, generator: torch.Generator
) -> Positions:
    """Positions after a random move from a share of those of the games, where a move is possible."""
    rules = options.rules
    of_games = torch.cat([torch.stack([ply.own, ply.opp], 1)[ply.kept] for ply in plies])
    drawn = torch.rand(len(of_games), generator=generator, device=of_games.device) < options.aside
    own, opp = of_games[drawn].T
    own, opp = random_children(own, opp, rules, generator)
    wanted = legal_moves(own, opp, rules.playable) != 0
    own, opp = own[wanted], opp[wanted]
    near = rules.square_count - bit_counts(own | opp) <= options.exact
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
