"""The project's rules against OpenSpiel: random games from the standard start, compared after every ply.

Random legal squares of the project's rules are played in both; after each ply the discs, the side to move, the legal
squares, the passes, the end of the game and its result must agree. `tests/reversi_env/test_referee.py` runs it.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from reversi_env import batch
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.notation.transcript import write_transcript
from reversi_env.rules import Rules


class Seen(NamedTuple):
    """The state of every game of a batch, one entry per game; the side to move and its moves are compared until the end."""

    black: np.ndarray  # boards
    white: np.ndarray
    white_to_move: np.ndarray
    legal: np.ndarray  # board of legal squares
    must_pass: np.ndarray
    over: np.ndarray
    results: np.ndarray  # [game, player]: +1 won, -1 lost, 0 drawn or not over


class Games:
    """A batch of random games by the project's rules: boards, sides to move, legal moves and ends."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.own, self.opp = batch.start(count)
        self.white_to_move = np.zeros(count, bool)
        self._rng = rng
        self._look()

    def _look(self) -> None:
        self.legal = batch.legal_moves(self.own, self.opp)
        self.over = batch.is_over(self.own, self.opp)

    def draw(self) -> np.ndarray:
        """Return a uniformly random legal square for every game, or 64 if there is none."""
        bits = np.unpackbits(self.legal[:, None].view(np.uint8), axis=1, bitorder="little")
        return np.where(self.legal == 0, PASS_SQUARE, (self._rng.random(bits.shape) * bits).argmax(1))

    def play(self, squares: np.ndarray) -> None:
        """Play a square in every game; finished games pass."""
        own, opp = self.opp.copy(), self.own.copy()
        on = ~self.over
        own[on], opp[on] = batch.play(squares[on], self.own[on], self.opp[on])
        self.own, self.opp, self.white_to_move = own, opp, ~self.white_to_move
        self._look()

    def seen(self) -> Seen:
        """Return the state that OpenSpiel must have."""
        black, white = (np.where(self.white_to_move, *sides) for sides in ((self.opp, self.own), (self.own, self.opp)))
        scores = batch.final_scores(black, white) * self.over
        results = np.stack([np.sign(scores), -np.sign(scores)], 1)
        return Seen(black, white, self.white_to_move, self.legal, self.legal == 0, self.over, results)


class OpenSpiel:
    """OpenSpiel's C++ states, one per game."""

    _BIT = (*(1 << square for square in range(64)), 0)
    #: The board in a printed position: eight lines of 20 characters; squares are every second one from the third on.
    _BOARD = slice(-179, -19)

    def __init__(self, count: int) -> None:
        import pyspiel

        game = pyspiel.load_game("othello")
        self._states = [game.new_initial_state() for _ in range(count)]
        black, white, legal = np.zeros((3, count), np.uint64)
        white_to_move, must_pass, over = np.zeros((3, count), bool)
        self._seen = Seen(black, white, white_to_move, legal, must_pass, over, np.zeros((count, 2), np.int8))
        self._look(np.arange(count))

    def play(self, squares: np.ndarray) -> None:
        running = np.flatnonzero(~self._seen.over)
        for game, square in zip(running.tolist(), squares[running].tolist(), strict=True):
            self._states[game].apply_action(square)
        self._look(running)

    def seen(self) -> Seen:
        return self._seen

    def _look(self, running: np.ndarray) -> None:
        seen, bit = self._seen, self._BIT
        states = [self._states[game] for game in running.tolist()]
        printed = "".join([str(state)[self._BOARD] for state in states]).encode()
        cells = np.frombuffer(printed, np.uint8).reshape(-1, 8, 20)[:, :, 2:18:2].reshape(-1, 64)
        seen.black[running], seen.white[running] = packed(cells == ord("x")), packed(cells == ord("o"))
        seen.white_to_move[running] = [state.current_player() == 1 for state in states]
        actions = [state.legal_actions() for state in states]
        seen.legal[running] = [sum([bit[action] for action in legal]) for legal in actions]
        seen.must_pass[running] = [legal == [PASS_SQUARE] for legal in actions]
        seen.over[running] = [state.is_terminal() for state in states]
        seen.results[running] = [state.returns() for state in states]


def packed(cells: np.ndarray) -> np.ndarray:
    return np.packbits(cells, axis=1, bitorder="little").view("<u8")[:, 0]


def compare(games: int, seed: int) -> Counter[str]:
    """Play *games* to their ends by both rules; raise at the first difference, with the moves that led to it.

    Return the numbers of games, plies (with passes, as in `batch.random_plies`) and passes.
    """
    ours, theirs, rules = Games(games, np.random.default_rng(seed)), OpenSpiel(games), Rules()
    counts, history = Counter(games=games), []
    while True:
        our_view, their_view = ours.seen(), theirs.seen()
        for name in Seen._fields:
            differs = getattr(our_view, name) != getattr(their_view, name)
            if name in ("white_to_move", "legal", "must_pass"):
                differs = differs & ~our_view.over
            if differs.any():
                game = int(np.argwhere(differs)[0][0])
                moves = [rules.name_of(int(squares[game])) for squares in history]
                after = f"{name} of game {game} of seed {seed} after {write_transcript(moves, passes='explicit')!r}"
                raise AssertionError(
                    f"{after}: OpenSpiel {getattr(their_view, name)[game]}, ours {getattr(our_view, name)[game]}"
                )
        if ours.over.all():
            return counts
        running, squares = ~ours.over, ours.draw()
        counts += Counter(plies=int(running.sum()), passes=int((running & our_view.must_pass).sum()))
        history.append(squares)
        ours.play(squares)
        theirs.play(squares)
