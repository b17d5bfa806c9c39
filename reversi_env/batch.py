"""The rules over arrays of positions, at compiled speed and with the GIL released.

Positions are two uint64 arrays: `own`, the discs of the side to move, and `opp`. Squares are 0-63 on the 8x8 frame, and
64 is the pass. Large batches run on several threads, one per core; with ``parallel=False`` they run on the calling thread,
with ``parallel=True`` small batches run on several threads too. The results are the same.

>>> import numpy as np
>>> own, opp = start(1000)
>>> [int(moves) for moves in np.unique(legal_moves(own, opp))] == [Position.initial().legal_board()]
True
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env.errors import IllegalMoveError, PositionError, RulesError, check_integer, quoted
from reversi_env.kernels import arrays as loops
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.kernels.games import count_random_plies, random_positions_loop
from reversi_env.kernels.parallel import Loop
from reversi_env.position import Position
from reversi_env.rules import Rules, checked_rules

Boards = NDArray[np.uint64]
Squares = NDArray[np.int64]
NORMAL_8X8 = Rules()
MAX_SEED = 2**64 - 1


class Children(NamedTuple):
    """All children of a batch: child *j* comes from position ``parent[j]`` by ``square[j]``, seen by the next side to move."""

    parent: Squares
    square: Squares
    own: Boards
    opp: Boards


def start(count: int, rules: Rules = NORMAL_8X8) -> tuple[Boards, Boards]:
    """*count* copies of the start position."""
    black, white = rules.start_boards
    return np.full(count, black, np.uint64), np.full(count, white, np.uint64)


def from_positions(positions: list[Position]) -> tuple[Boards, Boards]:
    """The boards (own, opp) of a list of positions."""
    return np.array([p.own for p in positions], np.uint64), np.array([p.opp for p in positions], np.uint64)


def legal_moves(own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None) -> Boards:
    """Board of legal squares for every position."""
    return _each(loops.legal_moves, np.uint64, own, opp, rules, parallel)


def flips(
    squares: ArrayLike, own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None
) -> Boards:
    """Discs that are flipped when each position's side to move plays on its square; empty where the move is illegal or a pass."""
    own, opp = checked_boards(own, opp, rules)
    squares = _squares(squares, own)
    out = np.empty_like(own)
    loops.flips(own.size, squares, own, opp, out, parallel=parallel)
    off = np.uint64(rules.playable) >> (squares & 63).astype(np.uint64) & np.uint64(1) == 0
    out[off] = 0
    return out


def play(
    squares: ArrayLike, own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None
) -> tuple[Boards, Boards]:
    """Boards (own, opp) after each move or pass, seen by the next side to move. An illegal move raises and names its index."""
    own, opp = checked_boards(own, opp, rules)
    squares = _squares(squares, own)
    next_own, next_opp, legal = np.empty_like(own), np.empty_like(opp), np.empty(own.size, np.bool_)
    loops.play(own.size, squares, own, opp, np.uint64(rules.playable), next_own, next_opp, legal, parallel=parallel)
    if not legal.all():
        index = int(np.argmin(legal))
        boards = f"own {own[index]:#x}, opp {opp[index]:#x}"
        raise IllegalMoveError(f"square {squares[index]} in position {index} ({boards}): expected a legal move or pass")
    return next_own, next_opp


def is_over(
    own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None
) -> NDArray[np.bool_]:
    """Whether neither side can move."""
    return _each(loops.is_over, np.bool_, own, opp, rules, parallel)


def final_scores(
    own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None
) -> NDArray[np.int8]:
    """Scores of finished games in discs for the side to move: positive means that it won under the rules' objective."""
    return _each(loops.final_score, np.int8, own, opp, rules, parallel) * np.int8(rules.sign)


def frontier(own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None) -> Boards:
    """Own discs that touch an empty square."""
    return _each(loops.frontier, np.uint64, own, opp, rules, parallel)


def stable_discs(own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None) -> Boards:
    """Own discs that can provably never be flipped."""
    return _each(loops.stable_discs, np.uint64, own, opp, rules, parallel)


def planes(own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8) -> NDArray[np.uint8]:
    """Observation planes of every position: uint8 (n, 2, size, size), own discs and the opponent's, 0 and 1."""
    boards = np.stack([np.asarray(own, np.uint64), np.asarray(opp, np.uint64)], axis=1)[:, :, None]
    squares = np.array(list(rules.squares()), np.uint64)
    return (boards >> squares & np.uint64(1)).astype(np.uint8).reshape(-1, 2, rules.size, rules.size)


def canonical(
    own: ArrayLike, opp: ArrayLike, *, parallel: bool | None = None
) -> tuple[Boards, Boards, NDArray[np.int8]]:
    """The smallest of each position's eight images, and the symmetry that leads to it."""
    own, opp = checked_boards(own, opp)
    out_own, out_opp, symmetry = np.empty_like(own), np.empty_like(opp), np.empty(own.size, np.int8)
    loops.canonical(own.size, own, opp, out_own, out_opp, symmetry, parallel=parallel)
    return out_own, out_opp, symmetry


def position_hash(own: ArrayLike, opp: ArrayLike, *, parallel: bool | None = None) -> Boards:
    own, opp = checked_boards(own, opp)
    out = np.empty_like(own)
    loops.position_hash(own.size, own, opp, out, parallel=parallel)
    return out


def image_hash(own: ArrayLike, opp: ArrayLike) -> Boards:
    """A 64-bit hash of every position, the same for all its eight images."""
    return position_hash(*canonical(own, opp)[:2])


def expand(own: ArrayLike, opp: ArrayLike, rules: Rules = NORMAL_8X8, *, parallel: bool | None = None) -> Children:
    """All children of all positions; a position that must pass has one child, a finished one none."""
    own, opp = checked_boards(own, opp, rules)
    playable = np.uint64(rules.playable)
    counts = np.empty(own.size, np.int64)
    loops.count_moves(own.size, own, opp, playable, counts, parallel=parallel)
    first_child = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    total = int(first_child[-1])
    children = Children(
        np.repeat(np.arange(own.size), counts),
        np.empty(total, np.int64),
        np.empty(total, np.uint64),
        np.empty(total, np.uint64),
    )
    loops.expand(
        own.size, own, opp, playable, first_child, children.square, children.own, children.opp, parallel=parallel
    )
    return children


def random_positions(
    count: int, plies: ArrayLike, rules: Rules = NORMAL_8X8, *, seed: int = 0, parallel: bool | None = None
) -> tuple[Boards, Boards]:
    """Positions after random legal play from the start: *plies* moves and passes each (one number, or one for every position).

    A game that ends earlier is replaced by another random game, so that every position has a history of exactly that length.
    A `RulesError` is raised if a hundred games in a row end earlier.
    """
    rules = checked_rules(rules)
    check_integer("count", count, 0, error=RulesError)
    check_integer("seed", seed, 0, MAX_SEED, RulesError)
    array, max_plies = np.asarray(plies), 2 * rules.square_count
    fits = array.dtype.kind in "iu" and array.shape in ((), (count,))
    if not fits or (array < 0).any() or (array > max_plies).any():
        raise RulesError(f"plies {quoted(plies)}: expected 0 to {max_plies}, for all or for each of {count} positions")
    lengths = np.broadcast_to(array.astype(np.int64), (count,)).copy()
    own, opp = start(count, rules)
    reached = np.empty(count, np.bool_)
    random_positions_loop(
        count, own, opp, np.uint64(rules.playable), lengths, np.uint64(seed), reached, parallel=parallel
    )
    if not reached.all():
        raise RulesError(f"plies {int(lengths[~reached].max())}: every random game ended earlier, expected fewer")
    return own, opp


def random_plies(games: int, rules: Rules = NORMAL_8X8, *, seed: int = 0, parallel: bool | None = None) -> int:
    """Play *games* random games from the start and return the total number of plies, passes included."""
    rules = checked_rules(rules)
    check_integer("games", games, 0, error=RulesError)
    check_integer("seed", seed, 0, MAX_SEED, RulesError)
    black, white = (np.uint64(board) for board in rules.start_boards)
    lengths = np.empty(games, np.int64)
    count_random_plies(games, black, white, np.uint64(rules.playable), np.uint64(seed), lengths, parallel=parallel)
    return int(lengths.sum())


def _each(run: Loop, dtype: Any, own: ArrayLike, opp: ArrayLike, rules: Rules, parallel: bool | None) -> NDArray[Any]:
    """Return the results of a loop with one output per position."""
    own, opp = checked_boards(own, opp, rules)
    out = np.empty(own.size, dtype)
    run(own.size, own, opp, np.uint64(rules.playable), out, parallel=parallel)
    return out


def checked_boards(own: ArrayLike, opp: ArrayLike, rules: Rules | None = None) -> tuple[Boards, Boards]:
    """Return the two boards of a batch as contiguous uint64 arrays, or raise a `PositionError`."""
    arrays = []
    for name, board in (("own", own), ("opp", opp)):
        array = np.asarray(board)
        if array.ndim != 1 or array.dtype.kind not in "ui":
            raise PositionError(f"{name} of {array.dtype} and shape {array.shape}: expected uint64, one-dimensional")
        arrays.append(np.ascontiguousarray(array, np.uint64))
    if arrays[0].size != arrays[1].size:
        raise PositionError(f"own has {arrays[0].size} boards and opp {arrays[1].size}: expected equally many")
    own_boards, opp_boards = arrays
    if (overlap := own_boards & opp_boards).any():
        index = int(np.argmax(overlap != 0))
        raise PositionError(f"discs of both colours on one square in position {index}: expected one disc per square")
    if rules is not None and ((own_boards | opp_boards) & ~np.uint64(rules.playable)).any():
        raise PositionError(f"a disc outside the board: expected discs on the {rules.size}x{rules.size} board only")
    return own_boards, opp_boards


def _squares(squares: ArrayLike, own: Boards) -> Squares:
    """Check and convert the squares of a batch; one number serves all positions."""
    array = np.asarray(squares)
    if array.dtype.kind not in "ui" or array.ndim > 1 or array.size not in (1, own.size):
        raise PositionError(f"squares of {array.dtype} and shape {array.shape}: expected {own.size} integers")
    wrong = array[(array < 0) | (array > PASS_SQUARE)]
    if wrong.size:
        raise PositionError(f"square {int(wrong.flat[0])}: expected 0 to 63, or 64 to pass")
    return np.broadcast_to(array.astype(np.int64), own.shape).copy()


SYMMETRIES = 8


def square_image(sq: int, symmetry: int) -> int:
    """Return the image of a square of the 8x8 frame, as `reversi_env.kernels.symmetry.transform` maps it, without compilation."""
    row, column = divmod(sq, 8)
    if symmetry & 1:
        row = 7 - row
    if symmetry & 2:
        column = 7 - column
    return 8 * column + row if symmetry & 4 else 8 * row + column


@cache
def action_images(size: int) -> np.ndarray:
    """Return ``images[k, action]``: the action on the image of the square under symmetry *k*; the pass is its own image."""
    rules = Rules(size)
    images = [
        [*(rules.action_of(square_image(sq, symmetry)) for sq in rules.squares()), rules.pass_action]
        for symmetry in range(SYMMETRIES)
    ]
    return np.array(images, np.int64)


def action_table(rules: Rules) -> NDArray[np.int64]:
    """Return the action of every square of the frame, -1 outside the board; the pass at `PASS_SQUARE`."""
    table = np.full(PASS_SQUARE + 1, -1, np.int64)
    for action, square in enumerate(rules.squares()):
        table[square] = action
    table[PASS_SQUARE] = rules.pass_action
    return table


def by_action(children: Children, values: NDArray[Any], count: int, rules: Rules, illegal: float) -> NDArray[Any]:
    """Return the values of the children of *count* positions as a table (count, squares) without passes."""
    table = np.full((count, rules.square_count + 1), illegal, values.dtype)
    table[children.parent, action_table(rules)[children.square]] = values
    return table[:, :-1]
