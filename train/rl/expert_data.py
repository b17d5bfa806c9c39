"""What a round of expert iteration learns from: positions of the network's own games, and what the expert says about them.

The network plays itself, with noise. Of the positions that are new, those near the end are solved, all others searched: by
alpha-beta over a compiled evaluator, or a few plies deep over the value of the network in training, in large batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from search import evaluators
from search.batch import search_batch
from search.formulas import Formula
from train.games.batch import play_games
from train.games.openings import Openings, passed
from train.judging.exact import ILLEGAL, Boards, by_action, least_squares_scale, move_values
from train.labels.labellers import Plan, searched_scores
from train.rl.network import PolicyValueNet
from train.rl.options import SELF, ExpertOptions
from train.rl.players import NEVER, BatchPolicyPlayer, Counter, Values, network_move_values

#: Games that are played at once: enough that a game's positions are a small part of a round's.
MOST_GAMES, FEWEST_GAMES, POSITIONS_A_GAME = 512, 16, 8
#: Times that so many games are played without a new position before a round takes what it has.
DRY_ROUNDS = 3
#: Solved positions that a formula's values are held against to scale them to discs, at most.
CALIBRATION = 2000


# --- positions ------------------------------------------------------------------------------------


def new_positions(
    net: PolicyValueNet,
    options: ExpertOptions,
    iteration: int,
    known: set[int],
    progress: Counter = lambda done, total: None,
) -> tuple[Boards, Boards]:
    """Positions of games that the network plays against itself, with noise; *known* are hashes, to which theirs are added.

    They depend on the network, the options, the *iteration* and what is known alone. Images of a position count as it. A small
    board may have fewer than are wanted.
    """
    found: dict[int, tuple[int, int]] = {}

    def look(games: NDArray[np.int64], own: Boards, opp: Boards, a_moves: NDArray[np.bool_]) -> None:
        for key, *boards in zip(batch.image_hash(own, opp).tolist(), own.tolist(), opp.tolist(), strict=True):
            if key not in known:
                found.setdefault(key, (boards[0], boards[1]))

    dry = 0
    generator = np.random.default_rng((options.seed, iteration))
    games = min(MOST_GAMES, max(FEWEST_GAMES, options.positions // POSITIONS_A_GAME))
    while len(found) < options.positions and dry < DRY_ROUNDS:
        before = len(found)
        first, second = (
            BatchPolicyPlayer(net, generator.choice(np.array(options.temperatures), games), options.noise)
            for _ in range(2)
        )
        openings, seed = _openings(games, options, generator), int(generator.integers(1 << 32))
        play_games(first, second, openings, options.rules, seed=seed, observer=look)
        dry = dry + 1 if len(found) == before else 0
        progress(min(len(found), options.positions), options.positions)
    keys = list(found)
    chosen = [keys[i] for i in np.sort(generator.permutation(len(keys))[: options.positions])]  # of all stages alike
    known.update(chosen)
    boards = np.array([found[key] for key in chosen], np.uint64).reshape(-1, 2)
    return boards[:, 0].copy(), boards[:, 1].copy()


def _openings(games: int, options: ExpertOptions, generator: np.random.Generator) -> Openings:
    """Positions after random plies, every number up to the options' as likely; a pass is made at once."""
    plies = generator.integers(0, options.opening_plies + 1, games)
    boards = batch.random_positions(games, plies, options.rules, seed=int(generator.integers(1 << 32)))
    own, opp, _ = passed(*boards, options.rules)
    return Openings(own, opp, generator.random(games) < 0.5)


# --- labels ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExpertLabels:
    """Labelled positions, seen by the side to move.

    ``policy``: float32 (N, squares), how likely each action should be. ``value``: float32, discs under perfect or searched
    play. ``exact``: whether they are those of perfect play.
    """

    own: Boards
    opp: Boards
    policy: Values
    value: Values
    exact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.own)


def expert_labels(
    own: Boards,
    opp: Boards,
    rules: Rules,
    plan: Plan,
    temperature: float,
    net: PolicyValueNet | None = None,
    *,
    threads: int | None = None,
    progress: Counter = lambda done, total: None,
) -> ExpertLabels:
    """Label positions, none of which is a pass or over. *net* is the network in training, for a plan of its own search."""
    exact = rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= plan.solved
    values = np.full((len(own), rules.square_count), NEVER, np.float32)
    found = move_values(own[exact], opp[exact], rules, threads=threads, progress=progress)
    values[exact] = np.where(found == ILLEGAL, NEVER, found)
    rest = ~exact
    if rest.any() and plan.evaluator == SELF:
        assert net is not None
        values[rest] = network_move_values(net, own[rest], opp[rest], rules, plan.depth, progress=progress)
    elif rest.any():
        scale = _scale(own[exact], opp[exact], values[exact], rules, plan, threads)
        values[rest] = _searched(own[rest], opp[rest], rules, plan, scale, threads, progress)
    best = values.max(axis=1)
    softmax = np.exp((values - best[:, None]) / temperature)  # exp(-inf) is 0: nothing illegal
    policy = np.where(exact[:, None], values == best[:, None], softmax)
    policy = (policy / policy.sum(axis=1, keepdims=True)).astype(np.float32)
    return ExpertLabels(own, opp, policy, np.clip(best, -rules.square_count, rules.square_count), exact)


def _searched(
    own: Boards, opp: Boards, rules: Rules, plan: Plan, scale: float, threads: int | None, progress: Counter
) -> Values:
    """The searched value of every move in discs; *scale* makes the evaluator's values such, and is not for finished games."""
    children = batch.expand(own, opp, rules)
    beyond, total = replace(plan, depth=plan.depth - 1), len(children.own)  # the move itself is a ply
    how: dict[str, Any] = {"threads": threads, "progress": lambda done: progress(done, total)}
    scores = searched_scores(children.own, children.opp, rules, beyond, **how) * np.float32(scale)
    over = batch.is_over(children.own, children.opp, rules)
    scores[over] = batch.final_scores(children.own[over], children.opp[over], rules)
    return by_action(children, -scores, len(own), rules, NEVER)


def _scale(own: Boards, opp: Boards, exact: Values, rules: Rules, plan: Plan, threads: int | None) -> float:
    """What makes a formula's values discs: the number that brings them nearest to the exact scores of solved positions.

    1 for networks, which speak of discs themselves, and where nothing is solved.
    """
    evaluator = evaluators.get(str(plan.evaluator))
    empties = rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
    rows = np.argsort(-empties, kind="stable")[:CALIBRATION]  # those nearest to the positions that are searched
    if not rows.size or not isinstance(evaluator, Formula):
        return 1.0
    values = search_batch(own[rows], opp[rows], evaluator, rules, 1, threads=threads)
    scale = least_squares_scale(values.astype(float), exact[rows].max(axis=1).astype(float))
    return scale if scale > 0 else 1.0
