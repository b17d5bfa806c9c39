"""Fit what one unit of each heuristic's formula is worth in discs: the ``scale`` of the evaluators.

Least squares through the origin against exact scores of positions near the end, half of them from random play and half
from greedy play with random moves in between, for every size. An evaluator takes the scale of the game that it was
written for (marked *); the other rows show how well it predicts there in its reversed form. Positions in which the side
to move must pass are left out: one formula (`four-attribute`) gives them a value out of all proportion.

    python -m studies.evaluators.scales
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import get_args

import numpy as np

from reversi_env import Rules, batch
from reversi_env.rules import Variant
from search import evaluators
from search.kernels.evaluate import static_values
from train.evaluation.exact_set import ExactSet

#: Empty squares of the positions, by board size.
EMPTIES = {8: 12, 6: 10, 4: 6}
#: Share of random moves in greedy play, so that its games differ.
RANDOM_SHARE = 0.25


def greedy_positions(count: int, empties: int, rules: Rules, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions with so many empty squares from play for the best disc difference one ply ahead, one from every game.

    Games that end earlier give none.
    """
    generator = np.random.default_rng(seed)
    own, opp = batch.start(count, rules)
    reached: list[tuple[np.ndarray, np.ndarray]] = []
    while own.size:
        own, opp = greedy_ply(own, opp, rules, generator)
        is_reached = np.bitwise_count(own | opp) == rules.square_count - empties
        reached.append((own[is_reached], opp[is_reached]))
        own, opp = own[~is_reached], opp[~is_reached]
    boards = tuple(np.concatenate(parts) for parts in zip(*reached, strict=True))
    return boards[0], boards[1]


def greedy_ply(
    own: np.ndarray, opp: np.ndarray, rules: Rules, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Every game one ply on; those that are over are left out."""
    children = batch.expand(own, opp, rules)
    gain = rules.sign * (np.bitwise_count(children.opp).astype(float) - np.bitwise_count(children.own))
    at_random = generator.random(own.size) < RANDOM_SHARE
    rank = np.where(at_random[children.parent], 0, gain) + generator.random(gain.size) / 2
    best_last = np.lexsort((rank, children.parent))
    best = best_last[np.diff(children.parent[best_last], append=own.size) != 0]
    return children.own[best], children.opp[best]


def solved_positions(count: int, rules: Rules, seed: int) -> ExactSet:
    """Positions where the side to move has a move, with their exact scores."""
    empties = EMPTIES[rules.size]
    boards = [
        batch.random_positions(count // 2, rules.square_count - 4 - empties, rules, seed=seed),
        greedy_positions(count // 2, empties, rules, seed),
    ]
    own, opp = (np.concatenate(parts) for parts in zip(*boards, strict=True))
    can_move = batch.legal_moves(own, opp, rules) != 0
    return ExactSet.scored(own[can_move], opp[can_move], rules)


def raw_values(evaluator: evaluators.Formula, own: np.ndarray, opp: np.ndarray, rules: Rules) -> np.ndarray:
    """The published formula's value, neither scaled nor kept within limits, in the reversed form where that applies."""
    net = replace(evaluator, scale=1.0).record(rules)
    net["limit"] = np.inf
    return static_values(net, own, opp)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=10_000, help="positions of every game")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'evaluator':20} {'size':>4} {'variant':>9} {'scale':>11} {'correlation':>11} {'error':>6}")
    for rules in (Rules(size, variant) for size in EMPTIES for variant in get_args(Variant)):
        truth = solved_positions(options.positions, rules, options.seed)
        scores = truth.scores
        print(f"{len(truth)} positions, mean {scores.mean():.2f}, deviation {scores.std():.2f} discs")
        for evaluator in map(evaluators.get_formula, evaluators.formulas()):
            raw = raw_values(evaluator, truth.own, truth.opp, rules)
            errors = truth.compare(raw, scaled=True)
            scale, correlation = errors.scale, errors.correlation
            error = np.sqrt(np.mean((scale * raw - scores) ** 2))
            numbers = f"{scale:11.3g} {correlation:11.2f} {error:6.2f} {'*' * (evaluator.sign(rules) > 0)}"
            print(f"{evaluator.name:20} {rules.size:4} {rules.variant:>9} {numbers}", flush=True)


if __name__ == "__main__":
    main()
