"""Fit what one unit of each heuristic's formula is worth in discs: the ``scale`` of the evaluators.

Least squares through the origin against exact scores of positions near the end, half of them from random play and half
from greedy play with random moves in between, for every size. An evaluator is fitted in the game it was written for, or
in both at once; the table shows how well it predicts the others. Positions in which the side to move must pass are left
out: one formula (`four-attribute`) gives them a value out of all proportion.

    python benchmarks/fit_scales.py
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import get_args

import numpy as np

from reversi_env import Rules, Variant, batch
from search import evaluators
from search.core.evaluate import static_values
from search.solver import solve_batch

#: Empty squares of the positions, by board size.
EMPTIES = {8: 12, 6: 10, 4: 6}
#: Share of random moves in greedy play, so that its games differ.
RANDOM_SHARE = 0.25


def greedy_positions(count: int, empties: int, rules: Rules, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions with so many empty squares from play for the best disc difference one ply ahead."""
    generator = np.random.default_rng(seed)
    own, opp = batch.start(count, rules)
    while own.size and (np.bitwise_count(own | opp) < rules.square_count - empties).any():
        children = batch.expand(own, opp, rules)
        gain = rules.sign * (np.bitwise_count(children.opp).astype(float) - np.bitwise_count(children.own))
        at_random = generator.random(own.size) < RANDOM_SHARE
        rank = np.where(at_random[children.parent], 0, gain) + generator.random(gain.size) / 2
        best_last = np.lexsort((rank, children.parent))
        last = np.flatnonzero(np.diff(children.parent[best_last], append=own.size))
        played = np.bitwise_count(children.own | children.opp)[best_last[last]] <= rules.square_count - empties
        own, opp = children.own[best_last[last]][played], children.opp[best_last[last]][played]
    return own, opp


def labelled_positions(count: int, rules: Rules, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (own, opp) where the side to move has a move, and their exact scores for it."""
    empties = EMPTIES[rules.size]
    boards = [
        batch.random_positions(count // 2, rules.square_count - 4 - empties, rules, seed=seed),
        greedy_positions(count // 2, empties, rules, seed),
    ]
    own, opp = (np.concatenate(parts) for parts in zip(*boards, strict=True))
    can_move = batch.legal_moves(own, opp, rules) != 0
    own, opp = own[can_move], opp[can_move]
    return own, opp, solve_batch(own, opp, rules).astype(np.float64)


def raw_values(evaluator: evaluators.Evaluator, own: np.ndarray, opp: np.ndarray, rules: Rules) -> np.ndarray:
    """The published formula's value, neither scaled nor kept within limits, in the reversed form where that applies."""
    net = replace(evaluator, scale=1.0).record(rules)
    net["limit"] = np.inf
    return static_values(net, own, opp)


def fitted_scale(raw: np.ndarray, scores: np.ndarray) -> float:
    """Discs for one unit of the formula, by least squares through the origin."""
    return float(raw @ scores / (raw @ raw))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=10_000, help="positions of every game")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    scales: dict[str, list[str]] = {name: [] for name in evaluators.names()}
    print(f"{'evaluator':20} {'size':>4} {'variant':>9} {'scale':>11} {'correlation':>11} {'error':>6}")
    for size in EMPTIES:
        pooled: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in scales}
        for rules in (Rules(size, variant) for variant in get_args(Variant)):
            own, opp, scores = labelled_positions(options.positions, rules, options.seed)
            for name, evaluator in ((name, evaluators.get(name)) for name in scales):
                raw = raw_values(evaluator, own, opp, rules)
                scale, correlation = fitted_scale(raw, scores), np.corrcoef(raw, scores)[0, 1]
                error = np.sqrt(np.mean((scale * raw - scores) ** 2))
                print(
                    f"{name:20} {size:4} {rules.variant:>9} {scale:11.4g} {correlation:11.3f} {error:6.2f}", flush=True
                )
                if evaluator.written_for in (None, rules.variant):
                    pooled[name].append((raw, scores))
        for name, parts in pooled.items():
            raw, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            scales[name].append(f"{size}: {fitted_scale(raw, scores):.3g}")
    print("\nScales by size, in the game or games that the evaluator was written for:")
    for name, by_size in scales.items():
        print(f"{name:20} {{{', '.join(by_size)}}}")


if __name__ == "__main__":
    main()
