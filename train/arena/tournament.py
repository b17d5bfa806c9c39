"""Tournaments: round robins and gauntlets of agents from paired openings, on all cores, resumable; and win rates.

A game depends only on the options and its index: its opening on the round, and its agents, which are made again for each game, on
seeds derived from (seed, index, player). With limits of depth or nodes a tournament is therefore the same on any number of workers
and after any interruption.
"""

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
    """The games of a tournament so far.

    An SPRT counts pairs in order: ``pairs`` has the numbers of pairs with 0, ½, 1, 1½ and 2 points for the first agent, up to the
    ``verdict``, which ends the tournament.
    """

    def __init__(self, options: TournamentOptions, records: Iterable[GameRecord] = ()) -> None:
        self.options = options
        self.verdict: Verdict | None = None
        self.pairs = np.zeros(5, np.int64)
        self.by_number: dict[int, GameRecord] = {}
        for record in records:
            self.add(record)

    def add(self, record: GameRecord) -> None:
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
        """Number of games of the tournament; an SPRT may still lower it."""
        return self.options.total if self.verdict is None else 2 * int(self.pairs.sum())

    @property
    def complete(self) -> bool:
        return self.verdict is not None or len(self.by_number) == self.end

    @property
    def records(self) -> tuple[GameRecord, ...]:
        """The games in order, up to the decision of an SPRT."""
        return tuple(self.by_number[number] for number in sorted(self.by_number) if number < self.end)

    @property
    def openings(self) -> int:
        """Number of different openings, up to symmetry."""
        return len({record.game.opening.position.canonical() for record in self.records})

    @property
    def rounds(self) -> int:
        """Number of rounds that were started."""
        return len({record.fixture.round for record in self.records})


def run_tournament(
    options: TournamentOptions,
    folder: Path,
    *,
    workers: int = 0,
    executor: Executor | None = None,
    on_game: Callable[[GameRecord, int], None] = lambda record, done: None,
) -> Tournament:
    """Play the missing games of a tournament in *folder*, on *workers* processes (0: this one); *on_game* is called after each.

    An *executor* is used instead of processes: a Ray cluster, on whose machines external programs must be installed too.
    Interrupted in any way, the same call resumes the tournament, and `read_tournament` returns the games so far.
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
    """Yield the missing games as they end, until the tournament, to which the caller adds them, is complete."""
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
    # Openings are part of the jobs, so the workers do not need their file.
    return executor.workers(RemoteGamePlayer, replace(options, openings="random"), cpus=threads_of(options))


def threads_of(options: TournamentOptions) -> int:
    """Return the largest number of threads of an agent."""
    return max(agent.threads for agent in options.made_agents())


def read_tournament(options: TournamentOptions, folder: Path) -> Tournament:
    """Return the tournament in *folder*, with its games so far."""
    if not (folder / MANIFEST).exists():
        return Tournament(options)
    store = TournamentFolder(folder, options)
    store.store_or_check_options()
    return Tournament(options, store.read())


def prepare(options: TournamentOptions) -> None:
    """Compile the kernels of every agent, and check that external programs start and play this game."""
    for player, spec in enumerate(options.agents):
        if spec in options.agents[:player]:
            continue
        with options.make_agent(player, 0) as agent:
            agent.prepare(options.rules)
            if not agent.sets_up_positions:
                _check_starts(options, spec)


def _check_starts(options: TournamentOptions, spec: str) -> None:
    """Raise if a program that plays from the start position only would get another opening."""
    if options.openings in ("random", "balanced"):
        return
    for number, opening in enumerate(openings_of_file(Path(options.openings), options.rules, options.plies), 1):
        if opening.start != Position.initial(options.rules):
            raise ReversiError(
                f"opening {number} of {options.openings!r} is a position: expected moves from the start, "
                f"since {quoted(spec)} cannot set up positions"
            )


def jobs(options: TournamentOptions, done: Container[int]) -> Iterator[tuple[Fixture, Opening]]:
    """Yield the games that are not *done*, in order, with their openings."""
    openings, rounds = options.opening_sequence(), list[Opening]()
    for index in range(options.total):
        fixture = options.fixture(index)
        while len(rounds) <= fixture.round:
            rounds.append(next(openings))
        if index not in done:
            yield fixture, rounds[fixture.round]


class GamePlayer:
    """Plays games in a worker. External programs stay open between games, other agents are made for each game."""

    def __init__(self, options: TournamentOptions) -> None:
        self._options = options
        self._programs: dict[int, Agent] = {}

    def __call__(self, job: tuple[Fixture, Opening]) -> GameRecord:
        fixture, opening = job
        players = {BLACK: self._agent(fixture.black, fixture.index), WHITE: self._agent(fixture.white, fixture.index)}
        return GameRecord(fixture, play_game(players, opening))

    def close(self) -> None:
        for agent in self._programs.values():
            agent.close()

    def _agent(self, player: int, game: int) -> Agent:
        agent = self._programs.get(player) or self._options.make_agent(player, game)
        if isinstance(agent, ExternalAgent):
            self._programs[player] = agent
        with suppress(EngineFailure):  # the program will fail again at its move, and forfeit
            agent.prepare(self._options.rules)  # before the move is timed
        return agent


class RemoteGamePlayer(GamePlayer):
    """Plays games on another machine, and checks first that external programs run there."""

    def __init__(self, options: TournamentOptions) -> None:
        super().__init__(options)
        prepare(options)


@dataclass(frozen=True)
class WinRate:
    """The win rate of an agent, draws counted as half, its interval, and whether the interval is as narrow as required."""

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
    """Play a tournament of two, without storing it, until the first agent's win rate is known to within *margin*.

    *on_pair* is called after each pair. Pairs count in order, so that the result is independent of the workers.
    """
    if not 0 < margin < 0.5:
        raise ReversiError(f"margin {quoted(margin)}: expected a share of the games, above 0 and below 0.5")
    sequence, estimate = ConfidenceSequence(confidence), WinRate()
    with closing(missing_games(Tournament(options), workers)) as games:
        ordered = in_order((record.fixture.index, record.points_of(0)) for record in games)
        for first, second in zip(ordered, ordered, strict=True):
            sequence.add((first + second) / 2)
            estimate = WinRate(sequence.mean, sequence.interval, 2 * sequence.count)
            estimate = replace(estimate, converged=estimate.margin <= margin)
            on_pair(estimate)
            if estimate.converged:
                break
    return estimate
