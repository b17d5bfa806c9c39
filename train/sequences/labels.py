"""`label_games`: the truth about every position of token sequences, on the device of the tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_planes, board_tensor
from models.gpt.tokens import PADDING, Vocabulary
from reversi_env import Position, Rules, batch, functional
from reversi_env.errors import TrainError, extra_libraries, quoted
from reversi_env.functional import State
from reversi_env.kernels.states import FORFEITED, RUNNING
from search.exact_scores import ExactScores
from train.labels.labellers import exact_scores
from train.sequences.options import StreamOptions

with extra_libraries():
    import torch
    from torch import Tensor

#: Positions with at most so many empties have exact values by default: a whole 4x4 game, else milliseconds each.
SOLVED_EMPTIES = {4: 12, 6: 12, 8: 10}


def label_games(
    tokens: Tensor,
    options: StreamOptions,
    names: Iterable[str] = ("board", "legal"),
    *,
    empties: int | None = None,
) -> dict[str, Tensor]:
    """Return the labels *names* of every token: tensors ``(games, tokens, …)`` about the position after it.

    Squares are those of the board, row by row. After the end of a game, and from an illegal token on, all labels are 0.

    * ``board``: int8 (…, squares), 1 black, -1 white; ``relative``: 1 for the side to move, -1 for the other one, 0 at the end.
    * ``legal``, ``flipped``, ``stable``: bool (…, squares): legal moves of the side to move, discs that the move flipped, and
      discs of either colour that no move can flip any more (the last one is computed on the CPU).
    * ``mobility``: int8, number of legal moves; ``parity``: int8, 1 if the number of empty squares is odd.
    * ``values``: float32 (…, squares), exact score of every legal move in discs for the side to move, under the rules' objective;
      NaN elsewhere, and in positions with more than *empties* empty squares that have no move in the solved book.
    * ``to_move``: int8, 1 black, -1 white, 0 after the end.
    """
    [rules, *_], vocabulary = options.rules, options.vocabulary
    states = _replay(tokens, rules, vocabulary)
    is_running, turn = (states.status == RUNNING) & (states.own != 0), 1 - 2 * states.turn
    own, opp = functional.observe(states).flatten(-2).view(torch.int8).unbind(-2)
    board = (own - opp) * turn[..., None]

    def flipped() -> Tensor:
        start = functional.observe(functional.init((), rules, device=tokens.device)).flatten(-2).view(torch.int8)
        before = torch.cat([(start[0] - start[1]).expand_as(board[:, :1]), board[:, :-1]], 1)
        return board * before < 0

    def stable() -> Tensor:
        mine, theirs = (_words(side) for side in (states.own, states.opp))
        discs = batch.stable_discs(mine, theirs, rules) | batch.stable_discs(theirs, mine, rules)
        return board_planes(board_tensor(discs), rules.size).reshape(board.shape).bool().to(tokens.device)

    def values() -> Tensor:
        result = torch.full_like(board, torch.nan, dtype=torch.float32)
        for game in options.rules:
            rows = is_running & (states.legal != 0)
            if vocabulary.rules:
                rows &= tokens[:, vocabulary.num_prefix - 1, None] == vocabulary.prefix(game.variant)[-1]
            most = SOLVED_EMPTIES[options.size] if empties is None else empties
            sides = _words(states.own[rows]), _words(states.opp[rows])
            result[rows] = torch.from_numpy(_exact_values(*sides, game, most, tokens.device.type)).to(tokens.device)
        return result

    labels: dict[str, Callable[[], Tensor]] = {
        "board": lambda: board,
        "relative": lambda: board * labels["to_move"]()[..., None],
        "legal": lambda: functional.legal(states)[..., :-1],
        "flipped": flipped,
        "stable": stable,
        "mobility": lambda: labels["legal"]().sum(-1, dtype=torch.int8),
        "parity": lambda: board.sum(-1, dtype=torch.int8) & 1,  # of the discs, since the number of squares is even
        "values": values,
        "to_move": lambda: turn * is_running,
    }
    if unknown := set(names) - labels.keys():
        raise TrainError(f"label {quoted(min(unknown))}: expected {', '.join(labels)}")
    return {name: labels[name]() for name in names}


def legal_tokens(tokens: Tensor, options: StreamOptions) -> Tensor:
    """Return which tokens may follow each token of the games, ``(games, length, num_tokens)``, bool."""
    states = _replay(tokens, options.rules[0], options.vocabulary)
    is_running = (states.status == RUNNING) & (states.own != 0)
    return of_tokens(functional.legal(states) & is_running[..., None], options.vocabulary)


def of_tokens(actions: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return the entries of *actions*, bool ``(…, squares + 1)``, for each token; False for those that are no moves."""
    of_token = torch.from_numpy(vocabulary.action_of_token).to(actions.device)
    return actions[..., of_token] & (of_token >= 0)


def _replay(tokens: Tensor, rules: Rules, vocabulary: Vocabulary) -> State:
    """Return the state after every token, ``(games, tokens)``, with empty boards after the end and from an illegal token on."""
    centre = rules.action_of(int(rules.start_boards[0]).bit_length() - 1)  # illegal, as are numbers that are no tokens
    actions = torch.full((256,), centre, dtype=torch.int64)
    actions[: vocabulary.num_tokens] = torch.from_numpy(vocabulary.action_of_token)
    state = functional.init(len(tokens), rules, device=tokens.device)
    is_shown, states = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device), []
    for column, action in zip(tokens.T, actions.to(tokens.device)[tokens.T.long()], strict=True):
        is_shown = is_shown & (column != PADDING) & (state.status == RUNNING)
        state = functional.where(action < 0, state, functional.step(state, action.clamp(min=0)))
        if not vocabulary.passes:
            must_pass = (state.legal == 0) & (state.status == RUNNING)
            state = functional.where(must_pass, functional.step(state, rules.pass_action), state)
        is_shown = is_shown & (state.status != FORFEITED)
        boards = {name: getattr(state, name) * is_shown for name in ("own", "opp", "legal")}
        states.append(state._replace(**boards))
    return functional.stack(states, axis=1)


def _exact_values(
    own: NDArray[np.uint64], opp: NDArray[np.uint64], rules: Rules, empties: int, device: str
) -> NDArray[np.float32]:
    """Return exact values of moves, ``(n, squares)``; each position is solved once, or read in the book."""
    (own, opp), index = np.unique(np.stack([own, opp]), axis=1, return_inverse=True)
    values = np.full((len(own), rules.square_count), np.nan, np.float32)
    left = rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
    solved, exact = left <= empties, ExactScores(rules)
    children = batch.expand(own[solved], opp[solved], rules)
    scores = exact_scores(children.own, children.opp, rules, device=device)
    values[solved] = batch.by_action(children, -scores, int(solved.sum()), rules, np.nan)
    for row in np.flatnonzero((left > exact.book_empties) & ~solved):
        for action, value in exact.move_values(Position(rules, int(own[row]), int(opp[row]))).items():
            values[row, action] = value
    return values[index.reshape(-1)]


def _words(boards: Tensor) -> NDArray[np.uint64]:
    return boards.cpu().numpy().view(np.uint64).reshape(-1)
