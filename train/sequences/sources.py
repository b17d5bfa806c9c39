"""Sources of games for a `GameStream`: uniformly random play, agents, and recorded games."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reversi_env import Rules, batch
from reversi_env.errors import TrainError, quoted
from reversi_env.kernels.bitboard import PASS_SQUARE
from reversi_env.kernels.games import NO_MOVE
from reversi_env.notation import read_wthor
from reversi_env.options import derive_seed
from reversi_env.rules import FRAME, PASS_NAME
from search.agents.spec import AgentSpec
from train.arena.batch import AgentPlayer, BatchPlayer, Boards, Indices, compiled_player
from train.arena.openings import games_of_file
from train.kernels import sequences
from train.kernels.noisy_games import advance
from train.kernels.sequences import END, MAX_SQUARES, stream_states, validation_games

Squares = NDArray[np.uint8]  #: games x `MAX_SQUARES`, passes included, `END` after the end
#: Where the temperature begins in the text of a source.
TEMPERATURE_MARK = "@"
#: One more than the moves of the longest game.
MAX_MOVES = 61
#: Chooses squares, or `NO_MOVE` where a game stops: (move number, games, own, opp, which games are white's turn).
Choose = Callable[[int, Indices, Boards, Boards, NDArray[np.bool_]], Indices]


class Selection(NamedTuple):
    """Which games a source gives: those of a *seed* whose first *prefix* moves belong to the split."""

    seed: int
    prefix: int
    validation: bool


class GameSource(Protocol):
    """Makes the games of a stream."""

    def games(self, rules: Rules, numbers: NDArray[np.uint64], selection: Selection) -> Squares:
        """Return the games with these *numbers*, which decide them together with the selection."""
        ...


class RandomGames:
    """Uniformly random legal moves, up to *limit* of them."""

    def __init__(self, limit: int = sequences.MAX_SQUARES) -> None:
        self._limit = limit

    def games(self, rules: Rules, numbers: NDArray[np.uint64], selection: Selection) -> Squares:
        squares = np.empty((len(numbers), sequences.MAX_SQUARES), np.uint8)
        seed, *split = selection
        sequences.random_games(len(numbers), squares, *boards_of(rules), np.uint64(seed), numbers, self._limit, *split)
        return squares


def boards_of(rules: Rules) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return black's and white's discs at the start, and the squares of the board."""
    black, white = rules.start_boards
    return np.uint64(black), np.uint64(white), np.uint64(rules.playable)


def parse_source(text: str, rules: Rules) -> GameSource:
    """Return a source from text: ``random``, a file of games, or agents and a temperature: ``network:depth=2+six-factor@1.5``.

    A temperature is in discs, and 0 if there is none.
    """
    if text == "random":
        return RandomGames()
    if Path(text).exists():
        return RecordedGames([text], rules)
    agents, _, temperature = text.partition(TEMPERATURE_MARK)
    try:
        return PlayedGames(agents.split("+"), float(temperature or 0))
    except ValueError as error:
        raise TrainError(
            f"source={quoted(text)}: {error}; expected random, a file of games, or agents as network:depth=2@1"
        ) from None


class PlayedGames:
    """Games of agents, given by specs, after the random moves that decide the split; each side of a game draws an agent.

    Evaluators such as ``network:depth=2`` sample their moves at a *temperature* in discs. Other agents play as their own options
    say; a batch of theirs depends on its first number, too.
    """

    def __init__(self, agents: Sequence[str], temperature: float = 0.0) -> None:
        self.agents, self.temperature = [AgentSpec.parse(agent) for agent in agents], temperature
        if not 0 <= temperature < np.inf:
            raise TrainError(f"temperature={temperature}: expected a number of at least 0")
        for agent in self.agents:
            agent.check()

    def games(self, rules: Rules, numbers: NDArray[np.uint64], selection: Selection) -> Squares:
        begun = RandomGames(selection.prefix).games(rules, numbers, selection).astype(np.int64)
        begun[begun == END] = NO_MOVE
        moves = np.take_along_axis(begun, np.argsort(begun == PASS_SQUARE, axis=1, kind="stable"), axis=1)
        seeds = (derive_seed(selection.seed, 1, i, int(numbers[0])) for i in range(len(self.agents)))
        players = [self._player(spec, rules, seed) for spec, seed in zip(self.agents, seeds, strict=True)]
        states, *drawn = (stream_states(np.uint64(derive_seed(selection.seed, 2, i)), numbers) for i in range(3))
        drawn = [words % np.uint64(len(players)) for words in drawn]

        def choose(move: int, games: Indices, own: Boards, opp: Boards, white: NDArray[np.bool_]) -> Indices:
            if move < selection.prefix:
                return moves[games, move]
            squares, agents = np.empty(len(games), np.int64), np.where(white, drawn[1][games], drawn[0][games])
            for index, player in enumerate(players):
                rows = np.flatnonzero(agents == index)
                if rows.size:
                    new_states = states[games[rows]]
                    squares[rows] = player.choose(own[rows], opp[rows], games[rows], new_states)
                    states[games[rows]] = new_states
            return squares

        return _play(rules, len(numbers), choose)

    def _player(self, spec: AgentSpec, rules: Rules, seed: int) -> BatchPlayer:
        if player := compiled_player(spec, rules, temperature=self.temperature, threads=None):
            return player
        if self.temperature:
            raise TrainError(
                f"agent {quoted(str(spec))} with a temperature: expected an evaluator with a depth, as network:depth=2"
            )
        agent = spec.make(seed=seed)
        agent.prepare(rules)
        return AgentPlayer(agent, rules)


class RecordedGames:
    """The games of files in the formats WTHOR and GGF, or of transcripts, in another order in every epoch."""

    def __init__(self, files: Sequence[str | PathLike[str]], rules: Rules) -> None:
        parts = [_moves_of_file(Path(file), rules) for file in files]
        moves = np.concatenate(parts) if parts else np.zeros((0, MAX_MOVES), np.int64)
        self._squares = _play(rules, len(moves), lambda move, games, own, opp, white: moves[games, move])
        self._size = rules.size

    def games(self, rules: Rules, numbers: NDArray[np.uint64], selection: Selection) -> Squares:
        rows = np.flatnonzero(validation_games(self._squares, selection.prefix) == selection.validation)
        if not rows.size or rules.size != self._size:
            raise TrainError(f"{len(rows)} recorded games of size {self._size}: expected some, of size {rules.size}")
        epochs, places = (part.astype(np.int64) for part in np.divmod(numbers, np.uint64(rows.size)))
        chosen = np.empty(len(numbers), np.int64)
        for epoch in np.unique(epochs):
            order = np.random.default_rng(derive_seed(selection.seed, int(epoch))).permutation(rows)
            chosen[epochs == epoch] = order[places[epochs == epoch]]
        return self._squares[chosen]


def _moves_of_file(path: Path, rules: Rules) -> NDArray[np.int64]:
    """Return the squares of a file's games without passes, `NO_MOVE` after the end; an illegal game raises."""
    if path.suffix.lower() == ".wtb" and rules.size == FRAME:
        file = read_wthor(path)
        for index in np.flatnonzero(file.replay().illegal)[:1]:
            file.game(int(index))  # raises
        return np.pad(file.squares.astype(np.int64), ((0, 0), (0, 1)), constant_values=NO_MOVE)
    rows = []
    for where, game in games_of_file(path, rules):
        if (game.start.black, game.start.white) != rules.start_boards or game.start.rules.size != rules.size:
            raise TrainError(f"{where} of {str(path)!r} has another start: expected that of {rules}")
        game.final()  # raises if a move is illegal
        squares = [rules.square_of(rules.action_from_name(move)) for move in game.moves if move != PASS_NAME]
        rows.append(squares + [NO_MOVE] * (MAX_MOVES - len(squares)))
    return np.array(rows, np.int64).reshape(-1, MAX_MOVES)


def _play(rules: Rules, count: int, choose: Choose) -> Squares:
    """Return the squares of *count* games that are played in step."""
    squares = np.full((count, MAX_SQUARES), END, np.uint8)
    games, length, white = np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    own, opp = batch.start(count, rules)
    for move in range(MAX_MOVES):
        chosen = choose(move, games, own, opp, white[games])
        goes_on = chosen != NO_MOVE
        games, own, opp, chosen = games[goes_on], own[goes_on], opp[goes_on], chosen[goes_on]
        passed, over = np.empty(len(games), np.bool_), np.empty(len(games), np.bool_)
        squares[games, length[games]] = chosen
        advance(own, opp, chosen, np.uint64(rules.playable), passed, over)
        squares[games[passed], length[games[passed]] + 1] = PASS_SQUARE
        length[games] += 1 + passed
        white[games] ^= ~passed
        games, own, opp = games[~over], own[~over], opp[~over]
    return squares
