"""Openings: random, balanced, or those of a file; one by one, or as the boards of many games.

The options of a tournament decide its sequence of openings: round *r* is played from opening *r*, by every pairing, with both
colours. Random openings differ, also up to the symmetries of the board, until all that could be found have been used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.notation import Game, read_ggf, read_obf_line, read_transcript, read_wthor
from reversi_env.notation.ggf import looks_like_ggf
from reversi_env.notation.text import text_lines, within
from search.agents.searching import SearchAgent
from search.agents.spec import make_agent
from search.engine.solver import solve

#: After this many consecutive samples without a new opening, the openings so far count as all.
MAX_TRIES = 400
#: The agent that finds balanced openings, except on the 4x4 board, which is solved.
BALANCE_AGENT = "network:depth=8,table=1"
#: Default plies of random openings (after four on 6x6 there are 60 positions, after six 1,632) and of balanced ones (on 4x4, two
#: plies leave none within two discs, six leave 59).
DEFAULT_PLIES = {4: 2, 6: 6, 8: 6}
BALANCED_PLIES = 6
#: A line that starts with a board is OBF; a transcript has row numbers.
_BOARD = re.compile(r"[XxOo*0BbWw._●○-]{16}")


@dataclass(frozen=True, slots=True)
class Opening:
    """A start position and the names of the moves from it, with every pass."""

    start: Position
    moves: tuple[str, ...] = ()

    @property
    def position(self) -> Position:
        return self.start.play_all(self.moves)


def random_opening(rules: Rules, plies: int, generator: np.random.Generator) -> Opening:
    """Return *plies* random moves from the start that do not end the game."""
    for _ in range(1000):
        position, moves = Position.initial(rules), list[str]()
        for _ in range(plies):
            if position.is_over():
                break
            action = int(generator.choice(position.legal_actions()))
            moves.append(rules.name_of(action))
            position = position.play(action)
        if not position.is_over():
            return Opening(Position.initial(rules), tuple(moves))
    raise ReversiError(
        f"{plies} random plies on the {rules.size}x{rules.size} board leave no game to play: expected fewer plies"
    )


def random_openings(
    rules: Rules, plies: int, seed: int, accept: Callable[[Position], bool] = lambda position: True
) -> Iterator[Opening]:
    """Yield accepted openings without end: first all different ones, then the same ones again in a cycle."""
    generator = np.random.default_rng(seed)
    seen: set[Position] = set()
    openings: list[Opening] = []
    misses = 0
    while misses < MAX_TRIES:
        opening = random_opening(rules, plies, generator)
        position = opening.position.canonical()
        if position in seen or not accept(opening.position):
            misses += 1
        else:
            misses = 0
            openings.append(opening)
            yield opening
        seen.add(position)
    if not openings:
        raise ReversiError(
            f"none of {MAX_TRIES} openings of {plies} random plies is balanced: expected at least one; raise --balance "
            "or change --plies"
        )
    yield from cycle(openings)


def opening_sequence(
    source: str, rules: Rules, plies: int | None = None, seed: int = 0, balance: float = 2.0
) -> Iterator[Opening]:
    """Return openings without end: ``random``, ``balanced`` (within *balance* discs of a draw) or those of a file, in a cycle.

    *plies* is their length, by default `DEFAULT_PLIES` or `BALANCED_PLIES`, for a file their maximum length.
    """
    if source not in ("random", "balanced"):
        return cycle(openings_of_file(Path(source), rules, plies))
    if source == "random":
        return random_openings(rules, DEFAULT_PLIES[rules.size] if plies is None else plies, seed)
    evaluate, plies = _balance_evaluator(rules), BALANCED_PLIES if plies is None else plies
    return random_openings(rules, plies, seed, lambda position: abs(evaluate(position)) <= balance)


def openings_of_file(path: Path, rules: Rules, plies: int | None = None) -> list[Opening]:
    """Return the openings of a file: games in GGF or WTHOR, or a transcript or OBF position per line; cut after *plies*."""
    openings = []
    try:
        games = list(games_of_file(path, rules))
    except OSError as error:
        raise ReversiError(
            f"openings {str(path)!r} cannot be read, {(error.strerror or str(error)).lower()}: "
            f"expected random, balanced, or a file of transcripts, OBF, GGF or WTHOR"
        ) from None
    for where, game in games:
        if (game.start.rules.size, game.start.rules.variant) != (rules.size, rules.variant):
            other = game.start.rules
            raise ReversiError(
                f"{where} of {str(path)!r} is of the {other.size}x{other.size} {other.variant} game: "
                f"expected {rules.size}x{rules.size} {rules.variant}"
            )
        opening = Opening(game.start, game.moves if plies is None else game.moves[:plies])
        if opening.position.is_over():
            raise ReversiError(f"{where} of {str(path)!r} ends the game: expected an opening that leaves one to play")
        openings.append(opening)
    if not openings:
        raise ReversiError(f"{str(path)!r} has no opening: expected transcripts, OBF, GGF or WTHOR")
    return openings


def games_of_file(path: Path, rules: Rules) -> Iterator[tuple[str, Game]]:
    """Yield where each game of a file is, and the game: GGF, WTHOR, or transcripts and OBF positions, one per line."""
    if path.suffix.lower() == ".wtb":
        yield from ((f"game {number}", game) for number, game in enumerate(read_wthor(path).games(), 1))
        return
    lines, initial = list(text_lines(path)), Position.initial(rules)
    if looks_like_ggf("\n".join(lines)):
        yield from ((f"game {number}", game) for number, game in enumerate(read_ggf(lines), 1))
        return
    for number, line in enumerate(lines, 1):
        if text := line.partition("%")[0].strip():
            with within(f"line {number} of {str(path)!r}"):
                is_board = _BOARD.match(text)
                game = Game(read_obf_line(text, rules).position) if is_board else read_transcript(text, initial)
            yield f"line {number}", game


def _balance_evaluator(rules: Rules) -> Callable[[Position], float]:
    """Return the function from a position to its value in discs, independent of earlier calls."""
    if rules.size == 4:
        return lambda position: float(solve(position).score)
    agent = make_agent(BALANCE_AGENT)
    assert isinstance(agent, SearchAgent)
    engine = agent.engine(rules)

    def evaluate(position: Position) -> float:
        engine.clear()
        return agent.search(position).value

    return evaluate


@dataclass(frozen=True, eq=False)
class Openings:
    """Start positions of many games: boards of the side to move and of the other side, and whether player A is to move.

    ``streams`` has the random stream of each game, by default its index. With ``paired``, games 2k and 2k + 1 have the same
    opening with the players exchanged.
    """

    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    a_moves: NDArray[np.bool_]
    streams: NDArray[np.int64] | None = None
    paired: bool = False

    @classmethod
    def random(cls, rules: Rules, pairs: int, plies: int = 6, seed: int = 0) -> Openings:
        """Return *pairs* positions after random plies, each twice: game 2k with player A to move, game 2k + 1 with player B."""
        own, opp, _ = passed(*batch.random_positions(pairs, plies, rules, seed=seed), rules)
        return cls(np.repeat(own, 2), np.repeat(opp, 2), np.tile([True, False], len(own)), paired=True)

    @property
    def games(self) -> int:
        return self.own.size

    def repeated(self, times: int) -> Openings:
        """Return the same games several times, with the same random streams."""
        streams = np.arange(self.games) if self.streams is None else self.streams
        own, opp, a_moves = np.tile(self.own, times), np.tile(self.opp, times), np.tile(self.a_moves, times)
        return Openings(own, opp, a_moves, np.tile(streams, times), self.paired)

    def generators(self, seed: int) -> NDArray[np.uint64]:
        """Return the state of every game's random generator."""
        streams = np.arange(self.games) if self.streams is None else self.streams
        states = np.random.default_rng(seed).integers(0, 1 << 63, int(streams.max(initial=-1)) + 1, np.uint64)
        return states[streams]


def passed(
    own: NDArray[np.uint64], opp: NDArray[np.uint64], rules: Rules
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Return positions after the pass of a side without a move, and which sides have passed."""
    passes = batch.legal_moves(own, opp, rules) == 0
    return np.where(passes, opp, own), np.where(passes, own, opp), passes
