"""`Vocabulary`: the tokens of games, from actions and back; needs no torch."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import NotationError, ReversiError, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.rules import Rules, Variant

#: The token after the end of a game, which is never a target, and the action of tokens that are no moves.
PADDING, NO_MOVE = 0, -1


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of the games on one board size, by default those of Othello-GPT (Li et al. 2023, arXiv 2210.13382).

    Token 0 is padding. The next ones are the squares except the four of the centre: 60 on 8x8, 32 on 6x6, 12 on 4x4. Then follow
    the tokens of the options, in the order of the fields. A sequence begins with its special tokens: BOS and that of its variant,
    if the vocabulary has them.
    """

    size: int = 8
    passes: bool = False  #: whether a pass is a token; without, passes follow from the moves
    bos: bool = False  #: whether every sequence begins with a BOS token
    variants: bool = False  #: whether every sequence has a token of its variant, normal or reversed
    order: tuple[int, ...] | None = None  #: the actions of the squares' tokens; None for row by row

    def __post_init__(self) -> None:
        if self.order is not None:
            object.__setattr__(self, "order", tuple(self.order))  # JSON has lists
            if sorted(self.order) != (actions := Vocabulary(self.size).decode(range(1, self.size**2 - 3))):
                raise ReversiError(f"order={quoted(self.order)}: expected each of {quoted(actions)} once")

    @cached_property
    def action_of_token(self) -> NDArray[np.int64]:
        """The environments' action of each token, `NO_MOVE` for tokens that are no moves."""
        rules = Rules(self.size)
        by_row = [action for action, sq in enumerate(rules.squares()) if not sum(rules.start_boards) >> sq & 1]
        others = [rules.pass_action] * self.passes + [NO_MOVE] * (self.bos + 2 * self.variants)
        return np.array([NO_MOVE, *(self.order or by_row), *others], np.int64)

    @cached_property
    def token_of_square(self) -> NDArray[np.uint8]:
        """The token of each square of the 8x8 frame, in entry 64 that of a pass; 256 entries, 0 where there is none."""
        squares, tokens = np.array([*Rules(self.size).squares(), PASS_SQUARE]), np.zeros(256, np.uint8)
        moves = np.flatnonzero(self.action_of_token != NO_MOVE)
        tokens[squares[self.action_of_token[moves]]] = moves
        return tokens

    @property
    def vocab_size(self) -> int:
        """Tokens with padding: 61 on 8x8 without options."""
        return len(self.action_of_token)

    @property
    def length(self) -> int:
        """Tokens of the longest sequence: 60 on 8x8 without options. With passes a bound: a pass comes between two moves."""
        moves = self.size**2 - 4
        return self.bos + self.variants + moves + self.passes * (moves - 1)

    def special_tokens(self, variant: Variant) -> list[int]:
        """Return the tokens before the first move of a game."""
        first = self.size**2 - 3 + self.passes
        return [first] * self.bos + [first + self.bos + get_args(Variant).index(variant)] * self.variants

    def encode(self, actions: Iterable[int], variant: Variant = "normal") -> NDArray[np.uint8]:
        """Return the tokens of a game's actions, passes included, without padding."""
        tokens, action_of_token = self.special_tokens(variant), self.action_of_token.tolist()
        for action in map(int, actions):
            if action >= 0 and action in action_of_token:
                tokens.append(action_of_token.index(action))
            elif action != self.size**2:
                raise NotationError(f"action {quoted(action)}: expected a square outside the centre, or the pass")
        return np.array(tokens, np.uint8)

    def decode(self, tokens: Iterable[int]) -> list[int]:
        """Return the actions of a sequence, without padding. Passes that are no tokens are missing."""
        return [action for action in self.action_of_token[list(tokens)].tolist() if action != NO_MOVE]
