"""The textbook algorithms of game search, in plain Python: to learn from, and to check the compiled engine against.

Each is a function ``search(position, depth, evaluate) -> SearchResult``:

* *depth* is in plies. A pass is forced, so it does not use up depth: a search of depth 3 looks three discs ahead,
  by either side.
* ``evaluate(position)`` values an unfinished position at depth 0: a finite number of discs for the side to
  move, positive if that side is better under the rules' objective. A leaf where the side to move must pass is
  judged as it stands, before the pass.
* A finished game has the value ``position.score()``, which has the sign of the variant already.
* *nodes* counts the positions visited: the root, every inner position and every leaf, each as often as it is reached.
  A position where a side passes is a node, and so is the one after the pass.

All of them return the same value, with different numbers of nodes.

>>> start = Position.initial()
>>> def mobility(position: Position) -> int:
...     return len(position.legal_actions())
>>> [search(start, 4, mobility).value for search in (minimax, negamax, alpha_beta, double_alpha_maximax)]
[5, 5, 5, 5]
>>> negamax(start, 4, mobility).nodes, alpha_beta(start, 4, mobility).nodes
(317, 131)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from reversi_env import Colour, Position
from reversi_env.errors import RulesError, quoted

#: Value of an unfinished position in discs for the side to move.
Evaluate = Callable[[Position], float]

#: The value of a position in discs, and the action with that value (None at a leaf).
ValueAndMove = tuple[float, int | None]

#: Depth at which iterative deepening begins in report 002, in plies.
FIRST_DEPTH = 2
#: Share of the time that report 002 uses.
USABLE_SHARE = 0.8


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
    win: float | None = None
    node_limit: float = inf
    nodes: int = 0
    estimates: int = 0

    def visit(self) -> None:
        """Count a node; raise `_OutOfNodes` beyond the limit."""
        self.nodes += 1
        if self.nodes > self.node_limit:
            raise _OutOfNodes

    def leaf_value(self, position: Position) -> float:
        """Value of a leaf for the side to move; counts it if it is an estimate."""
        self.estimates += not position.is_over()
        return self.static_value(position)

    def static_value(self, position: Position) -> float:
        """Value without search, for the side to move: that of the finished game, or the evaluation."""
        if not position.is_over():
            return self.evaluate(position)
        score = position.score()
        return score if self.win is None else self.win * ((score > 0) - (score < 0))

    def result(self, value_and_move: ValueAndMove, depth: int) -> SearchResult:
        value, move = value_and_move
        return SearchResult(value, move, self.nodes, depth, proven=self.estimates == 0)


class _OutOfNodes(Exception):  # noqa: N818 - it says what is the case
    """The search has visited as many nodes as it may."""


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
    _require_count("depth", depth)
    tree = _Tree(evaluate)
    return tree.result(_max_value(tree, position, depth, prunes=False), depth)


def minimax_pruned(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Minimax that skips branches which cannot matter.

    There are two bounds: *alpha*, the value that Max can already be sure of elsewhere, and *beta*, the value to which
    Min can already hold Max elsewhere. If a position has the value beta or more for Max, Min will avoid it, and its
    other moves are not searched. The same holds for Max and alpha.

    Follows algorithms 3 and 4 of report 000. The recursive line of algorithm 4 is missing in its listing; it is read as
    the mirror image of the one in algorithm 3.
    """
    _require_count("depth", depth)
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
    _require_count("depth", depth)
    tree = _Tree(evaluate)
    return tree.result(_negamax(tree, position, depth, prunes=False), depth)


def alpha_beta(position: Position, depth: int, evaluate: Evaluate) -> SearchResult:
    """Negamax that skips branches which cannot matter.

    *Alpha* is what the side to move can already be sure of, *beta* what the opponent will allow it at most. The
    opponent sees both with the sign changed and the roles exchanged: its window is (-beta, -alpha). Once a move has
    the value beta or more, the opponent will avoid this position, and its other moves are not searched.

    Follows ``evaluateNegamax`` of report 003, with one difference: there a position whose moves all fall short of
    alpha is given the value alpha, here the best value found. Both are upper bounds, and the root comes out the same.
    """
    _require_count("depth", depth)
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


# --- Double-Alpha Maximax, report 002 "Development of a superb AI Program for Reversed Reversi" ---


@dataclass(slots=True)
class ValueTable:
    """The table of report 002: values of boards, used to sort moves, at most *capacity* (its M) entries.

    As in the report, a board is looked up without regard to whose turn it is, its value is kept in white's view
    (colour +1), and a full table takes no more writes, not even a newer value of a board it holds.
    """

    capacity: int = 1_000_000
    values: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_count("table capacity", self.capacity)

    def remember(self, position: Position, value: float) -> None:
        """Store the value of *position* in discs for its side to move."""
        if len(self.values) < self.capacity:
            self.values[position.black, position.white] = value * position.turn

    def value_for(self, colour: Colour, position: Position) -> float | None:
        """Return the value of *position* in discs for *colour*; None if it is not in the table."""
        value = self.values.get((position.black, position.white))
        return None if value is None else value * colour


def double_alpha_maximax(
    position: Position, depth: int, evaluate: Evaluate, table: ValueTable | None = None, win: float | None = None
) -> SearchResult:
    """Alpha-beta with one bound per colour, and with the promising moves first.

    Instead of a window whose ends change places at every ply there are two alphas, each with its colour: the value
    that black can be sure of, in black's view, and the value that white can, in white's view. Both sides maximise,
    hence the name. If the side to move reaches *v*, the other side gets *-v* here; if that is no more than the other
    side's alpha, it will not come here, and the position is left. A pass hands both numbers on unchanged.

    Pruning works best if the best move comes first. So the moves are sorted: those whose board is in *table*, by the
    value found there, then the others by the evaluation. The table lasts from one search to the next (see
    `iterative_deepening`); its values order the moves and are never taken for the result. Positions evaluated only for
    sorting are not nodes.

    Follows section 3.3.3.2 of report 002, where the listing must be read as follows:

    * The recursive call and the table entry in the loop name the old state and value; the position after the move and
      its value are meant. The value of the best move found must also be returned when the loop ends.
    * The alphas are changed in place; each position must change its own copy, or one branch's bounds leak into
      another.
    * With one ply left the first of the sorted moves is returned, with its evaluation. A table value may have put it
      first, so the best by evaluation is taken; and a move that ends the game is worth its score. All those moves
      count as nodes.
    * A pass lowers the remaining depth, which must stay at least 1. Here it costs nothing, as everywhere in this
      module, and the move returned is the pass instead of none.
    * Values there lie in [-1, 1] and the alphas start at -1, so that a proven win ends the search at once. Values in
      discs have no such limits, since the evaluation is anybody's, so the alphas start at minus infinity. With *win*,
      larger than every evaluation, it is as in the report: a finished game is worth *win* to its winner, whatever the
      score, and the alphas start at minus *win*. `search.agents.double_alpha` is that search, compiled.
    """
    _require_count("depth", depth)
    return _double_alpha_search(_Tree(evaluate, win), position, depth, ValueTable() if table is None else table)


def _double_alpha_search(tree: _Tree, position: Position, depth: int, table: ValueTable) -> SearchResult:
    lowest = -inf if tree.win is None else -tree.win
    tree.estimates = 0
    return tree.result(_double_alpha(tree, table, position, depth, alphas=(lowest, lowest)), depth)


def _double_alpha(
    tree: _Tree, table: ValueTable, position: Position, depth: int, alphas: Sequence[float]
) -> ValueAndMove:
    """The value for the side to move: exact if neither colour has better elsewhere. Alphas are black's and white's."""
    tree.visit()
    if _is_leaf(position, depth):
        return tree.leaf_value(position), None
    if position.must_pass():
        after_pass, _ = _double_alpha(tree, table, position.play("pass"), depth, alphas)
        table.remember(position, -after_pass)
        return -after_pass, position.rules.pass_action
    children = [(move, position.play(move)) for move in position.legal_actions()]
    if depth == 1:
        return _best_leaf(tree, children)
    alphas = list(alphas)
    own, other = (position.turn + 1) // 2, (1 - position.turn) // 2
    best_value, best_move = -inf, None
    for move, child in _most_promising_first(children, position.turn, table, tree):
        child_value, _ = _double_alpha(tree, table, child, depth - 1, alphas)
        table.remember(child, child_value)
        if -child_value > best_value:
            best_value, best_move = -child_value, move
            alphas[own] = max(alphas[own], best_value)
        if -best_value <= alphas[other]:
            break
    return best_value, best_move


def _best_leaf(tree: _Tree, children: Sequence[tuple[int, Position]]) -> ValueAndMove:
    tree.nodes += len(children)
    values = [-tree.leaf_value(child) for _, child in children]
    best = max(range(len(children)), key=values.__getitem__)
    return values[best], children[best][0]


def _most_promising_first(
    children: Sequence[tuple[int, Position]], colour: Colour, table: ValueTable, tree: _Tree
) -> list[tuple[int, Position]]:
    """Sort the moves of *colour*, with the positions after them, by table value first and evaluation second."""

    def promise(move_and_child: tuple[int, Position]) -> tuple[bool, float]:
        _, child = move_and_child
        value = table.value_for(colour, child)
        return (False, -tree.static_value(child)) if value is None else (True, value)

    return sorted(children, key=promise, reverse=True)


def iterative_deepening(
    position: Position,
    depth: int,
    evaluate: Evaluate,
    table: ValueTable | None = None,
    win: float | None = None,
    *,
    nodes: float = inf,
    breadth: Callable[[Position, int], float] = lambda position, depth: 1.0,
) -> SearchResult:
    """Search to depth 2, then 3, and so on up to *depth*; each search sorts its moves by the table of the last one.

    The shallow searches cost little compared with the deepest, and the order of moves that they leave in the table
    often saves more than they cost. There is always a move to play, so programs with a time limit search this way.

    The limit is a number of *nodes*, of which the share `USABLE_SHARE` is used. ``breadth(position, depth)`` is how
    many times longer than all before it an iteration to that depth is expected to take. One that would not end in time
    is only begun if the last iteration has changed the best move; if the nodes run out, the last finished one counts.

    Follows section 3.3.3.1 of report 002, where the listing must be read as follows:

    * The time limit is multiplied by q, then compared with q times itself, and the time used is divided by q. Here q
      is the share of the limit that is used, once. The report gives no number, but says that a fifth was left over.
    * It stops on a value of 1, a certain win. Here a search whose leaves were all finished games ends it as well, since
      a deeper one finds the same.
    * The first iteration is always finished, and a limit below 2 is searched directly: there must be a move to play.

    The nodes are those of all iterations together, the depth that of the last one finished.
    """
    _require_count("depth", depth)
    table = ValueTable() if table is None else table
    tree = _Tree(evaluate, win)
    result = _double_alpha_search(tree, position, min(FIRST_DEPTH, depth), table)
    tree.node_limit, last_move = int(USABLE_SHARE * nodes) if nodes < inf else inf, None
    for next_depth in range(FIRST_DEPTH + 1, depth + 1):
        is_quick = tree.nodes * breadth(position, next_depth) < USABLE_SHARE * nodes
        in_time = tree.nodes < USABLE_SHARE * nodes and (is_quick or result.move != last_move)
        if result.proven or result.value == win or not in_time:
            break
        last_move = result.move
        try:
            result = _double_alpha_search(tree, position, next_depth, table)
        except _OutOfNodes:
            break
    return replace(result, nodes=tree.nodes)


def _require_count(name: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise RulesError(f"{name} {quoted(number)}: expected a whole number, 0 or more")
