"""`Vocabulary`: games as sequences of tokens, by default as in Othello-GPT (Li et al. 2023, arXiv 2210.13382)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import NotationError, ReversiError, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.rules import Rules, Variant

#: The token after the end of a game.
PADDING = 0
#: Action and square of tokens that are no moves.
NO_MOVE = -1


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of the games on one board size.

    Token 0 is padding. The next ones are the squares except the four of the centre: 60 on 8x8, 32 on 6x6, 12 on 4x4. Then follow
    the tokens of the options, in the order of the fields; `rules` has one token for each variant. A sequence begins with its
    start token, then its variant, if the vocabulary has them. ``asdict`` gives a form for JSON, from which ``Vocabulary(**fields)``
    makes an equal object.

    Args:
        size: of the board: 4, 6 or 8.
        passes: whether a pass is a token. Without, passes follow from the moves.
        start: whether every sequence begins with a start token.
        rules: whether every sequence has a token of its variant, normal or reversed.
        order: the actions of the squares in the order of their tokens; None for row by row.

    """

    size: int = 8
    passes: bool = False
    start: bool = False
    rules: bool = False
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        actions = _actions_with_tokens(self.size)
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))  # JSON has lists
            if sorted(self.order) != actions:
                raise ReversiError(
                    f"order={quoted(self.order)}: expected the {len(actions)} actions of the {self.size}x{self.size} board's "
                    "squares outside the centre, each once"
                )

    @cached_property
    def action_of_token(self) -> NDArray[np.int64]:
        """The environments' action of each token, -1 for tokens that are no moves."""
        others = [self.size**2] * self.passes + [NO_MOVE] * (self.start + 2 * self.rules)
        return np.array([NO_MOVE, *(self.order or _actions_with_tokens(self.size)), *others], np.int64)

    @cached_property
    def square_of_token(self) -> NDArray[np.int64]:
        """The square of the frame that each token plays on: 64 for a pass, -1 for tokens that are no moves."""
        squares = [*Rules(self.size).squares(), PASS_SQUARE, NO_MOVE]
        return np.array(squares, np.int64)[self.action_of_token]

    @cached_property
    def token_of_square(self) -> NDArray[np.uint8]:
        """The token of each square of the frame, and in entry 64 that of a pass; 0 where there is none."""
        tokens = np.zeros(PASS_SQUARE + 1, np.uint8)
        moves = np.flatnonzero(self.square_of_token != NO_MOVE)
        tokens[self.square_of_token[moves]] = moves
        return tokens

    @property
    def num_squares(self) -> int:
        """Squares that have a token; no game has more moves."""
        return self.size**2 - 4

    @property
    def num_tokens(self) -> int:
        """Tokens with padding: 61 on 8x8 without options."""
        return 1 + self.num_squares + self.passes + self.start + 2 * self.rules

    @property
    def length(self) -> int:
        """Tokens of the longest sequence: 60 on 8x8 without options. With passes a bound: a pass comes between two moves."""
        return self.num_prefix + self.num_squares + self.passes * (self.num_squares - 1)

    @property
    def context(self) -> int:
        """Tokens that a model reads to predict the last one."""
        return self.length - 1

    @property
    def num_prefix(self) -> int:
        """Tokens before the first move."""
        return self.start + self.rules

    def prefix(self, variant: Variant) -> list[int]:
        """Return the tokens before the first move of a game."""
        first = 1 + self.num_squares + self.passes
        start = [first] * self.start
        return start + [first + self.start + get_args(Variant).index(variant)] * self.rules

    def encode(self, actions: Iterable[int], variant: Variant = "normal") -> NDArray[np.uint8]:
        """Return the tokens of a game's actions, passes included, without padding."""
        tokens, action_of_token = self.prefix(variant), self.action_of_token.tolist()
        for action in map(int, actions):
            if action >= 0 and action in action_of_token:
                tokens.append(action_of_token.index(action))
            elif action != self.size**2:
                raise NotationError(f"action {quoted(action)}: expected a square outside the centre, or the pass")
        return np.array(tokens, np.uint8)

    def decode(self, tokens: Iterable[int]) -> list[int]:
        """Return the actions of a sequence up to its end or padding. Passes that are no tokens are missing."""
        actions = []
        for token in map(int, tokens):
            if not 0 <= token < self.num_tokens:
                raise NotationError(f"token {quoted(token)}: expected 0 to {self.num_tokens - 1}")
            if token == PADDING:
                break
            actions.append(int(self.action_of_token[token]))
        return [action for action in actions if action != NO_MOVE]


def _actions_with_tokens(size: int) -> list[int]:
    """Return the actions of the squares outside the centre."""
    game = Rules(size)
    centre = sum(game.start_boards)
    return [action for action, sq in enumerate(game.squares()) if not centre >> sq & 1]
