"""`label_games`: the truth about every position of token sequences, on the device of the tokens."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_planes, board_tensor
from models.evaluator import strongest_evaluator
from models.vocabulary import PADDING, Vocabulary
from reversi_env import Position, Rules, batch, functional
from reversi_env.errors import TrainError, extra_libraries, quoted
from reversi_env.functional import State
from reversi_env.kernels.states import FORFEITED, RUNNING
from search.exact_scores import ExactScores
from train.labels.labellers import LabellerPlan, exact_scores, searched_scores
from train.sequences.options import StreamOptions

with extra_libraries():
    import torch
    from torch import Tensor


def label_games(
    tokens: Tensor,
    options: StreamOptions,
    names: Iterable[str] = ("board", "legal"),
    *,
    empties: int = 12,
    depth: int = 0,
) -> dict[str, Tensor]:
    """Return the labels *names* of every token: tensors ``(games, tokens, …)`` about the position after it.

    Squares are those of the board, row by row. After the end of a game, and from an illegal token on, all labels are 0.

    * ``board``: int8 (…, squares), 1 black, -1 white; ``relative``: 1 for the side to move, -1 for the other one, 0 at the end.
    * ``legal``, ``flipped``, ``stable``: bool (…, squares): legal moves of the side to move, discs that the move flipped, and
      discs of either colour that no move can flip any more (the last one is computed on the CPU).
    * ``legal_tokens``: bool (…, vocab_size), tokens that may follow, passes included.
    * ``mobility``: int8, number of legal moves; ``parity``: int8, 1 if the number of empty squares is odd.
    * ``values``: float32 (…, squares), score of every legal move in discs for the side to move, under the rules' objective, NaN
      elsewhere. It is exact with at most *empties* empty squares, and if the solved book has the positions after the moves. In
      other positions it is that of the strongest evaluator's search to *depth* plies after the move, on the CPU; NaN with depth 0.
    * ``to_move``: int8, 1 black, -1 white, 0 after the end.
    """
    rules, vocabulary = options.rules[0], options.vocabulary
    states = _replay(tokens, rules, vocabulary)
    own, opp = functional.observe(states).flatten(-2).view(torch.int8).unbind(-2)
    boards = (own - opp) * (1 - 2 * states.turn)[..., None]
    states, board = functional.take(states, np.s_[:, 1:]), boards[:, 1:]
    to_move = (1 - 2 * states.turn) * (states.status == RUNNING) * (states.own != 0)

    def stable() -> Tensor:
        sides = _words(states.own), _words(states.opp)
        discs = batch.stable_discs(*sides, rules) | batch.stable_discs(*sides[::-1], rules)
        return board_planes(board_tensor(discs), rules.size).reshape(board.shape).bool().to(tokens.device)

    def values() -> Tensor:
        result = torch.full_like(board, torch.nan, dtype=torch.float32)
        for game in options.rules:
            rows = (to_move != 0) & (states.legal != 0)
            if vocabulary.variants:
                rows &= tokens[:, int(vocabulary.bos), None] == vocabulary.special_tokens(game.variant)[-1]
            sides = _words(states.own[rows]), _words(states.opp[rows])
            result[rows] = torch.from_numpy(_move_values(*sides, game, empties, depth, tokens.device.type)).to(
                tokens.device
            )
        return result

    labels: dict[str, Callable[[], Tensor]] = {
        "board": lambda: board,
        "relative": lambda: board * to_move[..., None],
        "legal": lambda: functional.legal(states)[..., :-1],
        "legal_tokens": lambda: of_tokens(functional.legal(states) & (to_move != 0)[..., None], vocabulary),
        "flipped": lambda: board * boards[:, :-1] < 0,
        "stable": stable,
        "mobility": lambda: labels["legal"]().sum(-1, dtype=torch.int8),
        "parity": lambda: board.sum(-1, dtype=torch.int8) & 1,  # of the discs, since the number of squares is even
        "values": values,
        "to_move": lambda: to_move,
    }
    if unknown := set(names) - labels.keys():
        raise TrainError(f"label {quoted(min(unknown))}: expected {', '.join(labels)}")
    return {name: labels[name]() for name in names}


def of_tokens(actions: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Return the entries of *actions*, bool ``(…, squares + 1)``, for each token; False for those that are no moves."""
    of_token = torch.from_numpy(vocabulary.action_of_token).to(actions.device)
    return actions[..., of_token] & (of_token >= 0)


def _replay(tokens: Tensor, rules: Rules, vocabulary: Vocabulary) -> State:
    """Return the states before the first and after every token, with empty boards after the end and from an illegal token on."""
    is_token = (tokens != PADDING) & (tokens < vocabulary.vocab_size)
    actions = torch.from_numpy(vocabulary.action_of_token).to(tokens.device)[(tokens * is_token).long()]
    state = functional.init(len(tokens), rules, device=tokens.device)
    is_shown, states = torch.ones_like(is_token[:, 0]), [state]
    for column, action in zip(is_token.T, actions.T, strict=True):
        is_shown = is_shown & column & (state.status == RUNNING)
        state = functional.where(action < 0, state, functional.step(state, action.clamp(min=0)))
        if not vocabulary.passes:
            must_pass = (state.legal == 0) & (state.status == RUNNING)
            state = functional.where(must_pass, functional.step(state, rules.pass_action), state)
        is_shown = is_shown & (state.status != FORFEITED)
        states.append(state._replace(**{name: getattr(state, name) * is_shown for name in ("own", "opp", "legal")}))
    return functional.stack(states, axis=1)


def _move_values(
    own: NDArray[np.uint64], opp: NDArray[np.uint64], rules: Rules, empties: int, depth: int, device: str
) -> NDArray[np.float32]:
    """Return values of moves, ``(n, squares)``; each position is solved or searched once, or read in the book."""
    (own, opp), index = np.unique(np.stack([own, opp]), axis=1, return_inverse=True)
    left, exact = rules.square_count - np.bitwise_count(own | opp).astype(np.int64), ExactScores(rules)
    in_book, values = left > exact.book_empties, np.full((len(own), rules.square_count), np.nan, np.float32)
    rows = (left <= empties) | (~in_book & (depth > 0))
    children = batch.expand(own[rows], opp[rows], rules)
    solved, scores = (left[rows] <= empties)[children.parent], np.full(len(children.own), np.nan, np.float32)
    scores[solved] = exact_scores(children.own[solved], children.opp[solved], rules, device=device)
    if depth:
        plan = LabellerPlan(0, strongest_evaluator(rules), depth)
        scores[~solved] = searched_scores(children.own[~solved], children.opp[~solved], rules, plan)
    values[rows] = batch.by_action(children, -scores, int(rows.sum()), rules, np.nan)
    for row in np.flatnonzero(in_book & (left > empties)):
        for action, value in exact.move_values(Position(rules, int(own[row]), int(opp[row]))).items():
            values[row, action] = value
    return values[index.reshape(-1)]


def _words(boards: Tensor) -> NDArray[np.uint64]:
    return boards.cpu().numpy().view(np.uint64).reshape(-1)
