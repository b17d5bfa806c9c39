"""`self_play`: games of an agent against itself, for data rather than for a verdict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rules import checked_rules
from search.agent import Agent
from train.games.batch import BatchPlayer, Boards, Numbers, batch_player, play_games
from train.games.openings import Openings


@dataclass(frozen=True, eq=False)
class SelfPlayPositions:
    """Positions in which a move was to be made, in columns, as ``pandas.DataFrame(vars(positions))`` takes them.

    ``game`` and ``ply``: number of the game, and of the position in it, both from 0, random plies not counted. ``own``, ``opp``:
    boards of the side to move and of the other side. ``score``: how the game ended for the side to move, in discs, the empty
    squares with the winner. Sorted by game and ply.
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
    """The positions and results of *games* games of *agent* (or the agent of a spec) against itself, after random plies.

    A spec without other options than ``depth`` plays in compiled code, thousands of games in step, and so do networks
    (`train.games.networks`); the same seed gives the same games then. Such a spec searches to its depth to the end of the game,
    while the agent itself, ``search.make_agent(spec)``, solves its last empties. With an *opponent* it has the first move in every
    game.
    """
    if games < 1 or opening_plies < 0:
        raise ReversiError(f"{games} games after {opening_plies} plies: expected 1 or more games, and 0 or more plies")
    if not 0 <= seed < 1 << 64:
        raise ReversiError(f"seed={quoted(seed)}: expected a whole number from 0 to {(1 << 64) - 1}")
    rules = checked_rules(rules)
    player = batch_player(agent, rules)
    other = player if opponent is None else batch_player(opponent, rules)
    pairs = Openings.random(rules, games, opening_plies, seed)
    openings = Openings(pairs.own[::2], pairs.opp[::2], np.ones(games, np.bool_))
    seen: list[tuple[Numbers, Boards, Boards, NDArray[np.bool_]]] = []
    discs = play_games(player, other, openings, rules, seed=seed, observer=lambda *step: seen.append(step)).discs
    if not seen:
        raise ReversiError(f"no opening of {opening_plies} random plies leaves a game to play: expected fewer plies")
    game, own, opp, a_moves = (np.concatenate(column) for column in zip(*seen, strict=True))
    ply = np.repeat(np.arange(len(seen)), [len(step[0]) for step in seen])  # games begin together, and none waits
    order = np.lexsort((ply, game))
    score = np.where(a_moves, discs[game], -discs[game])
    return SelfPlayPositions(game[order], ply[order], own[order], opp[order], score[order])
