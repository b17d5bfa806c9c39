"""`ServerOptions`: the address of a server, and its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from play.server.addresses import host_for_others, network
from reversi_env.options import Options, option

DEFAULT_PORT = 8400
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def default_database() -> Path:
    """Return the file in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "reversi-lab" / "games.sqlite3"


@dataclass(frozen=True)
class ServerOptions(Options):
    """Options of one server; times in seconds, sizes in bytes.

    ``allowed_hosts`` are Host headers that are accepted beside the server's own addresses; without them a server on the loopback
    interface accepts no others, and one elsewhere accepts any. ``proxies`` are addresses or networks whose X-Forwarded-For is
    trusted. ``longest_think`` is for an agent's move, ``longest_analysis`` for a position that a visitor has analysed.
    """

    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 accepts other machines.")
    port: int = option(DEFAULT_PORT, "Port to listen on; 0 takes any free one.", low=0, high=65535)
    database: str | None = option(None, "SQLite file that stores the games (default: in the user data folder).")
    workers: int | None = option(
        None,
        "Number of search processes (default: one per core); 0 searches in a thread of the server.",
        low=0,
        high=256,
    )
    longest_think: float = option(5.0, "Maximum thinking time of an agent per move, in seconds.", low=0.05, high=600)
    allowed_hosts: tuple[str, ...] | None = option(
        None, "Host name under which browsers reach the server; repeat for more."
    )
    proxies: tuple[str, ...] | None = option(
        None, "Address of a trusted proxy that sets X-Forwarded-For; repeat for more."
    )
    ponder: bool = option(False, "Let agents think during the opponent's turn while a search process is idle.")
    wthor: str | None = option(
        None,
        "Folder with recorded games (WTHOR files); the page shows how often each move was played (default: $REVERSI_DATA).",
    )
    longest_analysis: float = 2.0
    deepest: int = 16
    #: Tables of an agent and of the analysis, in MiB.
    table: float = 8
    analysis_table: float = 16

    #: Games that may be running, all and those of one address, and be in memory, at a time.
    most_running: int = 20_000
    client_games: int = 1_000
    most_rooms: int = 2_000
    #: Games that one address may create at once, and how many more each second.
    game_burst: int = 300
    games_per_second: float = 1.0
    #: Reviews that one address may share at once, and how many more each second; that are kept of one address, and in all.
    review_burst: int = 30
    reviews_per_second: float = 0.1
    #: The oldest of the address, or of the one that has most, makes room for one more.
    client_reviews: int = 500
    most_reviews: int = 20_000
    #: Times that one address may ask for puzzles at once, and how many more each second.
    puzzle_burst: int = 60
    puzzles_per_second: float = 0.5
    #: Connections to games: all, those of one address, those to one seat or as spectators of one game. Twice as many, of all and
    #: of one address, may be open.
    most_connections: int = 1_000
    client_connections: int = 400
    room_connections: int = 64
    #: Analyses and transcripts waiting, and likewise openings and puzzles: all, and those of one address.
    most_analyses: int = 64
    client_analyses: int = 4
    #: Bodies and messages.
    largest_message: int = 4_096
    largest_body: int = 4_096
    largest_transcript: int = 1_000_000
    largest_review: int = 32_768
    #: Messages that a connection may send at once, and how many more each second; bad ones until it is closed.
    message_burst: int = 60
    messages_per_second: float = 30.0
    most_errors: int = 20
    #: How long a connection may take to say what it wants.
    patience: float = 10.0
    #: Games leave the memory when nobody has been there for a minute; after these they leave the database too.
    room_idle: float = 60.0
    running_idle: float = 14 * 86_400.0
    finished_kept: float = 365 * 86_400.0
    review_kept: float = 365 * 86_400.0
    sweep_every: float = 20.0
    #: Grace period per game, in seconds, that compensates for network latency before a flag falls.
    clock_grace: float = 2.0
    #: Two agents that are watched take at least this long for a move.
    watch_pace: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        self.trusted()  # refuses a proxy that is no address

    def trusted(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(map(network, self.proxies or ()))

    def file(self) -> str | Path:
        return self.database or default_database()

    def hosts(self) -> tuple[str, ...]:
        """Return the Host headers that are accepted; ``*`` is any. The addresses that `reversi serve` prints are among them."""
        if not self.allowed_hosts and self.host not in LOOPBACK:
            return ("*",)
        address = host_for_others(self.host)
        own = [] if address is None else [f"[{address}]" if ":" in address else address]
        return (*(self.allowed_hosts or ()), "127.0.0.1", "localhost", "[::1]", *own)
