"""Games of the teacher with itself, all in step on one device, and what their positions turned out to be worth.

A game begins with random moves, so that no two are alike; then the best move one ply ahead is played, or one that is hardly
worse. From a number of empty squares on all positions are solved. Before, a position is worth what the game went on to be worth,
mixed with its value one ply ahead.

A network that is shown nothing but what it chooses learns that the other side is better off than it thought: what it chooses is
what it overrates. So positions aside of the games are shown too, after a random move; they are solved, or worth what they seem to
be worth by themselves and one ply ahead, in the mean. And some games are played perfectly where positions are solved: there all
moves are, and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from models.boards import after_move, bit_counts, board_planes, legal_moves, planes
from reversi_env import Rules
from reversi_env.envs.torch_vector import TorchVectorEnv
from reversi_env.extras import extra_libraries
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
#: The number that stands for 1 in a policy.
ONE = 255

Values = Callable[[Tensor, Tensor], Tensor]
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

    ``ahead``: the value of the best move one ply ahead, in discs; ``policy``: how good all moves are. ``kept``: whether the game
    is past its first random moves, and goes on. ``solved``: positions after all moves in the games that are played perfectly.
    """

    own: Tensor
    opp: Tensor
    empties: Tensor
    ahead: Tensor
    policy: Tensor
    kept: Tensor
    solved: Positions


def play(values: Values | None, solve: Solve, options: TeacherOptions, seed: int, device: torch.device) -> Positions:
    """The positions of a generation's games, by the network whose *values* are given; without, of random games' endgames.

    *solve* gives exact scores of arrays of boards.
    """
    generator = torch.Generator(device).manual_seed(seed)
    plies = list(_plies(values, solve, options, generator, seed, device))
    parts = [_of_games(plies, solve, options, learnt=values is not None), *(ply.solved for ply in plies)]
    if options.aside:
        parts.append(_aside(plies, values, solve, options, generator))
    return Positions.together(parts)


# --- the games ------------------------------------------------------------------------------------


def _plies(
    values: Values | None,
    solve: Solve,
    options: TeacherOptions,
    generator: torch.Generator,
    seed: int,
    device: torch.device,
) -> Iterator[Ply]:
    """Play all games, and tell of every moment of them."""
    rules, count = options.rules, options.games
    games = TorchVectorEnv(count, device=device, layout="packed", size=rules.size, variant=rules.variant)
    games.reset(seed=seed)
    first = _random_moves(options, generator, device) if values is not None else torch.zeros_like(games.legal)
    going_on = torch.ones(count, dtype=torch.bool, device=device)
    perfect = torch.arange(count, device=device) < options.perfect * count
    for number in range(2 * rules.square_count):
        own, opp = games.boards.T.clone()
        empties = rules.square_count - bit_counts(own | opp)
        going_on = going_on & (empties >= options.fewest)
        if not going_on.any():
            return
        kept = going_on & (first <= number)
        legal = board_planes(games.legal, rules.size).flatten(1) > 0
        moves = torch.where(legal, 0.0, NO_VALUE)
        if values is not None:
            moves[kept] = move_values(values, own[kept], opp[kept], rules)
        ends = kept & perfect & (empties <= options.exact + 1)
        moves[ends], solved = solved_moves(solve, own[ends], opp[ends], rules)
        yield Ply(own, opp, empties, _best(values, moves, own, opp, kept, rules), _policy(moves, values), kept, solved)
        # with Gumbel's noise the best number is a draw from the softmax; without, the best move
        noise = torch.empty_like(moves).exponential_(generator=generator).log_().neg_()
        numbers = moves / options.temperature + torch.where(ends[:, None], 0.0, noise)
        drawn = torch.where(legal, numbers, NO_NUMBER).argmax(1)
        terminated = games.step(torch.where(games.legal == 0, rules.pass_action, drawn))[2]
        going_on = going_on & ~terminated


def _random_moves(options: TeacherOptions, generator: torch.Generator, device: torch.device) -> Tensor:
    """How many random moves each game begins with: few in most, so that good play of all phases is seen."""
    share = torch.rand(2, options.games, generator=generator, device=device)
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
    worth, parts = torch.full_like(plies[0].ahead, torch.nan), list[Positions]()
    for ply, chosen, scores in zip(reversed(plies), reversed(rows), reversed(solved), strict=True):
        mixed = options.trace * -worth + (1 - options.trace) * ply.ahead
        worth = torch.where(worth.isnan(), ply.ahead, mixed)
        worth[chosen] = scores
        found = ply.kept & (learnt & (ply.empties > options.exact))
        found[chosen] = True
        parts.append(Positions(ply.own[found], ply.opp[found], worth[found], ply.policy[found]))
        worth = torch.where(ply.kept, worth, torch.nan)
    return Positions.together(parts)


# --- positions aside of them ----------------------------------------------------------------------


def _aside(
    plies: list[Ply], values: Values | None, solve: Solve, options: TeacherOptions, generator: torch.Generator
) -> Positions:
    """Positions after a random move from a share of those of the games, where a move is possible."""
    rules = options.rules
    of_games = torch.cat([torch.stack([ply.own, ply.opp], 1)[ply.kept] for ply in plies])
    drawn = torch.rand(len(of_games), generator=generator, device=of_games.device) < options.aside
    own, opp = of_games[drawn].T
    own, opp = random_children(own, opp, rules, generator)
    empties = rules.square_count - bit_counts(own | opp)
    wanted = (legal_moves(own, opp, rules.playable) != 0) & (empties >= options.fewest)
    if values is None:
        wanted &= empties <= options.exact
    own, opp, empties = own[wanted], opp[wanted], empties[wanted]
    score, near = torch.zeros(len(own), device=own.device), empties <= options.exact
    score[near] = exact_values(solve, own[near], opp[near])
    moves = torch.zeros((len(own), rules.square_count), device=own.device)
    if values is not None:
        moves = move_values(values, own, opp, rules)
        far = ~near
        score[far] = (moves[far].amax(1) + true_values(values, own[far], opp[far], rules)) / 2
    return Positions(own, opp, score, _policy(moves, values))


def random_children(own: Tensor, opp: Tensor, rules: Rules, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Boards after one random legal move, as the next side sees them; positions without a move are left out."""
    legal = legal_moves(own, opp, rules.playable)
    own, opp, legal = own[legal != 0], opp[legal != 0], legal[legal != 0]
    likely = planes(legal).float()
    drawn = (likely * (1 + torch.rand(likely.shape, generator=generator, device=own.device))).argmax(1)
    return after_move(own, opp, drawn)


# --- values ---------------------------------------------------------------------------------------


def move_values(values: Values, own: Tensor, opp: Tensor, rules: Rules) -> Tensor:
    """Values of all moves one ply ahead in discs for the side to move, ``(n, squares)``; `NO_VALUE` where one is not legal."""
    legal = board_planes(legal_moves(own, opp, rules.playable), rules.size).flatten(1) > 0
    found = torch.where(legal, 0.0, NO_VALUE)
    rows, actions = legal.nonzero(as_tuple=True)
    children = after_move(own[rows], opp[rows], _squares(rules, own.device)[actions])
    found[rows, actions] = -true_values(values, *children, rules)
    return found


def solved_moves(solve: Solve, own: Tensor, opp: Tensor, rules: Rules) -> tuple[Tensor, Positions]:
    """What `move_values` has, exactly, and the solved positions after the moves: those where the next side can move."""
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


def true_values(values: Values, own: Tensor, opp: Tensor, rules: Rules) -> Tensor:
    """Values in discs for the side to move: the score where a game is over, else the network's, kept within the board."""
    most = rules.square_count
    guessed = values(own, opp).clamp(-most + 0.5, most - 0.5)
    over = (legal_moves(own, opp, rules.playable) | legal_moves(opp, own, rules.playable)) == 0
    mine, theirs = bit_counts(own), bit_counts(opp)
    difference = mine - theirs
    score = difference + difference.sign() * (most - mine - theirs)  # empty squares are the winner's
    return torch.where(over, rules.sign * score.to(guessed.dtype), guessed)


def _best(values: Values | None, moves: Tensor, own: Tensor, opp: Tensor, kept: Tensor, rules: Rules) -> Tensor:
    """The values of the best moves; a pass has that of what follows."""
    best = moves.amax(1)
    passes = kept & (best == NO_VALUE)
    if values is not None:
        best[passes] = -true_values(values, opp[passes], own[passes], rules)
    return best


def _policy(moves: Tensor, values: Values | None) -> Tensor:
    """How good each move is, as `Positions` has it, by the values of all; nothing where they are not known, or of a pass."""
    if values is None:
        return torch.zeros_like(moves, dtype=torch.uint8)
    likely = (ONE * torch.softmax(moves / POLICY_TEMPERATURE, 1)).round().to(torch.uint8)
    return torch.where((moves > NO_VALUE).any(1, keepdim=True), likely, 0)


def exact_values(solve: Solve, own: Tensor, opp: Tensor) -> Tensor:
    """Exact scores for the side to move, on the device of the boards."""
    scores = solve(*(side.cpu().numpy().view(np.uint64) for side in (own, opp)))
    return torch.from_numpy(scores.astype(np.float32)).to(own.device)
