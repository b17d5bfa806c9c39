"""`ServerOptions`: the address of a server, and its limits."""

import os
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from play.server.addresses import host_for_others, network
from reversi_env.options import Options, option

DEFAULT_PORT = 8400
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def default_database() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "reversi-lab" / "games.sqlite3"


@dataclass(frozen=True)
class ServerOptions(Options):
    """Options of one server; times in seconds, sizes in bytes.

    ``allowed_hosts`` are Host headers that are accepted besides the server's own addresses. Without them a server on the loopback
    interface accepts no others, and a server on another interface accepts any. ``proxies`` are addresses or networks whose
    X-Forwarded-For is trusted. Fields without help are not options of `reversi serve`.
    """

    host: str = option("127.0.0.1", "Address to listen on; 0.0.0.0 accepts other machines.")
    port: int = option(DEFAULT_PORT, "Port to listen on; 0 takes any free one.", low=0, high=65535)
    database: str | None = option(None, "File that stores the games, by SQLite (default: in the user data folder).")
    workers: int | None = option(
        None, "Number of search processes (default: one per core); 0: the server itself searches.", low=0, high=256
    )
    max_think_time: float = option(
        5.0,
        "Maximum thinking time of an agent per move, in seconds; 60 for the agent perfect if this is less.",
        low=0.05,
        high=600,
    )
    allowed_hosts: tuple[str, ...] | None = option(None, "Name under which browsers reach the server; repeat for more.")
    proxies: tuple[str, ...] | None = option(
        None, "Address of a proxy in front of the server, whose X-Forwarded-For is trusted; repeat for more."
    )
    wthor: str | None = option(
        None,
        "Folder with recorded games (WTHOR files); the page shows how often each move was played (default: $REVERSI_DATA).",
    )
    #: Maximum time of an analysis for a visitor, and maximum depth of an agent.
    max_analysis_time: float = 2.0
    max_depth: int = 16
    #: Tables of an agent and of the analysis, in MiB.
    table: float = 8
    analysis_table: float = 16

    #: Running games, in total and per address; games in memory.
    max_running: int = 20_000
    client_games: int = 1_000
    max_rooms: int = 2_000
    #: New games per address: burst and rate.
    game_burst: int = 300
    games_per_second: float = 1.0
    #: New reviews per address: burst and rate. Stored ones, per address and in total: the oldest of the address, or of the
    #: address with most, is replaced.
    review_burst: int = 30
    reviews_per_second: float = 0.1
    client_reviews: int = 500
    max_reviews: int = 20_000
    #: Stored finished games, per address and in total: the oldest of the address, or of the address with most, are deleted.
    client_finished: int = 5_000
    max_finished: int = 200_000
    #: Requests and handshakes per address (and connections, without a proxy): burst and rate. Later ones are delayed, and refused
    #: after the maximum delay.
    request_burst: int = 400
    requests_per_second: float = 100.0
    max_delay: float = 5.0
    #: Messages of all connections of an address: burst and rate. A change counts more in a game with many connections.
    client_message_burst: int = 400
    client_messages_per_second: float = 200.0
    #: Bytes of the requests in progress: per address and in total.
    client_uploads: int = 8_000_000
    max_uploads: int = 64_000_000
    #: Requests for puzzles per address: burst and rate.
    puzzle_burst: int = 60
    puzzles_per_second: float = 0.5
    #: WebSockets: in total, per address, and per seat or spectators of a game. Twice as many connections may be open, in total and
    #: per address.
    max_connections: int = 1_000
    client_connections: int = 400
    room_connections: int = 64
    #: Waiting analyses and transcripts (and, counted separately, openings and puzzles): in total and per address.
    max_analyses: int = 64
    client_analyses: int = 4
    max_message_bytes: int = 4_096
    max_body_bytes: int = 4_096
    max_transcript_bytes: int = 1_000_000
    max_review_bytes: int = 65_536
    #: Messages per connection: burst, rate, and errors until it is closed.
    message_burst: int = 60
    messages_per_second: float = 30.0
    max_errors: int = 20
    #: Timeout for a complete request, or the first message of a WebSocket.
    request_timeout: float = 10.0
    #: Time without connections after which a game leaves the memory; time without changes after which it is deleted.
    room_idle: float = 60.0
    running_idle: float = 14 * 86_400.0
    finished_kept: float = 365 * 86_400.0
    unplayed_kept: float = 86_400.0
    review_kept: float = 365 * 86_400.0
    sweep_every: float = 20.0
    #: Grace period per game, in seconds, that compensates for network latency before a flag falls.
    clock_grace: float = 2.0
    #: Whether a process compiles the agents on offer that are not cached.
    precompiles: bool = False
    #: Minimum time per move in a game of two agents.
    watch_pace: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        self.trusted()  # raises an error if a proxy is not an address

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
