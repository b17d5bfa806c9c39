"""Tournaments: round robins and gauntlets over agents, from paired openings, on all cores, resumable at any moment.

Game *i* depends on the options and on *i* alone: its opening on the round, its agents – made anew for each game, so that no
table knows more than it should – on seeds drawn from (seed, *i*, player). With limits of depth or nodes a tournament is
therefore the same on any number of workers, in one go or in ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from reversi_env import BLACK, WHITE, Position, ReversiError
from reversi_env.errors import shown
from search.agent import Agent
from search.external.failure import EngineFailure
from search.external.player import ExternalAgent
from train.cluster import Executor, Processes, WorkerPool
from train.games.openings import Opening, openings_of_file
from train.games.options import Fixture, TournamentOptions
from train.games.playing import play_game
from train.games.sprt import Verdict, pair_counts
from train.games.storage import MANIFEST, Folder, Record


@dataclass(frozen=True)
class Tournament:
    """A tournament as far as it was played: its games in order, without gaps if `complete`.

    ``verdict`` is what an SPRT found; the games are then those up to its decision.
    """

    options: TournamentOptions
    records: tuple[Record, ...]
    complete: bool
    verdict: Verdict | None = None

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
    on_game: Callable[[Record, int], None] = lambda record, done: None,
) -> Tournament:
    """Play what is missing of a tournament in *folder*, on so many processes (0: in this one); *on_game* hears of every new game.

    An *executor* is used instead of processes: a Ray cluster, on whose machines other programs must be installed too.
    Interrupted in any way, the same call goes on; a KeyboardInterrupt leaves the folder in order, and `read_tournament` has the
    games so far.
    """
    with Folder(folder, options) as store:
        records = store.read()
        course = _Course(options, records)
        try:
            if course.end is None:
                prepare(options)
                with _players(options, workers, executor) as pool:
                    for record in pool.results(jobs(options, records)):
                        store.append(record)
                        records[record.fixture.index] = record
                        course.look()
                        on_game(record, len(records))
                        if course.end is not None:
                            break
        except BaseException:
            if records:
                store.write_ggf(records.values())
            raise
        store.write_all(course.tournament().records)
        return course.tournament()


def _players(options: TournamentOptions, workers: int, executor: Executor | None) -> AbstractContextManager[WorkerPool]:
    if executor is None:
        return Processes(workers).workers(GamePlayer, options)
    # openings come with the jobs: their file may stay here
    return executor.workers(VisitingPlayer, replace(options, openings="random"), cpus=threads_of(options))


def threads_of(options: TournamentOptions) -> int:
    """Threads of the agent that thinks with most."""
    made = [options.make_agent(player, 0) for player in range(len(options.agents))]
    return max(agent.threads for agent in made)


def read_tournament(options: TournamentOptions, folder: Path) -> Tournament:
    """A tournament as far as *folder* has it."""
    if not (folder / MANIFEST).exists():
        return Tournament(options, (), complete=False)
    store = Folder(folder, options)
    store.remember()
    return _Course(options, store.read()).tournament()


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
                f"since {shown(spec)} cannot be set up to one"
            )


def jobs(options: TournamentOptions, done: dict[int, Record]) -> Iterator[tuple[Fixture, Opening]]:
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

    def __call__(self, job: tuple[Fixture, Opening]) -> Record:
        """Play one game."""
        fixture, opening = job
        players = {BLACK: self._agent(fixture.black, fixture.index), WHITE: self._agent(fixture.white, fixture.index)}
        return Record(fixture, play_game(players, opening))

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


class VisitingPlayer(GamePlayer):
    """Plays games on a machine that may lack what they need: other programs, above all, which would lose them all."""

    def __init__(self, options: TournamentOptions) -> None:
        super().__init__(options)
        prepare(options)


class _Course:
    """How far a tournament has come: `end` is its number of games, once that is known and they are all there."""

    def __init__(self, options: TournamentOptions, records: dict[int, Record]) -> None:
        self._options, self._records = options, records
        self._pairs, self._counts = 0, np.zeros(5, np.int64)
        self.verdict: Verdict | None = None
        self.end: int | None = None
        self.look()

    def look(self) -> None:
        """Take new games into account. An SPRT counts pairs in their order, whenever they were played."""
        sprt, records = self._options.sprt, self._records
        while sprt is not None and self.verdict is None and {2 * self._pairs, 2 * self._pairs + 1} <= records.keys():
            points = [points_of(records[2 * self._pairs + game], 0) for game in (0, 1)]
            self._counts += pair_counts([sum(points)])
            self._pairs += 1
            self.verdict = sprt.verdict(self._counts)
        if self.verdict is not None:
            self.end = 2 * self._pairs
        elif len(records) == self._options.total:
            self.end = self._options.total

    def tournament(self) -> Tournament:
        """The games so far, or those up to the end."""
        numbers = sorted(index for index in self._records if self.end is None or index < self.end)
        records = tuple(self._records[index] for index in numbers)
        return Tournament(self._options, records, self.end is not None, self.verdict)


def points_of(record: Record, player: int) -> float:
    """What *player* got out of the game: 1, a half or 0."""
    discs = record.game.discs if record.fixture.black == player else -record.game.discs
    return 0.5 + 0.5 * ((discs > 0) - (discs < 0))
