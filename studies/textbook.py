"""The textbook algorithms of game search, in plain Python: to learn from, and to check the compiled engine against.

Each is a function ``search(position, depth, evaluate) -> SearchResult``:

* *depth* is in plies. A pass is forced, so it does not use up depth: a search of depth 3 looks three discs ahead,
  by either side.
* ``evaluate(position)`` values an unfinished position at depth 0: a finite number of discs for the side to
  move, positive if that side is better under the rules' objective. A leaf where the side to move must pass is
  evaluated before the pass.
* A finished game has the value ``position.score()``, which has the sign of the variant already.
* *nodes* counts the positions visited: the root, every inner position and every leaf, each as often as it is reached.
  A position where a side passes is a node, and so is the one after the pass.

All of them return the same value, with different numbers of nodes.

>>> start = Position.initial()
>>> def mobility(position: Position) -> int:
...     return len(position.legal_actions())
>>> [search(start, 4, mobility).value for search in (minimax, negamax, alpha_beta)]
[5, 5, 5]
>>> negamax(start, 4, mobility).nodes, alpha_beta(start, 4, mobility).nodes
(317, 131)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from reversi_env import Position

#: Value of an unfinished position in discs for the side to move.
Evaluate = Callable[[Position], float]

#: The value of a position in discs, and the action with that value (None at a leaf).
ValueAndMove = tuple[float, int | None]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search."""

    value: float  #: in discs, for the side to move
    move: int | None  #: the action with that value, the first such one searched; None if the root is a leaf
    nodes: int  #: positions visited
    depth: int  #: depth searched, in plies
    proven: bool  #: whether every leaf was a finished game, so that no deeper search can change the value


@dataclass(slots=True)
class _Tree:
    """The evaluation of the leaves of one search, and its counts."""

    evaluate: Evaluate
    nodes: int = 0
    estimates: int = 0

    def leaf_value(self, position: Position) -> float:
        """Return the value of a leaf for the side to move; counts it if it is an estimate."""
        if position.is_over():
            return position.score()
        self.estimates += 1
        return self.evaluate(position)

    def result(self, value_and_move: ValueAndMove, depth: int) -> SearchResult:
        value, move = value_and_move
        return SearchResult(value, move, self.nodes, depth, proven=self.estimates == 0)


def _is_leaf(position: Position, depth: int) -> bool:
    return depth == 0 or position.is_over()


def _children(position: Position, depth: int) -> Iterator[tuple[int, Position, int]]:
    """Every legal action with the position after it and the depth left there. This is where a pass costs no depth."""
    for move in position.legal_actions():
        is_pass = move == position.rules.pass_action
        yield move, position.play(move), depth if is_pass else depth - 1


# --- minimax, report 000 "Reverse-Reversi" --------------------------------------------------------


def minimax(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Search the whole tree, one player maximising and the other minimising the same number.

    The player at the root is called Max, the opponent Min, and every value is Max's. Where Max is to move the value is
    the greatest among the children (`_max_value`), where Min is to move it is the least (`_min_value`): each player
    assumes that the other one answers with the best move. The two functions call each other down to the leaves.

    Follows algorithms 1 and 2 of report 000. Its evaluation is written for the player to move, but max and min need the
    values of one player, so the sign of a leaf where Min is to move is changed here. Passes are not mentioned there.
    """
    tree = _Tree(evaluate)
    return tree.result(_max_value(tree, position, depth, prunes=False), depth)


def minimax_pruned(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Minimax that skips branches which cannot matter.

    There are two bounds: *alpha*, the value that Max already has with another move, and *beta*, the value to which
    Min can already limit Max with another move. If a position has the value beta or more for Max, Min will avoid it, and its
    other moves are not searched. The same holds for Max and alpha.

    Follows algorithms 3 and 4 of report 000. The recursive line of algorithm 4 is missing in its listing; it is read as
    the mirror image of the one in algorithm 3.
    """
    tree = _Tree(evaluate)
    return tree.result(_max_value(tree, position, depth, prunes=True), depth)


def _max_value(
    tree: _Tree, position: Position, depth: int, alpha: float = -inf, beta: float = inf, *, prunes: bool
) -> ValueAndMove:
    """Return the value for Max, with Max to move: exact between alpha and beta, otherwise a bound on that side."""
    tree.nodes += 1
    if _is_leaf(position, depth):
        return tree.leaf_value(position), None
    best_value, best_move = -inf, None
    for move, child, depth_left in _children(position, depth):
        value, _ = _min_value(tree, child, depth_left, alpha, beta, prunes=prunes)
        if value > best_value:
            best_value, best_move = value, move
        if prunes and best_value >= beta:
            break
        alpha = max(alpha, best_value) if prunes else alpha
    return best_value, best_move


def _min_value(tree: _Tree, position: Position, depth: int, alpha: float, beta: float, *, prunes: bool) -> ValueAndMove:
    """Return the value for Max, with Min to move: exact between alpha and beta, otherwise a bound on that side."""
    tree.nodes += 1
    if _is_leaf(position, depth):
        return -tree.leaf_value(position), None
    best_value, best_move = inf, None
    for move, child, depth_left in _children(position, depth):
        value, _ = _max_value(tree, child, depth_left, alpha, beta, prunes=prunes)
        if value < best_value:
            best_value, best_move = value, move
        if prunes and best_value <= alpha:
            break
        beta = min(beta, best_value) if prunes else beta
    return best_value, best_move


# --- negamax, report 003 "Comp 6721, Project 2" ---------------------------------------------------


def negamax(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Minimax with one function instead of two.

    What one player wins the other loses, so a position's value for one side is minus its value for the other. If every
    value is given for the side to move, both sides maximise, and the value of a move is minus the value of the
    position after it.

    Follows section 2 of report 003, without its pruning, which is `alpha_beta`. There the choice at the root changes
    the sign of all children but the first; here it is changed for all.
    """
    tree = _Tree(evaluate)
    return tree.result(_negamax(tree, position, depth, prunes=False), depth)


def alpha_beta(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Negamax that skips branches which cannot matter.

    *Alpha* is a lower bound that the side to move already has, *beta* an upper bound that the opponent will allow. The
    opponent sees both with the sign changed and the roles exchanged: its window is (-beta, -alpha). Once a move has
    the value beta or more, the opponent will avoid this position, and its other moves are not searched.

    Follows ``evaluateNegamax`` of report 003, with one difference: there a position whose moves all fall short of
    alpha is given the value alpha, here the best value found. Both are upper bounds, and the root comes out the same.
    """
    tree = _Tree(evaluate)
    return tree.result(_negamax(tree, position, depth, prunes=True), depth)


def _negamax(
    tree: _Tree, position: Position, depth: int, alpha: float = -inf, beta: float = inf, *, prunes: bool
) -> ValueAndMove:
    """Return the value for the side to move: exact between alpha and beta, otherwise a bound on that side."""
    tree.nodes += 1
    if _is_leaf(position, depth):
        return tree.leaf_value(position), None
    best_value, best_move = -inf, None
    for move, child, depth_left in _children(position, depth):
        value = -_negamax(tree, child, depth_left, -beta, -alpha, prunes=prunes)[0]
        if value > best_value:
            best_value, best_move = value, move
        alpha = max(alpha, value) if prunes else alpha
        if alpha >= beta:
            break
    return best_value, best_move
