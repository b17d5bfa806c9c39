"""`reversi_env.functional` for torch tensors: on the CPU the functions for arrays on the same memory, on a GPU its kernels."""

from typing import Any, cast

import numpy as np

from reversi_env.errors import IllegalMoveError, PositionError, ReversiError, extra_libraries, quoted
from reversi_env.functional import arrays
from reversi_env.functional.state import restored
from reversi_env.kernels import states
from reversi_env.rules import Variant

with extra_libraries():
    import torch

where, copied = torch.where, torch.clone


def stacked(fields: Any, axis: int) -> torch.Tensor:
    return torch.stack(tuple(fields), dim=axis)


def as_array(field: torch.Tensor) -> np.ndarray:
    """Return a field as a numpy array, boards as uint64; a tensor on the CPU shares its memory."""
    array = (field.cpu() if field.is_cuda else field).numpy()
    return array.view(np.uint64) if array.dtype == np.int64 else array


def as_tensor(field: Any, device: Any) -> torch.Tensor:
    """Return a field, a numpy array or a tensor, as a tensor on *device*."""
    if not isinstance(field, torch.Tensor):
        array = np.asarray(field)
        array = array.view(np.int64) if array.dtype == np.uint64 else array
        field = torch.from_numpy(array if array.flags.writeable else array.copy())
    try:
        return field.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ReversiError(f"device={quoted(device)}: {reason}; expected 'cpu' or 'cuda'") from error


def as_words(board: torch.Tensor) -> torch.Tensor:
    if board.dtype != torch.int64:
        raise PositionError(f"boards of {board.dtype}: expected torch.int64, the bits of a board")
    return board


def from_boards(kind: Any, own: torch.Tensor, opp: torch.Tensor, turn: Any) -> Any:
    """Return the states of positions, computed on the CPU."""
    turns = as_array(turn) if isinstance(turn, torch.Tensor) else turn
    state = arrays.from_boards(kind, as_array(own), as_array(opp), turns)
    return kind(*(field.to(own.device) for field in _as_tensors(state)))


def step(state: Any, action: Any, out: Any = None) -> Any:
    if out is None and torch.compiler.is_compiling():
        return type(state)(*_call_operator("step", state, action))
    actions = _as_int64(action, state.own.device)
    if actions is None:
        raise IllegalMoveError(f"actions {quoted(action)}: expected integers from 0 to {state.rules.pass_action}")
    arrays.require_fitting_out(out is None or all(isinstance(field, torch.Tensor) for field in out))
    if state.own.is_cuda:
        return _gpu().step(state, actions, out)
    written = None if out is None else _views(out)
    result = arrays.step(_views(state), actions.numpy(), written)
    return _as_tensors(result) if out is None else out


def legal(state: Any) -> torch.Tensor:
    return _values("legal", state)


def observe(state: Any) -> torch.Tensor:
    return _values("observe", state).view(torch.uint8)


def score(state: Any) -> torch.Tensor:
    return _values("score", state)


def _values(name: str, state: Any) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return _call_operator(name, state)[0]
    values: torch.Tensor = (
        getattr(_gpu(), name)(state) if state.own.is_cuda else torch.from_numpy(getattr(arrays, name)(_views(state)))
    )
    return values


def reward(state: Any, kind: str) -> torch.Tensor:
    result = score(state).to(torch.float32)
    squares = result.new_full((), state.size**2)  # a GPU divides by a number of the host less exactly
    result = result.sign() if kind == "win" else result / squares
    return torch.where(state.status == states.FORFEITED, result, 0 - result)


def symmetry(state: Any, k: Any) -> Any:
    """Return the states under symmetries. If *k* is on a GPU, only its lowest three bits count: a check would wait for the GPU."""
    if torch.compiler.is_compiling():
        return type(state)(*_call_operator("symmetry", state, k))
    numbers = _as_int64(k, state.own.device)
    arrays.check_symmetries(numbers is not None, k)
    assert numbers is not None
    if not (isinstance(k, torch.Tensor) and k.is_cuda):
        indices = np.asarray(k)
        arrays.check_symmetries(bool(((indices >= 0) & (indices < 8)).all()), k)
    if state.own.is_cuda:
        return _gpu().symmetry(state, numbers)
    return _as_tensors(arrays.symmetry(_views(state), numbers.numpy()))


_EAGER: dict[str, Any] = {"step": step, "symmetry": symmetry, "legal": legal, "observe": observe, "score": score}


# --- torch.compile: every function is one call of an operator whose result shapes torch knows -----------------------------


def _call_operator(name: str, state: Any, numbers: Any = 0) -> list[torch.Tensor]:
    tensor = torch.as_tensor(numbers, device=state.own.device)
    fields = [state.own, state.opp, state.legal, state.turn, state.status]  # older torch cannot trace an iteration
    return _operator(name, fields, tensor, state.size, state.variant)


@torch.library.custom_op("reversi_env::functional", mutates_args=())
def _operator(
    name: str, fields: list[torch.Tensor], numbers: torch.Tensor, size: int, variant: str
) -> list[torch.Tensor]:
    state = restored(size, cast(Variant, variant), *fields)
    result = _EAGER[name](state, numbers) if name in ("step", "symmetry") else _EAGER[name](state)
    return [result] if isinstance(result, torch.Tensor) else list(result)


@_operator.register_fake
def _shapes(
    name: str, fields: list[torch.Tensor], numbers: torch.Tensor, size: int, variant: str
) -> list[torch.Tensor]:
    own, status = fields[0], fields[-1]
    if name in ("step", "symmetry"):
        shape = torch.broadcast_shapes(own.shape, numbers.shape)
        return [field.new_empty(shape) for field in fields]
    if name == "score":
        return [status.new_empty(own.shape)]
    if name == "legal":
        return [own.new_empty((*own.shape, size * size + 1), dtype=torch.bool)]
    return [own.new_empty((*own.shape, 2, size, size), dtype=torch.uint8)]


def _as_int64(values: Any, device: Any) -> torch.Tensor | None:
    try:
        tensor = torch.as_tensor(values, device=device)
    except (TypeError, ValueError, RuntimeError):
        return None
    fractions = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
    return None if fractions else tensor.to(torch.int64)


def _views(state: Any) -> Any:
    return type(state)(*(as_array(field) for field in state))


def _as_tensors(state: Any) -> Any:
    own, opp, legal, turn, status = state
    boards = (torch.from_numpy(board.view(np.int64)) for board in (own, opp, legal))
    return type(state)(*boards, torch.from_numpy(turn), torch.from_numpy(status))


def _gpu() -> Any:
    from reversi_env.gpu import states as gpu_states

    return gpu_states
