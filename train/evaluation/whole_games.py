"""`play_whole_games`: the discs that an agent loses in whole games, judged by exact values.

The agent plays against a perfect player from fixed openings. A move loses the discs by which its exact value is below that of the
best move. Moves without a choice are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reversi_env import BLACK, WHITE, Colour, Position, Rules
from reversi_env.kernels.parallel import core_count
from reversi_env.options import derive_seed
from reversi_env.rules import PASS_NAME
from search.agents.base import Agent
from search.agents.spec import AgentSpec
from search.exact_scores import ExactScores
from train import charts
from train.arena.match import chosen_move
from train.arena.openings import Opening, random_openings
from train.evaluation.means import Estimate, Sample, plain
from train.evaluation.options import WholeGameOptions
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.processes import Executor, LocalExecutor
from train.jobs.run import Run

#: Files of a run: the judged games, and the plot.
LOG, PLOT = "whole-games.jsonl", "whole-games.svg"
#: Plies of the openings, and the largest exact score of one, in discs for either side; 4x4 has few openings.
OPENING_PLIES, BALANCE = {4: 4, 6: 6}, {4: 16, 6: 4}
PHASES = ("opening", "midgame", "endgame")


class GameJob(NamedTuple):
    """A game of the agent with index *agent*, as *colour*."""

    agent: int
    number: int
    opening: Opening
    colour: Colour


class JudgedMove(NamedTuple):
    """A move: its ply from the start, without passes, the value of the best move, and its own, in discs for the agent."""

    ply: int
    best: int
    value: int


class JudgedGame(NamedTuple):
    """An agent's moves with a choice in one game, the value of the opening for the agent, and its final score."""

    agent: int
    number: int
    opening_value: int
    final: int
    moves: Sequence[JudgedMove]


class WholeGamePlayer:
    """Plays and judges games in a worker. Each game has a new agent, so that it depends on its job alone."""

    def __init__(
        self, options: WholeGameOptions, cache: Path | None = None, policy: Agent | None = None, threads: int = 1
    ) -> None:
        self._options, self._policy = options, policy
        self._scores = ExactScores(options.rules, cache, threads=threads)

    def __call__(self, job: GameJob) -> JudgedGame:
        self._scores.read()
        try:
            if self._policy is not None:
                return self._play(self._policy, job)
            seed = derive_seed(self._options.seed, job.number)
            with AgentSpec.parse(self._options.agents[job.agent]).make(seed=seed) as agent:
                agent.prepare(self._options.rules)
                return self._play(agent, job)
        finally:
            self._scores.write()

    def _play(self, agent: Agent, job: GameJob) -> JudgedGame:
        position, names, moves = job.opening.position, list(job.opening.moves), list[JudgedMove]()
        rules, scores = position.rules, self._scores
        opening_value = scores.score(position) * (1 if position.turn == job.colour else -1)
        while not position.is_over():
            if position.must_pass():
                name = PASS_NAME
            elif position.turn != job.colour:
                name = rules.name_of(scores.best_action(position))
            else:
                name = chosen_move(agent, job.opening.start, names, position)
                if len(position.legal_actions()) > 1:
                    value = scores.move_value(position, rules.action_from_name(name))
                    ply = rules.square_count - 4 - position.empties
                    moves.append(JudgedMove(ply, scores.score(position), value))
            names.append(name)
            position = position.play(name)
        return JudgedGame(job.agent, job.number, opening_value, position.score(job.colour), moves)


def fixed_openings(rules: Rules, count: int, scores: ExactScores) -> list[Opening]:
    """Return the start and up to *count* - 1 openings that differ, also up to symmetry; a larger *count* only adds openings."""
    balance = BALANCE[rules.size]
    openings = random_openings(
        rules, OPENING_PLIES[rules.size], 0, lambda position: abs(scores.score(position)) <= balance
    )
    return [Opening(Position.initial(rules)), *dict.fromkeys(islice(openings, count - 1))]


def play_whole_games(
    options: WholeGameOptions,
    folder: Path | None = None,
    *,
    policy: Agent | None = None,
    cache: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
) -> list[WholeGames]:
    """Return the judged games of each agent, or of a *policy* in place of a single agent.

    With a *folder* every game is logged, and a plot is drawn at the end. The same call resumes an interrupted run, also with
    other agents or more games. The *executor* (default: a process per core) plays; a policy plays in this process, where the
    solver uses all cores. Solved positions are in the folder *cache*, by default the user's.
    """
    keys = list(options.agents) if policy is not None else [_key(spec, options.rules) for spec in options.agents]
    scores = ExactScores(options.rules, cache, threads=core_count())
    openings = list(enumerate(fixed_openings(options.rules, options.games // 2, scores)))
    scores.write()
    total, games = len(keys) * 2 * len(openings), dict[tuple[str, int], JudgedGame]()
    with ExitStack() as stack:
        log = None
        if folder is not None:
            stack.enter_context(Run(folder, options, changeable=("agents",), extendable=("games",)))
            log = JsonLines(folder / LOG)
            for key, number, value, final, moves in log.read():
                games[key, number] = JudgedGame(0, number, value, final, [JudgedMove(*move) for move in moves])
        jobs = [
            GameJob(agent, 2 * row + side, opening, colour)
            for row, opening in openings  # the agents' games from one opening share entries of the table
            for side, colour in enumerate((BLACK, WHITE))
            for agent, key in enumerate(keys)
            if (key, 2 * row + side) not in games
        ]
        if jobs:
            executor = executor or LocalExecutor(core_count() if policy is None else 0)
            threads = 1 if policy is None else core_count()
            pool = stack.enter_context(executor.workers(WholeGamePlayer, options, cache, policy, threads))
            for done, game in enumerate(pool.results(iter(jobs)), total - len(jobs)):
                progress("games", done, total)
                games[keys[game.agent], game.number] = game
                if log is not None:
                    log.append([keys[game.agent], *game[1:]])
        progress("games", total, total)
    numbers = range(2 * len(openings))
    results = [
        WholeGames(spec, options.rules, tuple(games[key, number] for number in numbers))
        for spec, key in zip(options.agents, keys, strict=True)
    ]
    if folder is not None:
        ply_figure(results).save(folder / PLOT, optional=True)
    return results


def _key(spec: str, rules: Rules) -> str:
    """Return the spec and the hashes of its files, so that logged games of other weights are not reused."""
    with AgentSpec.parse(spec).make() as agent:
        agent.check(rules)
        return " ".join(
            [spec, *(f"{name}={value[:12]}" for name, value in sorted(agent.content_hashes(rules).items()))]
        )


# --- statistics -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoveStatistics:
    """Number of moves, mean loss in discs, and share of moves without loss, clustered by opening."""

    moves: int
    lost: Estimate
    perfect: Estimate


@dataclass(frozen=True)
class WholeGames:
    """The judged games of one agent. The first two are from the start, as black and as white."""

    agent: str
    rules: Rules
    games: tuple[JudgedGame, ...]

    @cached_property
    def lost_per_game(self) -> Estimate:
        """The mean of the discs lost in a game."""
        worst = [game.opening_value + self.rules.square_count for game in self.games]
        lost = self._sample(self.games).loss([game.opening_value - game.final for game in self.games], worst)
        low, high = lost.interval
        return replace(lost, interval=(low, min(high, float(np.mean(worst)))))  # no game can lose more

    @cached_property
    def kept(self) -> tuple[int, Estimate] | None:
        """The games that are won or drawn under perfect play, and the share of them in which the result is no worse."""
        games = [game for game in self.games if game.opening_value >= 0]
        share = [np.sign(game.final) >= np.sign(game.opening_value) for game in games]
        return (len(games), self._sample(games).share(share)) if games else None

    @cached_property
    def overall(self) -> MoveStatistics | None:
        return self._moves(0, self.rules.square_count)

    @cached_property
    def phases(self) -> dict[str, MoveStatistics | None]:
        """The moves of the first, second and last third of all plies."""
        ends = np.linspace(0, self.rules.square_count - 4, len(PHASES) + 1).round().astype(int).tolist()
        return {phase: self._moves(*ends[number : number + 2]) for number, phase in enumerate(PHASES)}

    @cached_property
    def by_ply(self) -> dict[int, MoveStatistics]:
        plies = {ply: self._moves(ply, ply + 1) for ply in range(self.rules.square_count - 4)}
        return {ply: moves for ply, moves in plies.items() if moves is not None}

    def _moves(self, low: int, high: int) -> MoveStatistics | None:
        """Return the statistics of the moves from ply *low* on and before *high*; None if there are none."""
        moves = [(game, move) for game in self.games for move in game.moves if low <= move.ply < high]
        if not moves:
            return None
        sample = self._sample([game for game, _ in moves])
        losses = np.array([move.best - move.value for _, move in moves])
        worst = [move.best + self.rules.square_count for _, move in moves]
        return MoveStatistics(len(moves), sample.loss(losses, worst), sample.share(losses == 0))

    def _sample(self, games: Sequence[JudgedGame]) -> Sample:
        return Sample(np.zeros(len(games), np.int64), [game.number // 2 for game in games])

    def as_dict(self) -> dict[str, Any]:
        def entries(moves: MoveStatistics | None) -> dict[str, Any] | None:
            if moves is None:
                return None
            return {"moves": moves.moves, "lost": _plain(moves.lost), "perfect": _plain(moves.perfect)}

        start = {
            name: game.opening_value - game.final for name, game in zip(("black", "white"), self.games, strict=False)
        }
        return {
            "agent": self.agent,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "games": len(self.games),
            "lost_per_game": _plain(self.lost_per_game),
            "lost_from_the_start": start,
            "kept": self.kept and {"games": self.kept[0], **_plain(self.kept[1])},
            "overall": entries(self.overall),
            **{phase: entries(moves) for phase, moves in self.phases.items()},
            "by_ply": {ply: entries(moves) for ply, moves in self.by_ply.items()},
        }

    def __str__(self) -> str:
        lines = [f"{'':8} {'moves':>6}  discs lost  95 % interval  perfect  95 % interval"]
        for name, moves in (*self.phases.items(), ("all", self.overall)):
            if moves is not None:
                lost, shares = (
                    _interval(moves.lost, "{:.2f}–{:.2f}"),
                    _interval(moves.perfect, "{:.1%}–{:.1%}"),
                )
                figures = f"{moves.moves:6} {moves.lost.mean:11.2f} {lost:>14} {moves.perfect.mean:8.1%} {shares:>14}"
                lines.append(f"{name:8} {figures}")
        within = _interval(self.lost_per_game, "{:.1f}–{:.1f}")
        lines.append(f"discs lost per game: {self.lost_per_game.mean:.1f} (95 % interval {within})")
        if self.kept is not None:
            count, share = self.kept
            within = f"{share.mean:.1%} (95 % interval {_interval(share, '{:.1%}–{:.1%}')})"
            lines.append(f"result kept: {within} of {count} games that perfect play wins or draws")
        black, white = (game.opening_value - game.final for game in self.games[:2])
        lines.append(f"from the start: {black} discs lost as black, {white} as white; {len(self.games)} games in all")
        return "\n".join(lines)


def _interval(estimate: Estimate, form: str) -> str:
    return "unknown" if np.isnan(estimate.interval[0]) else form.format(*estimate.interval)


def _plain(estimate: Estimate) -> dict[str, Any]:
    return plain(asdict(estimate))


def ply_figure(results: Sequence[WholeGames]) -> charts.Figure:
    """Return a plot of the discs lost per move and the share of perfect moves by ply, with 95 % intervals for a single agent."""

    def draw(figure: Any) -> None:
        axes = charts.panels(figure, 2, ("discs lost per move", "perfect moves, per cent"))
        for result, colour in zip(results, (*charts.COLOURS, charts.GREY, charts.BLACK), strict=False):
            plies = list(result.by_ply)
            for axis, name, factor in zip(axes, ("lost", "perfect"), (1, 100), strict=True):
                estimates = [getattr(moves, name) for moves in result.by_ply.values()]
                means = factor * np.array([estimate.mean for estimate in estimates])
                ends = factor * np.array([estimate.interval for estimate in estimates]).T
                if len(results) > 1:
                    axis.plot(plies, means, color=colour, label=result.agent)
                else:
                    charts.points(axis, plies, means, np.nan_to_num(np.abs(ends - means)), colour)
        for axis, top in zip(axes, (None, 100), strict=True):
            axis.set(xlabel="ply", ylim=(0, top))
        if len(results) > 1:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")

    return charts.Figure("whole-games", "Whole games against perfect play, judged by exact values.", draw)
