"""`TournamentOptions`: all options of a tournament, and the players and round of each game."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reversi_env import ReversiError, Rules
from reversi_env.errors import count_noun
from reversi_env.options import Options, option
from reversi_env.rules import Variant
from search import agents
from train.arena.sequential import Sprt

if TYPE_CHECKING:
    from search.agents.base import Agent
    from train.arena.openings import Opening

Format = Literal["round-robin", "gauntlet"]


@dataclass(frozen=True)
class Fixture:
    """The round of game *index*, and its players as indices of the agents."""

    index: int
    round: int
    black: int
    white: int


@dataclass(frozen=True)
class TournamentOptions(Options):
    """All options that decide a tournament's games; with time limits the speed of the machine decides, too.

    ``openings`` is ``random``, ``balanced`` (within ``balance`` discs of a draw by the engine's evaluation) or a file; ``plies`` is
    their length, for a file the maximum. ``time``, ``depth`` and ``nodes`` hold for agents whose specs do not set them, ``limit``
    (in seconds per move) for external programs. In a gauntlet the first agent plays all others.
    """

    agents: tuple[str, ...] = option(help="Agent specs.")
    games: int = option(20, "Games per pairing (even: two per opening); with --sprt, the maximum.", low=2, even=True)
    size: int = option(8, "Board size: 4, 6 or 8.")
    variant: Variant = option("normal", "Rules: normal (most discs win) or reversed (fewest discs win).")
    format: Format = option("round-robin", "Format: round-robin, or gauntlet (the first agent against all others).")
    openings: str = option(
        "random", "Openings: random, balanced (close to a draw), or a file with transcripts, OBF, GGF or WTHOR."
    )
    plies: int | None = option(
        None,
        "Opening length in plies (default: 6; on 4x4 with random openings 2; with a file, all moves of each opening).",
        low=0,
        high=60,
    )
    balance: float = option(2.0, "Largest absolute value of a balanced opening, in discs.", low=0)
    time: float | None = option(None, "Seconds per move, for agents whose spec sets no time.", low=1e-6, high=1e9)
    depth: int | None = option(None, "Search depth in plies, for agents whose spec sets no depth.", low=1, high=60)
    nodes: int | None = option(None, "Nodes per move and thread, for agents whose spec sets no node limit.", low=1)
    limit: float | None = option(
        None, "Seconds per move after which an external program forfeits (default: 60).", low=1e-6, high=1e9
    )
    seed: int = option(0, "Random seed.", low=0)
    sprt: Sprt | None = option(None, "Sequential test that ends the tournament early.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.agents) < 2:
            raise ReversiError(f"{count_noun(len(self.agents), 'agent')}: expected two or more")
        if self.sprt is not None and len(self.agents) != 2:
            raise ReversiError(f"SPRT with {len(self.agents)} agents: expected two")
        self.made_agents()  # raises for a wrong spec
        if self.openings not in ("random", "balanced"):
            from train.arena.openings import openings_of_file

            openings_of_file(Path(self.openings), self.rules, self.plies)  # raises before anything is written

    @property
    def rules(self) -> Rules:
        return Rules(self.size, self.variant)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the players: their specs, numbered if one occurs twice."""
        named: list[str] = []
        for number, spec in enumerate(self.agents):
            before = self.agents[:number].count(spec)
            named.append(f"{spec} #{before + 1}" if before else spec)
        return tuple(named)

    def make_agent(self, player: int, game: int) -> Agent:
        """Return a new agent for a player in a game, with its own seed."""
        import numpy as np

        seed = int(np.random.SeedSequence([self.seed, game, player]).generate_state(1)[0])
        limits = {"time": self.time, "depth": self.depth, "nodes": self.nodes, "limit": self.limit}
        return agents.make_agent(self.agents[player], seed=seed, **limits)

    def made_agents(self) -> list[Agent]:
        """Return the agents of all players in the first game."""
        return [self.make_agent(player, 0) for player in range(len(self.agents))]

    @property
    def pairings(self) -> tuple[tuple[int, int], ...]:
        """Numbers of the agents of each pairing."""
        all_pairings = combinations(range(len(self.agents)), 2)
        return tuple(pairing for pairing in all_pairings if self.format == "round-robin" or 0 in pairing)

    @property
    def total(self) -> int:
        """Number of games, unless an SPRT ends the tournament earlier."""
        return self.games * len(self.pairings)

    def fixture(self, index: int) -> Fixture:
        """Return game *index*; the order is by round, then by pairing, then by colours."""
        pair, exchanged = divmod(index, 2)
        number, pairing = divmod(pair, len(self.pairings))
        black, white = self.pairings[pairing][:: -1 if exchanged else 1]
        return Fixture(index, number, black, white)

    def opening_sequence(self) -> Iterator[Opening]:
        """Return the openings of all rounds, without end."""
        from train.arena.openings import opening_sequence

        return opening_sequence(self.openings, self.rules, self.plies, self.seed, self.balance)

    def content_hashes(self) -> dict[str, str]:
        """Return hashes of the files that the options name: weights and books of the agents, and the openings."""
        from train.arena.openings import BALANCE_AGENT

        hashes = {}
        agents_used = self.made_agents()
        if self.openings == "balanced" and self.size != 4:
            agents_used.append(agents.make_agent(BALANCE_AGENT))
        elif self.openings not in ("random", "balanced"):
            hashes[self.openings] = hashlib.sha256(Path(self.openings).read_bytes()).hexdigest()
        for agent in agents_used:
            hashes |= agent.content_hashes(self.rules)
        return dict(sorted(hashes.items()))

    def fingerprint(self) -> str:
        """Return a short hash of all options except the number of games."""
        content = {key: value for key, value in self.as_dict().items() if key != "games"}
        text = json.dumps([content, self.content_hashes()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]
