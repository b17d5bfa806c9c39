"""Where games begin: random openings, openings that an engine finds even, or those of a file; one by one, or boards of many games.

A tournament's openings are a sequence that its options decide: round *r* is played from opening *r*, by every pairing, from both
sides. Openings drawn at random are all different, up to the symmetries of the board, as long as there are different ones.
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

#: Draws in a row that give nothing new before the openings so far are taken to be all there are.
MAX_TRIES = 400
#: Who says what is even: a search with the network, or the solver on the 4x4 board.
BALANCE_AGENT = "network:depth=8,table=1"
#: Plies of openings drawn at random, unless said otherwise: after four on 6x6 there are 60 positions, after six 1,632. Of balanced
#: ones on 4x4 too: after two plies white wins by ten or more there, after six 59 positions are within two discs.
DEFAULT_PLIES = {4: 2, 6: 6, 8: 6}
BALANCED_PLIES = 6
#: A line that begins with a board is OBF; a transcript has row numbers.
_BOARD = re.compile(r"[XxOo*0BbWw._●○-]{16}")


@dataclass(frozen=True, slots=True)
class Opening:
    """A start, and the moves that were made from it, by name with every pass."""

    start: Position
    moves: tuple[str, ...] = ()

    @property
    def position(self) -> Position:
        """Where the players take over."""
        return self.start.play_all(self.moves)


def random_opening(rules: Rules, plies: int, generator: np.random.Generator) -> Opening:
    """*plies* random moves from the start that leave a game to play."""
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
        f"no opening of {plies} random plies leaves a game to play on the {rules.size}x{rules.size} board"
    )


def random_openings(
    rules: Rules, plies: int, seed: int, accept: Callable[[Position], bool] = lambda position: True
) -> Iterator[Opening]:
    """Openings without end, each new one of the accepted; once there are no new ones, the same again from the first."""
    generator = np.random.default_rng(seed)
    seen: set[Position] = set()
    found: list[Opening] = []
    misses = 0
    while misses < MAX_TRIES:
        opening = random_opening(rules, plies, generator)
        position = opening.position.canonical()
        if position in seen or not accept(opening.position):
            misses += 1
        else:
            misses = 0
            found.append(opening)
            yield opening
        seen.add(position)
    if not found:
        raise ReversiError(
            f"none of {MAX_TRIES} openings of {plies} random plies is even enough: expected some; allow more discs "
            "(--balance), or other plies (--plies)"
        )
    yield from cycle(found)


def opening_sequence(
    source: str, rules: Rules, plies: int | None = None, seed: int = 0, balance: float = 2.0
) -> Iterator[Opening]:
    """Openings without end: ``random``, ``balanced`` (within *balance* discs of a draw) or those of a file, again and again.

    *plies* is their length, by default `DEFAULT_PLIES` or `BALANCED_PLIES`; for a file the most that is taken of each, by default
    all.
    """
    if source not in ("random", "balanced"):
        return cycle(openings_of_file(Path(source), rules, plies))
    if source == "random":
        return random_openings(rules, DEFAULT_PLIES[rules.size] if plies is None else plies, seed)
    judge, plies = _balance_evaluator(rules), BALANCED_PLIES if plies is None else plies
    return random_openings(rules, plies, seed, lambda position: abs(judge(position)) <= balance)


def openings_of_file(path: Path, rules: Rules, plies: int | None = None) -> list[Opening]:
    """The openings of a file: games in GGF or WTHOR, or on each line a transcript or an OBF position; cut after *plies*."""
    openings = []
    try:
        games = list(_games(path, rules))
    except OSError as error:
        raise ReversiError(
            f"openings {str(path)!r} cannot be read, {(error.strerror or str(error)).lower()}: "
            f"expected random, balanced, or a file of transcripts, OBF, GGF or WTHOR"
        ) from None
    for where, game in games:
        if (game.start.rules.size, game.start.rules.variant) != (rules.size, rules.variant):
            of = game.start.rules
            raise ReversiError(
                f"{where} of {str(path)!r} is of the {of.size}x{of.size} {of.variant} game: "
                f"expected {rules.size}x{rules.size} {rules.variant}"
            )
        opening = Opening(game.start, game.moves if plies is None else game.moves[:plies])
        if opening.position.is_over():
            raise ReversiError(f"{where} of {str(path)!r} ends the game: expected an opening that leaves one to play")
        openings.append(opening)
    if not openings:
        raise ReversiError(f"{str(path)!r} holds no opening: expected transcripts, OBF, GGF or WTHOR")
    return openings


def _games(path: Path, rules: Rules) -> Iterator[tuple[str, Game]]:
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
    """The value of a position in discs for the side to move, the same whatever was judged before."""
    if rules.size == 4:
        return lambda position: float(solve(position).score)
    agent = make_agent(BALANCE_AGENT)
    assert isinstance(agent, SearchAgent)
    engine = agent.engine(rules)

    def judge(position: Position) -> float:
        engine.clear()
        return agent.search(position).value

    return judge


# --- boards of many games -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Openings:
    """Where many games begin: boards of the side to move and of the other side, and whether player A is the side to move.

    ``streams`` numbers the random numbers that each game uses; by default every game has its own. With ``paired``, games 2k and
    2k + 1 begin alike, with the players exchanged.
    """

    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    a_moves: NDArray[np.bool_]
    streams: NDArray[np.int64] | None = None
    paired: bool = False

    @classmethod
    def random(cls, rules: Rules, pairs: int, plies: int = 6, seed: int = 0) -> Openings:
        """*pairs* positions after *plies* random plies, each twice: game 2k with player A to move, game 2k + 1 with player B."""
        own, opp, _ = passed(*batch.random_positions(pairs, plies, rules, seed=seed), rules)
        return cls(np.repeat(own, 2), np.repeat(opp, 2), np.tile([True, False], len(own)), paired=True)

    @property
    def games(self) -> int:
        """How many."""
        return self.own.size

    def repeated(self, times: int) -> Openings:
        """The same games several times over, with the same random numbers."""
        streams = np.arange(self.games) if self.streams is None else self.streams
        own, opp, a_moves = np.tile(self.own, times), np.tile(self.opp, times), np.tile(self.a_moves, times)
        return Openings(own, opp, a_moves, np.tile(streams, times), self.paired)

    def generators(self, seed: int) -> NDArray[np.uint64]:
        """The state of every game's generator."""
        streams = np.arange(self.games) if self.streams is None else self.streams
        drawn = np.random.default_rng(seed).integers(0, 1 << 63, int(streams.max(initial=-1)) + 1, np.uint64)
        return drawn[streams]


def passed(
    own: NDArray[np.uint64], opp: NDArray[np.uint64], rules: Rules
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.bool_]]:
    """Positions in which a side that has no move has passed, and which sides have."""
    passes = batch.legal_moves(own, opp, rules) == 0
    return np.where(passes, opp, own), np.where(passes, own, opp), passes
