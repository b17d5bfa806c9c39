"""Tournaments: round robins and gauntlets over agents, from paired openings, on all cores, resumable at any moment.

Game *i* depends on the options and on *i* alone: its opening on the round, its agents – made anew for each game, so that no
table knows more than it should – on seeds drawn from (seed, *i*, player). With limits of depth or nodes a tournament is
therefore the same on any number of workers, in one go or in ten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from reversi_env import BLACK, WHITE, Position, ReversiError
from reversi_env.errors import quoted
from search.agents.base import Agent
from search.agents.external.base import ExternalAgent
from search.agents.external.process import EngineFailure
from train.arena.match import play_game
from train.arena.openings import Opening, openings_of_file
from train.arena.options import Fixture, TournamentOptions
from train.arena.sequential import ConfidenceSequence, Verdict, pair_counts
from train.arena.storage import GameRecord, TournamentFolder
from train.jobs.processes import Executor, LocalExecutor, WorkerPool, in_order
from train.jobs.run import MANIFEST


class Tournament:
    """A tournament as far as it was played, by its games in any order.

    An SPRT counts pairs in their order, whenever they were played: ``pairs`` in which the first agent got 0, ½, 1, 1½ and 2 points,
    up to its ``verdict``, which ends the tournament.
    """

    def __init__(self, options: TournamentOptions, records: Iterable[GameRecord] = ()) -> None:
        self.options = options
        self.verdict: Verdict | None = None
        self.pairs = np.zeros(5, np.int64)
        self.by_number: dict[int, GameRecord] = {}
        for record in records:
            self.add(record)

    def add(self, record: GameRecord) -> None:
        """Take one more game into account."""
        self.by_number[record.fixture.index] = record
        sprt = self.options.sprt
        while sprt is not None and self.verdict is None:
            games = [self.by_number.get(2 * int(self.pairs.sum()) + exchanged) for exchanged in (0, 1)]
            if None in games:
                break
            self.pairs += pair_counts([sum(game.points_of(0) for game in games if game is not None)])
            self.verdict = sprt.verdict(self.pairs)

    @property
    def end(self) -> int:
        """The number of games, as far as is known."""
        return self.options.total if self.verdict is None else 2 * int(self.pairs.sum())

    @property
    def complete(self) -> bool:
        """Whether all games are there."""
        return self.verdict is not None or len(self.by_number) == self.end

    @property
    def records(self) -> tuple[GameRecord, ...]:
        """The games in order, without gaps if it is `complete`; none after an SPRT's decision."""
        return tuple(self.by_number[number] for number in sorted(self.by_number) if number < self.end)

    @property
    def openings(self) -> int:
        """Positions that games began from, those that mirror each other counted once."""
        return len({record.game.opening.position.canonical() for record in self.records})

    @property
    def rounds(self) -> int:
        """Rounds that were begun; each is meant to have an opening of its own."""
        return len({record.fixture.round for record in self.records})


def run_tournament(
    options: TournamentOptions,
    folder: Path,
    *,
    workers: int = 0,
    executor: Executor | None = None,
    on_game: Callable[[GameRecord, int], None] = lambda record, done: None,
) -> Tournament:
    """Play what is missing of a tournament in *folder*, on so many processes (0: in this one); *on_game* hears of every new game.

    An *executor* is used instead of processes: a Ray cluster, on whose machines other programs must be installed too.
    Interrupted in any way, the same call goes on; a KeyboardInterrupt leaves the folder in order, and `read_tournament` has the
    games so far.
    """
    with TournamentFolder(folder, options) as store:
        tournament = Tournament(options, store.read())
        try:
            with closing(missing_games(tournament, workers, executor)) as games:
                for record in games:
                    store.append(record)
                    tournament.add(record)
                    on_game(record, len(tournament.by_number))
        except BaseException:
            if tournament.by_number:
                store.write_ggf(tournament.records)
            raise
        store.write_all(tournament.records)
        return tournament


def missing_games(tournament: Tournament, workers: int = 0, executor: Executor | None = None) -> Generator[GameRecord]:
    """Play what is missing, on so many processes; games come as they end, and the caller adds them until it is complete."""
    options = tournament.options
    if tournament.complete:
        return
    prepare(options)
    with _players(options, workers, executor) as players:
        for record in players.results(jobs(options, tournament.by_number)):
            yield record
            if tournament.complete:
                return


def _players(options: TournamentOptions, workers: int, executor: Executor | None) -> AbstractContextManager[WorkerPool]:
    if executor is None:
        return LocalExecutor(workers).workers(GamePlayer, options)
    # openings come with the jobs: their file may stay here
    return executor.workers(RemoteGamePlayer, replace(options, openings="random"), cpus=threads_of(options))


def threads_of(options: TournamentOptions) -> int:
    """Threads of the agent that thinks with most."""
    return max(agent.threads for agent in options.made_agents())


def read_tournament(options: TournamentOptions, folder: Path) -> Tournament:
    """A tournament as far as *folder* has it."""
    if not (folder / MANIFEST).exists():
        return Tournament(options)
    store = TournamentFolder(folder, options)
    store.store_or_check_options()
    return Tournament(options, store.read())


def prepare(options: TournamentOptions) -> None:
    """Compile every agent's kernels, once, and see that other programs start and play this game; what cannot be is said now."""
    for player, spec in enumerate(options.agents):
        if spec in options.agents[:player]:
            continue
        with options.make_agent(player, 0) as agent:
            agent.prepare(options.rules)
            if not agent.sets_up_positions:
                _check_starts(options, spec)


def _check_starts(options: TournamentOptions, spec: str) -> None:
    """A program that knows games from the start only cannot begin elsewhere."""
    if options.openings in ("random", "balanced"):
        return
    for number, opening in enumerate(openings_of_file(Path(options.openings), options.rules, options.plies), 1):
        if opening.start != Position.initial(options.rules):
            raise ReversiError(
                f"opening {number} of {options.openings!r} is a position: expected moves from the start, "
                f"since {quoted(spec)} cannot be set up to one"
            )


def jobs(options: TournamentOptions, done: Container[int]) -> Iterator[tuple[Fixture, Opening]]:
    """The games that are still to be played, in order, with their openings."""
    openings, rounds = options.opening_sequence(), list[Opening]()
    for index in range(options.total):
        fixture = options.fixture(index)
        while len(rounds) <= fixture.round:
            rounds.append(next(openings))
        if index not in done:
            yield fixture, rounds[fixture.round]


class GamePlayer:
    """Plays games in a worker. Other programs are kept running from game to game, all other agents made anew."""

    def __init__(self, options: TournamentOptions) -> None:
        self._options = options
        self._programs: dict[int, Agent] = {}

    def __call__(self, job: tuple[Fixture, Opening]) -> GameRecord:
        """Play one game."""
        fixture, opening = job
        players = {BLACK: self._agent(fixture.black, fixture.index), WHITE: self._agent(fixture.white, fixture.index)}
        return GameRecord(fixture, play_game(players, opening))

    def close(self) -> None:
        """End the programs."""
        for agent in self._programs.values():
            agent.close()

    def _agent(self, player: int, game: int) -> Agent:
        agent = self._programs.get(player) or self._options.make_agent(player, game)
        if isinstance(agent, ExternalAgent):
            self._programs[player] = agent
        with suppress(EngineFailure):  # it will fail again when it is to move, and lose
            agent.prepare(self._options.rules)  # not on its clock
        return agent


class RemoteGamePlayer(GamePlayer):
    """Plays games on a machine that may lack what they need: other programs, above all, which would lose them all."""

    def __init__(self, options: TournamentOptions) -> None:
        super().__init__(options)
        prepare(options)


# --- win rate ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WinRate:
    """How often an agent wins, draws counted as half: the mean, its interval, whether that is as narrow as was asked for."""

    rate: float = 0.5
    interval: tuple[float, float] = (0.0, 1.0)
    games: int = 0
    converged: bool = False

    @property
    def margin(self) -> float:
        """Distance of the rate from the farther end of the interval."""
        low, high = self.interval
        return max(self.rate - low, high - self.rate)


def estimate_win_rate(
    options: TournamentOptions,
    *,
    margin: float = 0.02,
    confidence: float = 0.95,
    workers: int = 0,
    on_pair: Callable[[WinRate], None] = lambda rate: None,
) -> WinRate:
    """Play a tournament of two until the first agent's win rate is known to within *margin*, or to its end; nothing is kept.

    The same numbers whatever the number of workers: pairs count in their order. *on_pair* hears how far it is.
    """
    if not 0 < margin < 0.5:
        raise ReversiError(f"margin {quoted(margin)}: expected a share of the games, above 0 and below 0.5")
    sequence, found = ConfidenceSequence(confidence), WinRate()
    with closing(missing_games(Tournament(options), workers)) as games:
        ordered = in_order((record.fixture.index, record.points_of(0)) for record in games)
        for first, second in zip(ordered, ordered, strict=True):
            sequence.add((first + second) / 2)
            found = WinRate(sequence.mean, sequence.interval, 2 * sequence.count)
            found = replace(found, converged=found.margin <= margin)
            on_pair(found)
            if found.converged:
                break
    return found
