"""`reversi_env.functional` for numpy arrays; `tensors` calls these functions with views of the memory of tensors on the CPU."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from reversi_env.envs.settings import Settings
from reversi_env.errors import IllegalMoveError, PositionError, ReversiError, quoted
from reversi_env.kernels import states
from reversi_env.rules import Rules

#: A state's arrays: boards, turn, status.
DTYPES = (np.uint64, np.uint64, np.uint64, np.int8, np.int8)

stacked, where, copied = np.stack, np.where, np.array


@cache
def game_of(rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """The kernels' `GAME` record, as an array of one, and the frame's squares of the actions."""
    settings = Settings(rules.size, rules.variant)
    return settings.game(), settings.squares()


def as_array(field: Any) -> np.ndarray:
    return np.asarray(field)


def as_words(board: Any) -> np.ndarray:
    array = np.asarray(board)
    if array.dtype.kind not in "ui":
        raise PositionError(f"boards of {array.dtype}: expected integers, the bits of a board")
    return array.astype(np.uint64, copy=False)


def from_boards(kind: Any, own: np.ndarray, opp: np.ndarray, turn: Any) -> Any:
    game, _ = game_of(kind.rules)
    if (own & opp).any() or ((own | opp) & ~game["playable"][0]).any():
        size = kind.rules.size
        raise PositionError(f"boards that overlap or leave the {size}x{size} board: expected discs on it")
    shape, boards = own.shape, (_flat(own, own.shape), _flat(opp, own.shape))
    legal, status = np.empty(own.size, np.uint64), np.empty(own.size, np.int8)
    states.start_states(own.size, *boards, game, legal, status)
    turns = np.asarray(turn)
    if turns.dtype.kind not in "iu" or not np.isin(turns, (0, 1)).all():
        raise PositionError(f"turn {quoted(turn)}: expected 0 where black is to move, and 1 where white is")
    turns = np.broadcast_to(turns.astype(np.int8), shape).copy()
    return kind(own.copy(), opp.copy(), legal.reshape(shape), turns, status.reshape(shape))


def step(state: Any, action: Any, out: Any = None) -> Any:
    actions = np.asarray(action)
    if actions.dtype.kind not in "iu":
        raise IllegalMoveError(f"actions of {actions.dtype}: expected integers from 0 to {state.rules.pass_action}")
    if actions.size and (actions.min() < 0 or actions.max() > state.rules.pass_action):
        wrong = actions[(actions < 0) | (actions > state.rules.pass_action)].flat[0]
        raise IllegalMoveError(f"action {wrong}: expected 0 to {state.rules.pass_action}")
    shape = broadcast_shape(np.broadcast_shapes, state.shape, actions.shape)
    if out is None:
        out = type(state)(*(np.empty(shape, dtype) for dtype in DTYPES))
    else:
        check_out(out, type(state), shape)
        require_fitting_out(all(field.flags.c_contiguous for field in out))
    columns = [_flat(field, shape) for field in state]
    own, opp, *rest = (field.reshape(-1) for field in out)
    game, _ = game_of(state.rules)
    states.step_states(
        own.size, *columns, _flat(actions.astype(np.int64, copy=False), shape), game, own, opp, tuple(rest)
    )
    return out


def legal(state: Any) -> np.ndarray:
    _, squares = game_of(state.rules)
    boards = _flat(state.legal, state.shape)
    masks = np.empty((boards.size, squares.size + 1), np.bool_)
    states.write_masks(boards.size, boards, squares, masks)
    return masks.reshape(*state.shape, masks.shape[-1])


def observe(state: Any) -> np.ndarray:
    _, squares = game_of(state.rules)
    own, opp = (_flat(field, state.shape) for field in state[:2])
    planes = np.empty((own.size, 2 * squares.size), np.int8)
    states.write_planes(own.size, own, opp, squares, planes)
    return planes.reshape(*state.shape, 2, state.rules.size, state.rules.size)


def score(state: Any) -> np.ndarray:
    own, opp, _, _, status = (_flat(field, state.shape) for field in state)
    scores = np.empty(own.size, np.int8)
    states.score_states(own.size, own, opp, status, game_of(state.rules)[0], scores)
    return scores.reshape(state.shape)


def reward(state: Any, kind: str) -> np.ndarray:
    """The rewards of the players that acted: the side to move if it has forfeited, else the other one."""
    result = score(state).astype(np.float32)
    result = np.sign(result) if kind == "win" else result / np.float32(state.rules.square_count)
    return np.where(state.status == states.FORFEITED, result, 0 - result)


def symmetry(state: Any, k: Any) -> Any:
    numbers = np.asarray(k)
    check_symmetries(numbers.dtype.kind in "iu" and bool(((numbers >= 0) & (numbers < 8)).all()), k)
    shape = broadcast_shape(np.broadcast_shapes, state.shape, numbers.shape)
    each = _flat(numbers.astype(np.int64, copy=False), shape)
    boards = []
    for field in state[:3]:
        transformed = np.empty(each.size, np.uint64)
        states.transform_boards(each.size, _flat(field, shape), each, transformed)
        boards.append(transformed.reshape(shape))
    return type(state)(*boards, *(np.broadcast_to(field, shape).copy() for field in state[3:]))


def _flat(field: Any, shape: Sequence[int]) -> np.ndarray:
    """Return the field, broadcast to *shape*, as one contiguous row; without a copy if possible."""
    if type(field) is np.ndarray and field.shape == shape and field.flags.c_contiguous:
        return field.reshape(-1)
    return np.ascontiguousarray(np.broadcast_to(field, shape).reshape(-1))


def broadcast_shape(broadcast: Any, shape: Any, other: Any) -> Any:
    if shape == other:
        return shape
    try:
        return broadcast(tuple(shape), tuple(other))
    except (ValueError, RuntimeError) as error:
        shapes = f"states of shape {tuple(shape)} and numbers of shape {tuple(other)}"
        raise ReversiError(f"{shapes}: expected shapes that broadcast") from error


def check_out(out: Any, kind: Any, shape: Any) -> None:
    require_fitting_out(type(out) is kind and all(tuple(field.shape) == tuple(shape) for field in out))


def require_fitting_out(fits: bool) -> None:
    if not fits:
        raise ReversiError("out: expected states of the same game and of the result's shape, contiguous in memory")


def check_symmetries(valid: bool, k: Any) -> None:
    if not valid:
        raise ReversiError(f"symmetry {quoted(k)}: expected integers from 0 to 7")
