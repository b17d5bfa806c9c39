"""Self-play of a generation: a tree search chooses the moves, and every position gets a value target and a policy target.

A network that plays only itself does not learn positions that good play avoids, so in some games one side is a greedy opponent.
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

#: Maximum depth of a simulation in plies. Without the kernels of `models.mcts.kernels` a GPU computes this many plies in every
#: simulation, also where the leaf is nearer.
MAX_DEPTH = {"cuda": 12, "cpu": 24}
#: Factor between a probability and its stored value, a uint8.
POLICY_SCALE = 255

#: Exact scores for the side to move, from arrays of boards, own and the opponent's.
BatchSolver = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Positions(NamedTuple):
    """Training positions on the device.

    ``own``, ``opp``: boards of the side to move and of the opponent, int64. ``score``: value target in discs for the side to move,
    float32. ``policy``: policy target over the squares, uint8, `POLICY_SCALE` for 1; all zeros where there is none.
    """

    own: Tensor
    opp: Tensor
    score: Tensor
    policy: Tensor

    @staticmethod
    def concatenate(parts: list[Positions]) -> Positions:
        return Positions(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


#: The columns of `Positions`, in order.
COLUMNS = tuple(Positions.__annotations__)


class ChosenMoves(NamedTuple):
    """Actions to play, values in discs for the side to move, and policies as in `Positions`.

    ``is_greedy``: the action is the greedy opponent's; value and policy are still those of the search.
    """

    action: Tensor
    value: Tensor
    policy: Tensor
    is_greedy: Tensor

    @staticmethod
    def zeros(count: int, rules: Rules, device: torch.device) -> ChosenMoves:
        policy = torch.zeros((count, rules.square_count), dtype=torch.uint8, device=device)
        action, value, is_greedy = (
            policy.new_zeros(count, dtype=kind) for kind in (torch.int64, torch.float32, torch.bool)
        )
        return ChosenMoves(action, value, policy, is_greedy)


class Ply(NamedTuple):
    """All games at one ply, and the moves chosen there; ``active``: the game is not over, its position is a training position."""

    state: State
    moves: ChosenMoves
    active: Tensor


#: Takes the states of some games and the indices of these games; returns their moves.
MoveChooser = Callable[[State, Tensor], ChosenMoves]


def make_search(
    network: PolicyValueFunction, options: SelfPlayOptions, device: torch.device, threads: int | None = 1
) -> TreeSearch:
    on_gpu = device.type == "cuda"
    return TreeSearch(
        network,
        options.rules,
        options.simulations,
        method=options.search,
        max_considered_actions=options.max_considered_actions,
        exact=0 if on_gpu else options.exact,  # solving leaves on a GPU would make the host wait in every simulation
        threads=threads,
        max_depth=MAX_DEPTH[device.type],
        compiled=on_gpu,
    )


def play_generation(
    search: TreeSearch,
    solve: BatchSolver,
    options: SelfPlayOptions,
    seed: int,
    device: torch.device,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Positions:
    """Play the games of a generation and return their positions; *on_progress* gets the number of plies played."""
    rules, rng = options.rules, torch.Generator(device).manual_seed(seed)
    opening_plies = torch.randint(options.opening_plies + 1, (options.games,), generator=rng, device=device)

    def choose(state: State, games: Tensor) -> ChosenMoves:
        moves = search_positions(search, state, options.games, rng, options.temperature)
        apply_greedy_opponent(moves, state, games, options, rng)
        return moves

    start = play_random_openings(rules, opening_plies, rng)
    plies, final_state = play_games(start, choose, rules, lambda done: on_progress(done, rules.square_count))
    return value_targets(plies, final_state, solve, rules, options.exact, options.td_lambda)


def random_actions(state: State, rng: torch.Generator) -> Tensor:
    """Return a random legal action of each game, the pass where it is the only one."""
    legal = functional.legal(state)
    return (legal * (1 + torch.rand(legal.shape, generator=rng, device=legal.device))).argmax(1)


def greedy_actions(state: State, rng: torch.Generator) -> Tensor:
    """Return the action of each game with the best disc difference right after it; ties are broken at random."""
    legal = functional.legal(state)
    rows, actions = legal.nonzero(as_tuple=True)
    after = functional.step(functional.take(state, rows), actions)
    gains = torch.full(legal.shape, -torch.inf, device=legal.device)
    tie_noise = torch.rand(rows.shape, generator=rng, device=legal.device)
    gains[rows, actions] = state.rules.sign * (bit_counts(after.opp) - bit_counts(after.own)) + tie_noise
    return gains.argmax(1)


def apply_greedy_opponent(
    moves: ChosenMoves, state: State, games: Tensor, options: SelfPlayOptions, rng: torch.Generator
) -> None:
    """Replace the actions of the greedy opponent.

    It plays in the first ``greedy_share`` of the games, as black in games with an even index and as white in the others.
    """
    is_greedy = (games < options.greedy_share * options.games) & (games % 2 == state.turn)
    moves.action[is_greedy] = greedy_actions(functional.take(state, is_greedy), rng)
    moves.is_greedy[is_greedy] = True


def search_positions(
    search: TreeSearch, state: State, chunk_size: int, rng: torch.Generator | None = None, temperature: float = 1.0
) -> ChosenMoves:
    """Search positions, at most *chunk_size* at a time; on a GPU always that many, since a CUDA graph has fixed shapes.

    Values are in discs. With *rng* actions are sampled: by Gumbel noise times *temperature*, or with PUCT from the visit counts.
    """
    count, device, parts = state.shape[0], state.own.device, list[ChosenMoves]()
    noise, by_visits = None if rng is None else search.noise(count, rng), search.method == "puct"
    if noise is not None and not by_visits:
        noise *= temperature
    for start in range(0, count, chunk_size):
        end = start + chunk_size if state.own.is_cuda else min(count, start + chunk_size)
        rows = torch.arange(start, end, device=device) % count
        output = search.run(functional.take(state, rows), None if noise is None else noise[rows])
        action = output.action
        if by_visits and rng is not None and temperature:
            weights = output.policy if temperature == 1 else _apply_temperature(output.policy, temperature)
            action = torch.multinomial(weights, 1, generator=rng).squeeze(1)
        policy = (POLICY_SCALE * output.policy[:, :-1]).round().to(torch.uint8)
        value = search.rules.square_count * output.value.float()
        parts.append(ChosenMoves(action, value, policy, torch.zeros_like(action, dtype=torch.bool)))
    if not parts:
        return ChosenMoves.zeros(0, search.rules, device)
    return ChosenMoves(*(torch.cat(columns)[:count] for columns in zip(*parts, strict=True)))


def _apply_temperature(policy: Tensor, temperature: float) -> Tensor:
    """Return weights for sampling; the largest is 1, so that no power of a small share underflows."""
    return (policy / policy.amax(1, keepdim=True)) ** (1 / temperature)


def play_random_openings(rules: Rules, plies: Tensor, rng: torch.Generator) -> State:
    """Return games after *plies* random plies each; a game that would end earlier stays in its last state before the end."""
    state = functional.init(len(plies), rules, device=plies.device)
    for ply in range(int(plies.max())):
        after = functional.step(state, random_actions(state, rng))
        state = functional.where((plies > ply) & ~functional.is_over(state), after, state)
    return state


def play_games(
    state: State, choose: MoveChooser, rules: Rules, on_progress: Callable[[int], None] = lambda plies: None
) -> tuple[list[Ply], State]:
    """Play games to their end; return all plies and the final states."""
    plies = list[Ply]()
    while (active := ~functional.is_over(state)).any():
        on_progress(len(plies))
        rows, moves = active.nonzero().squeeze(1), ChosenMoves.zeros(len(active), rules, active.device)
        for column, chosen in zip(moves, choose(functional.take(state, rows), rows), strict=True):
            column[rows] = chosen
        plies.append(Ply(state, moves, active))
        state = functional.where(active, functional.step(state, moves.action), state)
    return plies, state


def value_targets(
    plies: list[Ply], final_state: State, solve: BatchSolver, rules: Rules, exact: int, td_lambda: float
) -> Positions:
    """Return all positions with TD(λ) value targets; those with at most *exact* empties get their exact score.

    The greedy opponent may play a bad move, which says little about the position before it. The target of such a position is
    therefore the higher of the search's value and the value that follows from the move.
    """
    near_end = []
    for state, _, active in plies:
        empties = rules.square_count - bit_counts(state.own | state.opp)
        near_end.append((active & (empties <= exact)).nonzero().squeeze(1))
    boards = zip(
        *((ply.state.own[rows], ply.state.opp[rows]) for ply, rows in zip(plies, near_end, strict=True)), strict=True
    )
    own, opp = (torch.cat(side) for side in boards)
    solved = exact_values(solve, own, opp).split([len(rows) for rows in near_end])  # one large batch suits a GPU
    target, parts = functional.score(final_state).float(), list[Positions]()
    for (state, moves, active), rows, scores in zip(reversed(plies), reversed(near_end), reversed(solved), strict=True):
        mixed = td_lambda * -target + (1 - td_lambda) * moves.value
        improved = torch.where(moves.is_greedy, torch.maximum(moves.value, -target), mixed)
        target = torch.where(active, improved, target)
        target[rows] = scores
        parts.append(Positions(*(column[active] for column in (state.own, state.opp, target, moves.policy))))
    return Positions.concatenate(parts)


def exact_values(solve: BatchSolver, own: Tensor, opp: Tensor) -> Tensor:
    """Return exact scores for the side to move, on the device of the boards."""
    scores = solve(*(side.cpu().numpy().view(np.uint64) for side in (own, opp)))
    return torch.from_numpy(scores.astype(np.float32)).to(own.device)
