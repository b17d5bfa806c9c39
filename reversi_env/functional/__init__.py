"""Games as values: pure states and functions over them, for tree search, planning and learners that branch.

A `State` is a named tuple of five arrays of one shape, any shape. `step` returns another state and changes none, so states can be
stored, indexed, stacked and branched. All functions take numpy arrays and torch tensors. For arrays, and for tensors on the CPU,
they run the compiled rules of the environments; for tensors on a GPU, the same rules in one kernel launch per call, on torch's
current stream. The ``device`` of `init` selects one of these; torch is imported with the first tensor.

* Games: `init`, `from_boards`; `step`; `legal`, `observe`, `is_over`, `reward`, `score`, `symmetry`.
* States as data: `take`, `clone`, `stack`, `where`, `to`.

The games are those of the environments in two-player mode: turns alternate, passes are actions, an illegal action forfeits the
game. A number out of range raises an `IllegalMoveError`; on a GPU it forfeits, since a check would have to wait for the GPU.

>>> import numpy as np
>>> state = init(3, Rules(6))
>>> state = step(state, legal(state).argmax(-1))
>>> state.shape, observe(state).shape, legal(state).shape
((3,), (3, 2, 6, 6), (3, 37))

Broadcasting branches: all actions of all games.

>>> children = step(take(state, np.s_[:, None]), np.arange(37))
>>> children.shape, int((~is_over(children)).sum()) == int(legal(state).sum())
((3, 37), True)
"""

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np

from reversi_env.envs.settings import Settings, game_seeds, no_start_error
from reversi_env.errors import PositionError, ReversiError, quoted
from reversi_env.functional import arrays
from reversi_env.functional.state import NORMAL_8X8, State, state_type
from reversi_env.kernels import episodes, states
from reversi_env.rules import Rules, checked_rules

__all__ = [
    "State",
    "clone",
    "from_boards",
    "init",
    "is_over",
    "legal",
    "observe",
    "reward",
    "score",
    "stack",
    "step",
    "symmetry",
    "take",
    "to",
    "where",
]

_NO_POOL = np.zeros(0, episodes.POOL)


def init(
    shape: int | Sequence[int] = (),
    rules: Rules = NORMAL_8X8,
    seed: int | None = None,
    *,
    opening_plies: int = 0,
    empties: int | None = None,
    device: Any = None,
) -> State:
    """Games at their start, or after random play.

    Args:
        shape: shape of the arrays; a number is the length of one axis.
        rules: the game and its start.
        seed: random seed: game *i*, counted row by row, starts as an environment with ``seed + i`` does. None: other games at
            every call.
        opening_plies: number of random plies before the start.
        empties: random plies follow until at most this many squares are empty.
        device: None for numpy arrays, else a torch device: ``"cpu"``, ``"cuda"``.

    """
    games = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in games):
        raise ReversiError(f"shape={quoted(shape)}: expected integers of at least 0")
    rules = checked_rules(rules)
    settings = Settings(rules.size, rules.variant, start=rules.start, opening_plies=opening_plies, empties=empties)
    count = int(np.prod(games)) if opening_plies or empties is not None else 1
    records = np.zeros(count, episodes.STATE)
    entropy = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else seed
    every = np.ones(count, np.bool_)
    episodes.seed_all(records, game_seeds(entropy, count)[0], every)
    episodes.begin_all(count, records, settings.game(), _NO_POOL, every)
    if records["failed"].any():
        raise no_start_error(settings)
    fields = [records[name] for name in ("own", "opp", "legal", "turn", "over")]
    if count == 1:  # all alike
        fields = [np.full(games, field[0]) for field in fields]
    state = state_type(rules.size, rules.variant)(*(field.reshape(games).copy() for field in fields))
    return state if device is None else to(state, device)


def from_boards(own: Any, opp: Any, rules: Rules = NORMAL_8X8, turn: Any = 0) -> State:
    """States of positions: boards of the side to move and of the other side, as bits of the frame, and the side to move.

    The boards are two numpy arrays (or numbers) of uint64, or two tensors of int64, of one shape; *turn*: 0 black, 1 white.
    """
    backend = _backend(own)
    boards = [backend.as_words(board) for board in (own, opp)]
    if boards[0].shape != boards[1].shape:
        raise PositionError(f"boards of shape {boards[0].shape} and {boards[1].shape}: expected the same")
    return cast(State, backend.from_boards(state_type(rules.size, rules.variant), *boards, turn))


def step(state: State, action: Any, out: State | None = None) -> State:
    """The states after *action*: integers, the board's squares row by row and then the pass.

    Shapes are broadcast: one action for all games, or all actions for each of them. A game that is over stays as it is; an
    illegal action forfeits it. *out*: states to write to, of the shape of the result; they may be *state* itself.
    """
    return cast(State, _backend(state.own).step(state, action, out))


def legal(state: State) -> Any:
    """The legal actions, bool (…, squares + 1). The last one, the pass, is legal where no square is, also at the end."""
    return _backend(state.own).legal(state)


def observe(state: State) -> Any:
    """The environments' planes: own discs and the opponent's as 0 and 1, (…, 2, size, size); int8 in arrays, uint8 in tensors."""
    return _backend(state.own).observe(state)


def is_over(state: State) -> Any:
    """Which games are over, bool."""
    return state.status != states.RUNNING


def score(state: State) -> Any:
    """The results of finished games in discs for the side to move, int8, empty squares to the winner; 0 before the end.

    Positive means that this side won, in the reversed game by having fewer discs. A side that forfeits loses all squares.
    """
    return _backend(state.own).score(state)


def reward(state: State, kind: Literal["win", "discs"] = "win") -> Any:
    """The environments' reward of the last step for the player that made it, float32: 0 before the end.

    ``"win"``: 1, 0 or -1. ``"discs"``: the score over the board's squares; an illegal action gets -1.
    """
    if kind not in ("win", "discs"):
        raise ReversiError(f"kind={quoted(kind)}: expected 'win' or 'discs'")
    return _backend(state.own).reward(state, kind)


def symmetry(state: State, k: Any) -> State:
    """The states under symmetry *k*, 0 to 7 as in `reversi_env.kernels.symmetry`: one number, or one for each game.

    ``reversi_env.batch.action_images(size)[k, action]`` is the image of an action.
    """
    return cast(State, _backend(state.own).symmetry(state, k))


def take(state: State, index: Any) -> State:
    """The games at *index*, anything that indexes an array: views or copies as in numpy or torch."""
    return type(state)(*(field[index] for field in state))


def clone(state: State) -> State:
    """A copy that shares no memory with *state*."""
    return type(state)(*(_backend(field).copied(field) for field in state))


def stack(states: Sequence[State], axis: int = 0) -> State:
    """States of one game and shape along a new axis."""
    if not states or any(state.rules != states[0].rules for state in states):
        raise ReversiError(f"{len(states)} states: expected some, all of one game")
    backend = _backend(states[0].own)
    return type(states[0])(*(backend.stacked(fields, axis) for fields in zip(*states, strict=True)))


def where(condition: Any, state: State, other: State) -> State:
    """*state* where the condition holds, *other* elsewhere: ``where(is_over(state), init(n), state)`` restarts finished games."""
    if state.rules != other.rules:
        raise ReversiError(f"states of {state.rules} and {other.rules}: expected one game")
    choose = _backend(state.own).where
    return type(state)(*(choose(condition, one, two) for one, two in zip(state, other, strict=True)))


def to(state: State, device: Any) -> State:
    """The states as tensors on a torch device, or as numpy arrays if *device* is None; memory is shared where possible."""
    if device is None:
        return type(state)(*(_backend(field).as_array(field) for field in state))
    from reversi_env.functional import tensors

    return type(state)(*(tensors.as_tensor(field, device) for field in state))


def _backend(field: Any) -> Any:
    """Return the module for this kind of array."""
    if isinstance(field, (np.ndarray, np.generic, int, list, tuple)):
        return arrays
    if not hasattr(field, "is_cuda"):
        raise ReversiError(
            f"array of {type(field).__module__}.{type(field).__qualname__}: expected numpy arrays or torch tensors; "
            f"np.from_dlpack and torch.from_dlpack convert others"
        )
    from reversi_env.functional import tensors

    return tensors
