"""What the expert says: for every position the value of each move, and what a policy should learn from them.

Positions near the end are solved, all others searched: by alpha-beta over a compiled evaluator, or a few plies deep over the value
of the network in training, in large batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.extras import extra_libraries
from search import evaluators
from search.batch import search_batch
from search.formulas import Formula
from train.judging.exact import ILLEGAL, Boards, action_table, move_values
from train.judging.rescaling import least_squares_scale
from train.labels.labellers import Plan
from train.rl.expert_options import SELF
from train.rl.network import PolicyValueNet

with extra_libraries():
    import torch

#: Positions that go through the network at once.
BATCH = 2048
#: Positions whose moves the network's own search looks at together: some hundred thousand leaves.
OWN_CHUNK = 1024
#: Solved positions that a formula's values are held against to scale them to discs, at most.
CALIBRATION = 2000
#: Value of an action that is illegal.
NEVER = -np.inf

Values = NDArray[np.float32]
Counter = Callable[[int, int], None]


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
    exact = rules.square_count - np.bitwise_count(own | opp).astype(np.int64) <= max(plan.exact, plan.depth)
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
    scores = np.zeros(len(children.own), np.float32)
    for number, plies in enumerate(range(plan.depth - plan.mean, plan.depth)):  # the move itself is a ply
        before, total = number * len(scores), plan.mean * len(scores)
        scores += search_batch(
            *(children.own, children.opp, evaluators.get(str(plan.evaluator)), rules, plies),
            threads=threads,
            progress=lambda done, before=before, total=total: progress(before + done, total),  # type: ignore[misc]
        ) * np.float32(scale / plan.mean)
    over = batch.is_over(children.own, children.opp, rules)
    scores[over] = batch.final_scores(children.own[over], children.opp[over], rules)
    return _by_action(children, -scores, len(own), rules)


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


def _by_action(children: batch.Children, values: NDArray[np.floating], count: int, rules: Rules) -> Values:
    """Values of children as a table of positions and actions; a position that must pass has no action here."""
    table = np.full((count, rules.square_count + 1), NEVER, np.float32)
    table[children.parent, action_table(rules)[children.square]] = values
    return table[:, :-1]


# --- the network's own search ---------------------------------------------------------------------


def network_values(net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules) -> Values:
    """The network's values in discs for the side to move; scores of games that are over."""
    values = np.empty(len(own), np.float32)
    over = batch.is_over(own, opp, rules)
    values[over] = batch.final_scores(own[over], opp[over], rules)
    going = np.flatnonzero(~over)
    for start in range(0, going.size, BATCH):
        rows = going[start : start + BATCH]
        values[rows] = rules.square_count * net.of_boards(own[rows], opp[rows])[1].to("cpu", torch.float32).numpy()
    return values


def network_move_values(
    net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules, depth: int, *, progress: Counter = lambda *_: None
) -> Values:
    """Value of every move by a full search of *depth* plies, the move included, over the network's value; `NEVER` if illegal.

    A pass uses up no depth. All leaves below many positions go through the network together, so that nothing is cut off: at two or
    three plies that is faster than asking for a few at a time.
    """
    parts = []
    for start in range(0, len(own), OWN_CHUNK):
        rows = slice(start, start + OWN_CHUNK)
        children = batch.expand(own[rows], opp[rows], rules)
        values = _negamax(net, children.own, children.opp, rules, depth - 1)
        parts.append(_by_action(children, -values, len(own[rows]), rules))
        progress(min(start + OWN_CHUNK, len(own)), len(own))
    return np.concatenate(parts) if parts else np.zeros((0, rules.square_count), np.float32)


def _negamax(net: PolicyValueNet, own: Boards, opp: Boards, rules: Rules, depth: int) -> Values:
    if depth == 0:
        return network_values(net, own, opp, rules)
    children = batch.expand(own, opp, rules)  # none of a game that is over, the pass alone where there is no move
    passes = batch.legal_moves(own, opp, rules)[children.parent] == 0
    below = np.empty(len(children.own), np.float32)
    for mask, left in ((passes, depth), (~passes, depth - 1)):
        if mask.any():
            below[mask] = _negamax(net, children.own[mask], children.opp[mask], rules, left)
    values = np.full(len(own), NEVER, np.float32)
    np.maximum.at(values, children.parent, -below)
    over = batch.is_over(own, opp, rules)
    values[over] = batch.final_scores(own[over], opp[over], rules)
    return values
