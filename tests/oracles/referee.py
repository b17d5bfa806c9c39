"""Our rules against those of OpenSpiel and Pgx: random games from the standard start, compared after every ply.

Squares are drawn from our legal moves and played on both sides; after each ply the discs, the side to move, the legal
squares, the passes, the end of the game and its result must agree. `tests/reversi_env/test_referee.py` runs it.

Games come in chunks. A chunk depends on (seed, its number, its games) alone, and a difference names all three.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from reversi_env import batch
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.notation.transcript import write_transcript
from reversi_env.rules import Rules

#: Plies of a random game are 60.5 on average; with fewer expected, one round of chunks is nearly always enough.
PLIES_A_GAME = 60
FULL = np.uint64(2**64 - 1)


class DifferenceError(Exception):
    """A referee disagrees with us."""


class Count(NamedTuple):
    """What was compared."""

    plies: int = 0  # passes included, as in `batch.random_plies`
    games: int = 0
    passes: int = 0

    def plus(self, other: Count) -> Count:
        return Count(*map(sum, zip(self, other, strict=True)))


class Seen(NamedTuple):
    """What is known of every game of a batch, one entry a game. The side to move and its moves count until the end."""

    black: np.ndarray  # boards
    white: np.ndarray
    white_to_move: np.ndarray
    legal: np.ndarray  # board of legal squares
    must_pass: np.ndarray
    over: np.ndarray
    results: np.ndarray  # [game, player]: +1 won, -1 lost, 0 drawn or not over
    scores: np.ndarray | None = None  # of black in discs; 0 before the end


class Games:
    """A batch of random games by our rules, in step: side to move, boards and what follows from them."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.own, self.opp = batch.start(count)
        self.white_to_move = np.zeros(count, bool)
        self.over_since = np.full(count, -1)  # plies since the end; -1 before it
        self._rng = rng
        self._look()

    def _look(self) -> None:
        self.legal = batch.legal_moves(self.own, self.opp)
        self.over = batch.is_over(self.own, self.opp)
        self.over_since[self.over] += 1

    @property
    def full_or_wiped_out(self) -> np.ndarray:
        return (self.own | self.opp == FULL) | (self.own == 0) | (self.opp == 0)

    def draw(self) -> np.ndarray:
        """A uniformly random legal square for every game, 64 where there is none."""
        bits = np.unpackbits(self.legal[:, None].view(np.uint8), axis=1, bitorder="little")
        return np.where(self.legal == 0, PASS_SQUARE, (self._rng.random(bits.shape) * bits).argmax(1))

    def play(self, squares: np.ndarray) -> None:
        """Play a square in every game; in a finished one the sides take turns to pass."""
        own, opp = self.opp.copy(), self.own.copy()
        on = ~self.over
        own[on], opp[on] = batch.play(squares[on], self.own[on], self.opp[on])
        self.own, self.opp, self.white_to_move = own, opp, ~self.white_to_move
        self._look()

    def seen(self, ends: np.ndarray) -> Seen:
        """What a referee must see that calls a game over where *ends* says so."""
        black, white = (np.where(self.white_to_move, *sides) for sides in ((self.opp, self.own), (self.own, self.opp)))
        scores = batch.final_scores(black, white) * ends
        results = np.stack([np.sign(scores), -np.sign(scores)], 1)
        return Seen(black, white, self.white_to_move, self.legal, self.legal == 0, ends, results, scores)


class OpenSpiel:
    """OpenSpiel's C++ states, one a game. A game is over when neither side can move, as with us."""

    GAMES = 350
    _BIT = (*(1 << square for square in range(64)), 0)
    #: Where the board is in a printed position: eight lines of 20 characters, a square in every second from the third on.
    _BOARD = slice(-179, -19)

    def __init__(self, count: int, seed: int) -> None:
        del seed  # nothing is drawn
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

    def ends(self, games: Games) -> np.ndarray:
        return games.over

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


class Pgx:
    """Pgx's compiled step over the whole batch, on JAX's default device.

    It ends a game at once when the board is full or a side has lost its last disc, but wants two passes where neither side can
    move for another reason: until then it is held to offer nothing else.
    """

    GAMES = 8192

    def __init__(self, count: int, seed: int) -> None:
        begin, self._step = self._functions()
        self._state, self._looks = begin(count, seed)
        self._first = np.asarray(self._state.current_player)  # drawn: which of its players is black
        self._results = np.zeros((count, 2), np.int8)

    @staticmethod
    @cache
    def _functions():
        """(begin, step), compiled: states of a batch and what they show, small enough to be copied from a GPU each ply."""
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes may share a GPU
        import jax
        import jax.numpy as jnp
        import pgx

        game = pgx.make("othello")

        def looks(state):
            planes = jnp.moveaxis(state.observation, 3, 1).reshape(-1, 2, 64)
            boards = jnp.concatenate([planes, state.legal_action_mask[:, None, :64]], 1)
            bits = jnp.packbits(boards, axis=2, bitorder="little")
            return bits, state.legal_action_mask[:, 64], state.terminated, state.current_player, state.rewards

        @partial(jax.jit, static_argnums=0)
        def begin(count, seed):
            state = jax.vmap(game.init)(jax.random.split(jax.random.PRNGKey(seed), count))
            return state, looks(state)

        @jax.jit
        def step(state, squares):
            state = jax.vmap(game.step)(state, squares)
            return state, looks(state)

        return begin, step

    def play(self, squares: np.ndarray) -> None:
        """Play in all games; one that it has ended stays as it is. Rewards are given once, and kept here."""
        self._state, self._looks = self._step(self._state, squares.astype(np.int32))
        rewards = np.asarray(self._looks[-1])
        self._results += np.where(self._first[:, None] == 0, rewards, rewards[:, ::-1]).astype(np.int8)

    def ends(self, games: Games) -> np.ndarray:
        return games.over & (games.full_or_wiped_out | (games.over_since >= 2))

    def seen(self) -> Seen:
        bits, must_pass, over, player = map(np.asarray, self._looks[:-1])
        own, opp, legal = np.ascontiguousarray(bits).view("<u8")[:, :, 0].T
        white_to_move = player != self._first
        black, white = np.where(white_to_move, opp, own), np.where(white_to_move, own, opp)
        return Seen(black, white, white_to_move, legal, must_pass, over, self._results)


REFEREES = {"openspiel": OpenSpiel, "pgx": Pgx}


def packed(cells: np.ndarray) -> np.ndarray:
    return np.packbits(cells, axis=1, bitorder="little").view("<u8")[:, 0]


def compare(referee: type, games: int, seed: int, chunk: int) -> Count:
    """Play a chunk of *games* to their ends by our rules and the *referee*'s; a difference raises with the moves that led to it."""
    ours, theirs = Games(games, np.random.default_rng([seed, chunk])), referee(games, chunk)
    count, history = Count(games=games), []
    while True:
        ends, told = theirs.ends(ours), theirs.seen()
        expected, told = ours.seen(ends), told._replace(scores=counted_scores(told))
        if found := difference(expected, told):
            game, name = found
            raise DifferenceError(
                f"{referee.__name__}: {name} of game {game} in chunk {chunk} (seed {seed}, {games} games) after "
                f"{transcript([squares[game] for squares in history])!r}: "
                f"{shown(getattr(told, name)[game])}, and we say {shown(getattr(expected, name)[game])}"
            )
        if ends.all():
            return count
        running, squares = ~ours.over, ours.draw()
        count = count.plus(Count(plies=int(running.sum()), passes=int((running & expected.must_pass).sum())))
        history.append(squares)
        ours.play(squares)
        theirs.play(squares)


def counted_scores(told: Seen) -> np.ndarray:
    """Black's discs less white's in the finished games, the empty squares given to the side with more: no referee says more."""
    black, white = (np.bitwise_count(board).astype(np.int8) for board in (told.black, told.white))
    return (black - white + np.sign(black - white) * (64 - black - white)) * told.over


def difference(expected: Seen, told: Seen) -> tuple[int, str] | None:
    """(game, what) of something that is told otherwise than expected."""
    for name in Seen._fields:
        wrong = getattr(expected, name) != getattr(told, name)
        if name in ("white_to_move", "legal", "must_pass"):
            wrong = wrong & ~expected.over
        if wrong.any():
            return int(np.argwhere(wrong)[0][0]), name
    return None


def transcript(squares: list[int]) -> str:
    rules = Rules()
    return write_transcript([rules.name_of(int(square)) for square in squares], passes="explicit")


def shown(value: np.generic | np.ndarray) -> str:
    return f"{value:#x}" if isinstance(value, np.unsignedinteger) else str(value)


def check(name: str, plies: int, *, workers: int = 1, games: int = 0, seed: int = 0) -> Count:
    """Compare at least *plies* plies with the referee *name*, in chunks of *games* (0: as suits it)."""
    referee = REFEREES[name]
    games = games or referee.GAMES
    one = Games(1, np.random.default_rng(seed))  # compiles our side once, before many processes want it
    one.play(one.draw())
    one.seen(one.over)
    total, first = Count(), 0
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        while total.plies < plies:
            chunks = math.ceil((plies - total.plies) / (games * PLIES_A_GAME))
            for count in pool.map(partial(compare, referee, games, seed), range(first, first + chunks)):
                total = total.plus(count)
            first += chunks
    return total
