"""Thousands of games in lockstep, by compiled code, for statistics and tuning. Matches of agents are in `train.arena.match`.

>>> rules = Rules(6)
>>> greedy = EvaluatorPlayer("discs", rules)
>>> results = play_games(greedy, RandomPlayer(rules), Openings.random(rules, 100, plies=4), rules)
>>> results.games, results.score > 0.5
(200, True)
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import check_integer
from reversi_env.rules import checked_rules
from search import agents
from search.agents.base import Agent
from search.agents.spec import AgentSpec
from search.engine.solver import solve_batch
from search.engine.threads import checked_threads, make_thread_states
from search.evaluators.base import Evaluator
from search.evaluators.registry import exists, get_evaluator
from train.arena.openings import Openings
from train.arena.results import Results
from train.kernels.noisy_games import advance, choose_at_random, choose_best

#: Positions per task of a thread.
CHUNK = 512
MAX_DEPTH = 12

Boards = NDArray[np.uint64]
RngStates = NDArray[np.uint64]  #: states of random generators
Indices = NDArray[np.int64]  #: of games, or of squares


class BatchPlayer(Protocol):
    """Chooses moves in many games at once."""

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        """Return a legal square for every position, none of which is a pass.

        *games* are the indices of the games, *rng_states* the states of their generators, which are updated.
        """
        ...


class RandomPlayer:
    """Plays uniformly random moves."""

    def __init__(self, rules: Rules) -> None:
        self._playable = np.uint64(rules.playable)

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        squares = np.empty(own.size, np.int64)
        choose_at_random(own, opp, self._playable, rng_states, squares)
        return squares


class EvaluatorPlayer:
    """Plays the best move of a search to *depth* plies, and perfectly from *exact* empty squares on; ties are broken at random.

    With a *temperature* in discs, moves before the exact endgame are sampled: one that is worse by the temperature is e times as
    rare. Several evaluators of one kind may share a batch: the first plays the first *games_per_evaluator* games, and so on.
    """

    def __init__(
        self,
        evaluator: Evaluator | str | Sequence[Evaluator],
        rules: Rules,
        depth: int = 1,
        *,
        exact: int = 0,
        temperature: float = 0.0,
        threads: int | None = None,
        games_per_evaluator: int | None = None,
    ) -> None:
        check_integer("depth", depth, 1, MAX_DEPTH, ReversiError)
        candidates = (
            list(evaluator) if isinstance(evaluator, Sequence) and not isinstance(evaluator, str) else [evaluator]
        )
        self._evaluators = [get_evaluator(candidate) for candidate in candidates]  # kept: records have addresses
        self.nets = np.concatenate([candidate.record(rules) for candidate in self._evaluators])
        self.rules, self.depth, self.exact, self.temperature = rules, depth, exact, float(temperature)
        self.threads = checked_threads(threads or os.cpu_count() or 1)
        if len(self.nets) > 1 and games_per_evaluator is None:
            raise ReversiError(
                f"{len(self.nets)} evaluators: expected games_per_evaluator, the number of games per evaluator"
            )
        self._games_per_evaluator = games_per_evaluator
        self._local = threading.local()

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        squares = np.empty(own.size, np.int64)
        solved = np.bitwise_count(~(own | opp) & np.uint64(self.rules.playable)) <= self.exact
        if solved.any():
            squares[solved] = perfect_moves(own[solved], opp[solved], self.rules, rng_states[solved], self.threads)
        rows = np.flatnonzero(~solved)
        chunks = [rows[start : start + CHUNK] for start in range(0, rows.size, CHUNK)]

        def run(part: Indices) -> None:
            if not hasattr(self._local, "thread_states"):
                self._local.thread_states = make_thread_states(self.rules)
            best, new_states = np.empty(part.size, np.int64), rng_states[part]
            which = (
                np.zeros_like(part) if self._games_per_evaluator is None else games[part] // self._games_per_evaluator
            )
            moves_of = self._local.thread_states, self.nets, which, own[part], opp[part]
            choose_best(*moves_of, self.depth, self.temperature, new_states, best)
            squares[part], rng_states[part] = best, new_states

        with ExitStack() as failures:
            for candidate in self._evaluators:  # an evaluator written in Python may raise
                failures.enter_context(candidate.during_search(lambda: None))
            if self.threads == 1 or len(chunks) == 1:
                for part in chunks:
                    run(part)
            else:
                with ThreadPoolExecutor(self.threads) as pool:
                    for future in [pool.submit(run, part) for part in chunks]:
                        future.result()
        return squares


def perfect_moves(own: Boards, opp: Boards, rules: Rules, rng_states: RngStates, threads: int | None = None) -> Indices:
    """Return a perfect move for every position; ties are broken at random by the generators."""
    children = batch.expand(own, opp, rules)
    scores = solve_batch(children.own, children.opp, rules, threads=threads).astype(np.int64)
    tie_keys = batch.position_hash(children.own, children.opp) * (rng_states[children.parent] | np.uint64(1))
    order = np.lexsort((tie_keys, scores, children.parent))  # lowest score for the other side first
    return children.square[order[np.searchsorted(children.parent[order], np.arange(own.size))]].astype(np.int64)


class AgentPlayer:
    """Plays the moves of an agent, which is called position by position and has its own random generator."""

    def __init__(self, agent: Agent, rules: Rules) -> None:
        self._agent, self._rules = agent, rules

    def choose(self, own: Boards, opp: Boards, games: Indices, rng_states: RngStates) -> Indices:
        positions = (Position(self._rules, *boards) for boards in zip(own.tolist(), opp.tolist(), strict=True))
        return np.array([self._rules.square_of(self._agent.choose(position)) for position in positions], np.int64)


def uniform_samples(rng_states: RngStates, count: int) -> NDArray[np.float64]:
    """Return *count* numbers between 0 and 1 for every generator (splitmix64, as in the kernels), which is updated."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = rng_states[:, None] + steps
    rng_states += steps[-1]
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def compiled_player(
    agent: AgentSpec | str, rules: Rules, *, temperature: float = 0.0, threads: int | None = 1
) -> BatchPlayer | None:
    """Return the compiled player of an agent's spec, or None if the spec has options that compiled players lack.

    The player searches to one depth in the whole game; the agent itself would solve its last empties, six more than its depth.
    With a *temperature* in discs, evaluators sample their moves.
    """
    spec = AgentSpec.parse(agent)
    if str(spec) == "random":
        return RandomPlayer(rules)
    if str(spec) == "greedy":
        return EvaluatorPlayer("discs", rules, 1, temperature=temperature, threads=threads)
    spec.check_not_program()
    spec.make()  # raises for wrong options
    depth = int(spec.options.get("depth", agents.DEFAULT_DEPTH))
    if not exists(spec.name) or set(spec.options) - {"depth", "weights"} or depth > MAX_DEPTH:
        return None
    return EvaluatorPlayer(spec.evaluator, rules, depth, temperature=temperature, threads=threads)


def batch_player(agent: BatchPlayer | Agent | str, rules: Rules) -> BatchPlayer:
    """Return the batch player of an agent or a spec, compiled if possible (`compiled_player`)."""
    if isinstance(agent, str):
        return compiled_player(agent, rules) or AgentPlayer(agents.make_agent(agent), rules)
    return AgentPlayer(agent, rules) if isinstance(agent, Agent) else agent


#: Called before every step with the active games: (indices, own, opp, whether A is to move).
Observer = Callable[[Indices, Boards, Boards, NDArray[np.bool_]], None]


def play_games(
    player_a: BatchPlayer,
    player_b: BatchPlayer,
    openings: Openings,
    rules: Rules,
    *,
    seed: int = 0,
    observer: Observer | None = None,
) -> Results:
    """Play all games to their end. A game depends only on its opening, the players, the seed and the random stream of the game."""
    own, opp, a_moves = openings.own.copy(), openings.opp.copy(), openings.a_moves.copy()
    rng_states = openings.generators(seed)
    games = np.flatnonzero(~batch.is_over(own, opp, rules))
    while games.size:
        if observer is not None:
            observer(games, own[games], opp[games], a_moves[games])
        squares = np.empty(games.size, np.int64)
        for player, mask in ((player_a, a_moves[games]), (player_b, ~a_moves[games])):
            rows = games[mask]
            if rows.size:
                new_states = rng_states[rows]
                squares[mask] = player.choose(own[rows], opp[rows], rows, new_states)
                rng_states[rows] = new_states
        next_own, next_opp = own[games], opp[games]
        passed, over = np.empty(games.size, np.bool_), np.empty(games.size, np.bool_)
        advance(next_own, next_opp, squares, np.uint64(rules.playable), passed, over)
        own[games], opp[games] = next_own, next_opp
        a_moves[games] ^= ~passed
        games = games[~over]
    discs = np.where(a_moves, 1, -1) * batch.final_scores(own, opp, rules).astype(np.int64)
    return Results(discs, openings.paired)


@dataclass(frozen=True, eq=False)
class SelfPlayPositions:
    """Positions of games in columns, as ``pandas.DataFrame(vars(positions))`` accepts them, sorted by game and ply.

    ``game`` and ``ply``: indices of the game and of its position, without random plies. ``own``, ``opp``: boards of the side to
    move and of the other side. ``score``: final score for the side to move in discs, empty squares to the winner.
    """

    game: NDArray[np.int64]
    ply: NDArray[np.int64]
    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    score: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.game)


def self_play(
    agent: BatchPlayer | Agent | str,
    games: int,
    rules: Rules | None = None,
    *,
    opponent: BatchPlayer | Agent | str | None = None,
    opening_plies: int = 6,
    seed: int = 0,
) -> SelfPlayPositions:
    """Return the positions and results of *games* games of *agent* (or the agent of a spec) against itself, after random plies.

    A spec without options other than ``depth``, and networks (`train.arena.network_players`), play in compiled code, where the
    same seed gives the same games (`compiled_player`). With an *opponent*, *agent* has the first move in every game.
    """
    if games < 1 or opening_plies < 0:
        raise ReversiError(f"{games} games after {opening_plies} plies: expected at least 1 game and 0 plies")
    check_integer("seed", seed, 0, (1 << 64) - 1, ReversiError)
    rules = checked_rules(rules)
    player = batch_player(agent, rules)
    other = player if opponent is None else batch_player(opponent, rules)
    pairs = Openings.random(rules, games, opening_plies, seed)
    openings = Openings(pairs.own[::2], pairs.opp[::2], np.ones(games, np.bool_))
    seen: list[tuple[Indices, Boards, Boards, NDArray[np.bool_]]] = []
    discs = play_games(player, other, openings, rules, seed=seed, observer=lambda *step: seen.append(step)).discs
    if not seen:
        raise ReversiError(f"no opening of {opening_plies} random plies leaves a game to play: expected fewer plies")
    game, own, opp, a_moves = (np.concatenate(column) for column in zip(*seen, strict=True))
    ply = np.repeat(np.arange(len(seen)), [len(step[0]) for step in seen])  # all games start together
    order = np.lexsort((ply, game))
    score = np.where(a_moves, discs[game], -discs[game])
    return SelfPlayPositions(game[order], ply[order], own[order], opp[order], score[order])
