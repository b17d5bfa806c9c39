"""`label_games`: the truth about every position of token sequences, on the device of the tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.bitboards import board_tensor
from models.gpt.tokens import NO_MOVE, Vocabulary
from reversi_env import Position, Rules, batch
from reversi_env.errors import TrainError, extra_libraries, quoted
from search.engine.solver import MAX_GPU_EMPTIES, solve_batch
from search.exact_scores import ExactScores
from train.kernels import sequences
from train.sequences.sources import boards_of

with extra_libraries():
    import torch
    from torch import Tensor

#: Positions with at most so many empties have exact values by default: a whole 4x4 game, else milliseconds each.
SOLVED_EMPTIES = {4: 12, 6: 12, 8: 10}
NAMES = ("board", "relative", "legal", "flipped", "stable", "mobility", "parity", "values", "to_move")


def label_games(
    tokens: Tensor,
    rules: Rules | Sequence[Rules],
    vocabulary: Vocabulary,
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
    names = tuple(names)
    if unknown := [name for name in names if name not in NAMES]:
        raise TrainError(f"label {quoted(unknown[0])}: expected {', '.join(NAMES)}")
    variants = [rules] if isinstance(rules, Rules) else list(rules)
    replayed = _Replayed(tokens, variants, vocabulary, SOLVED_EMPTIES[vocabulary.size] if empties is None else empties)
    return {name: getattr(replayed, name) for name in names}


def replay(tokens: Tensor, rules: Rules, vocabulary: Vocabulary, *, on_gpu: bool) -> tuple[Tensor, Tensor]:
    """Return the boards after every token, words in int64 ``(games, tokens, 4)``, and the side to move, as `replay_tokens` does."""
    squares = np.full(256, NO_MOVE - 1, np.int64)  # that of numbers that are no tokens
    squares[: vocabulary.num_tokens] = vocabulary.square_of_token
    words = torch.empty((*tokens.shape, sequences.WORDS), dtype=torch.int64, device=tokens.device)
    to_move = torch.empty(tokens.shape, dtype=torch.int8, device=tokens.device)
    tokens, game = tokens.contiguous(), (*boards_of(rules), vocabulary.passes)
    if on_gpu:
        from train.sequences import gpu

        gpu.replay(tokens, squares, game, words, to_move)
    else:
        results = words.numpy().view(np.uint64), to_move.numpy()
        sequences.replay_rows(len(tokens), tokens.numpy(), squares, *game, *results)
    return words, to_move


class _Replayed:
    """The positions of sequences, and labels made from them."""

    def __init__(self, tokens: Tensor, variants: list[Rules], vocabulary: Vocabulary, empties: int) -> None:
        self._tokens, self._variants, self._vocabulary, self._empties = tokens, variants, vocabulary, empties
        self._words, self.to_move = replay(tokens, variants[0], vocabulary, on_gpu=tokens.is_cuda)

    @cached_property
    def board(self) -> Tensor:
        return self._bits(0).view(torch.int8) - self._bits(1).view(torch.int8)

    @property
    def relative(self) -> Tensor:
        return self.board * self.to_move.unsqueeze(-1)

    @cached_property
    def legal(self) -> Tensor:
        return self._bits(sequences.LEGAL).bool()

    @property
    def flipped(self) -> Tensor:
        return self._bits(sequences.FLIPPED).bool()

    @property
    def mobility(self) -> Tensor:
        return self.legal.sum(-1, dtype=torch.int8)

    @property
    def parity(self) -> Tensor:
        return self.board.sum(-1, dtype=torch.int8) & 1  # of the discs, since the number of squares is even

    @property
    def stable(self) -> Tensor:
        black, white = self._boards()
        rules = self._variants[0]
        stable = batch.stable_discs(black, white, rules) | batch.stable_discs(white, black, rules)
        return self._bits_of(board_tensor(stable).view(self.to_move.shape)).bool().to(self.to_move.device)

    @property
    def values(self) -> Tensor:
        """Solve every position once per variant."""
        black, white = self._boards()
        to_move = self.to_move.cpu().numpy().reshape(-1)
        own, opp = np.where(to_move < 0, white, black), np.where(to_move < 0, black, white)
        values = np.full((len(own), self._variants[0].square_count), np.nan, np.float32)
        for rules in self._variants:
            exact = ExactScores(rules)
            empties = rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
            wanted = (empties <= self._empties) | (empties > exact.book_empties)
            rows = np.flatnonzero(
                (to_move != 0) & wanted & self._is_of(rules) & (batch.legal_moves(own, opp, rules) != 0)
            )
            boards, index = np.unique(np.stack([own[rows], opp[rows]]), axis=1, return_inverse=True)
            children = batch.expand(boards[0], boards[1], rules)
            scores = self._scores(children.own, children.opp, exact).astype(np.float32)
            values[rows] = batch.by_action(children, 0 - scores, boards.shape[1], rules, np.nan)[index.reshape(-1)]
        return torch.from_numpy(values).view(*self.to_move.shape, -1).to(self.to_move.device)

    def _scores(self, own: NDArray[np.uint64], opp: NDArray[np.uint64], exact: ExactScores) -> NDArray[np.int8]:
        """Return exact scores: of few empties by batches, of many from the book, the cache or the solver, one by one."""
        rules, scores = exact.rules, np.zeros(len(own), np.int8)
        many = rules.square_count - np.bitwise_count(own | opp).astype(np.int64) > MAX_GPU_EMPTIES
        for row in np.flatnonzero(many):
            scores[row] = exact.score(Position(rules, int(own[row]), int(opp[row])))
        exact.write()
        solve: Callable[..., NDArray[np.int8]] = solve_batch
        if self.to_move.is_cuda:
            from search.gpu.solver import solve_batch_cuda as solve
        scores[~many] = solve(own[~many], opp[~many], rules)
        return scores

    def _is_of(self, rules: Rules) -> NDArray[np.bool_]:
        """Return which positions are of games of these rules."""
        prefix, shape = self._vocabulary.prefix(rules.variant), self.to_move.shape
        if len(self._variants) == 1:
            return np.ones(shape.numel(), np.bool_)
        if not self._vocabulary.rules:
            raise TrainError("values of games of several variants: expected a vocabulary with rules, or one variant")
        return (self._tokens[:, len(prefix) - 1 : len(prefix)] == prefix[-1]).expand(shape).cpu().numpy().reshape(-1)

    def _boards(self) -> NDArray[np.uint64]:
        """Return black's and white's discs of all positions in two rows."""
        words: NDArray[np.uint64] = self._words[..., :2].reshape(-1, 2).T.cpu().contiguous().numpy().view(np.uint64)
        return words

    def _bits(self, word: int) -> Tensor:
        return self._bits_of(self._words[..., word])

    def _bits_of(self, words: Tensor) -> Tensor:
        """Return ``(…, squares)`` of 0 and 1, uint8: byte *r* of a word is row *r* of the frame."""
        rows = words.contiguous().view(torch.uint8).view(*words.shape, 8, 1)
        bits = rows >> torch.arange(8, dtype=torch.uint8, device=words.device) & 1
        rim = self._variants[0].margin
        return bits[..., rim : 8 - rim, rim : 8 - rim].flatten(-2)
