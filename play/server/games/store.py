"""`Store`: games and reviews in an SQLite file, written by a separate thread. All SQL of the server is here.

All waiting jobs share one transaction, so that many games cost little more than a few. No move is sent before it is stored.
The file is in WAL mode with ``synchronous=NORMAL``: a killed server loses nothing, a power cut at most the last moments, and
neither corrupts the file. One server at a time may hold a file. Of tokens only hashes are stored.
"""

import asyncio
import contextlib
import hashlib
import json
import queue
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from play.game import Game
from play.server.options import default_database
from reversi_env import Position, ReversiError, Rules
from reversi_env.notation import Annotation
from reversi_env.notation import Game as Record

#: The statements that create a database of version `VERSION`.
_SCHEMA = """
CREATE TABLE games (
    id TEXT PRIMARY KEY,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'finished')),
    size INTEGER NOT NULL,
    variant TEXT NOT NULL,
    start TEXT NOT NULL,
    black TEXT NOT NULL,      -- the seats, as JSON
    white TEXT NOT NULL,
    spectator BLOB NOT NULL,  -- the hash of the spectators' token
    clock_seconds REAL,
    clock_increment REAL,
    black_left REAL,
    white_left REAL,
    ending TEXT,
    loser INTEGER,
    score INTEGER,            -- in discs for black
    since REAL NOT NULL DEFAULT 0,  -- the server's time at `updated`, when the turn began
    client TEXT NOT NULL DEFAULT '' -- the address that created it
) WITHOUT ROWID;
CREATE INDEX games_by_age ON games (status, updated);
CREATE TABLE moves (
    game TEXT NOT NULL REFERENCES games (id) ON DELETE CASCADE,
    ply INTEGER NOT NULL,
    move TEXT NOT NULL,
    seconds REAL,
    value REAL,
    PRIMARY KEY (game, ply)
) WITHOUT ROWID;
CREATE TABLE uptime (seconds REAL NOT NULL);  -- the server's time, as of late
INSERT INTO uptime VALUES (0);
CREATE TABLE reviews (
    id TEXT PRIMARY KEY,
    created REAL NOT NULL,
    client TEXT NOT NULL,  -- the address that shared it
    content BLOB NOT NULL  -- the message `Review`, as JSON
);
CREATE INDEX reviews_by_age ON reviews (created);
CREATE INDEX reviews_by_client ON reviews (client);
"""
VERSION = 4

Result = TypeVar("Result")
_Job = tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]]
#: A job's future with its result or error.
_Outcome = tuple[asyncio.Future[Any], Any, Exception | None]


class StoreError(ReversiError):
    """A database that cannot be used."""


def hashed(token: str) -> str:
    """Return the hash under which a token is stored, without salt, since a token has 192 random bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def new_token() -> str:
    """Return a secret of 192 random bits."""
    return secrets.token_urlsafe(24)


@dataclass
class Seat:
    """The player of a colour: *kind* ``human`` or ``agent``.

    *secret* is the hash of the token that was created for a human, in hexadecimal; *owner* that of the token that took the seat.
    """

    kind: str
    name: str
    agent: str | None = None
    secret: str | None = None
    owner: str | None = None


@dataclass
class GameRow:
    """A row of the table of games (`_SCHEMA`); *created* and *updated* in seconds since 1970.

    *clock_seconds* is None without a clock, *loser* a colour's number if the game was ended early. Searches of its agents are
    charged to the *client*.
    """

    id: str
    created: float
    updated: float
    revision: int
    status: str
    size: int
    variant: Any
    start: Any
    black: Seat
    white: Seat
    spectator: str
    clock_seconds: float | None = None
    clock_increment: float | None = None
    black_left: float | None = None
    white_left: float | None = None
    ending: Any = None
    loser: int | None = None
    score: int | None = None
    since: float = 0.0
    client: str = ""

    def rules(self) -> Rules:
        return Rules(self.size, self.variant, self.start)

    def values(self) -> dict[str, Any]:
        seats = {"black": self.black, "white": self.white}
        return vars(self) | {colour: json.dumps(vars(seat), ensure_ascii=False) for colour, seat in seats.items()}


_COLUMNS = [field.name for field in fields(GameRow)]
_SAVE_GAME = (
    f"INSERT INTO games ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS[1:])}"
)
#: Uses the index, since a scan of all finished games would delay every move.
_OLD_GAMES = "SELECT id FROM games WHERE status = ? AND updated < ?"
_UNPLAYED_GAMES = """
SELECT id FROM games WHERE status IN ('running', 'finished') AND updated >= ? AND updated < ?
AND NOT EXISTS (SELECT 1 FROM moves WHERE game = games.id)
"""
_FINISHED_OF_CLIENTS = "SELECT client, count(*) FROM games WHERE status = 'finished' GROUP BY client"
_OLDEST_OF_CLIENT = "SELECT id FROM games WHERE status = 'finished' AND client = ? ORDER BY updated LIMIT ?"
#: Not in `_SCHEMA`: files of this version may lack it.
_INDEX = "CREATE INDEX IF NOT EXISTS games_by_client ON games (status, client, updated)"
_DROP_GAME = "DELETE FROM games WHERE id = ?"
_DROP_REVIEW = "DELETE FROM reviews WHERE id = (SELECT id FROM reviews WHERE client = ? ORDER BY created LIMIT 1)"


class Store:
    """The games in the file *path*, or in ``:memory:``. `open` before use, within an event loop.

    Jobs run in order; the future of a job that fails raises a StoreError.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._unplayed_checked = 0.0
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def open(self) -> None:
        """Open or create the file, and start the thread."""
        self._loop = asyncio.get_running_loop()
        self._connection = opened(self.path)
        self._thread = threading.Thread(target=self._work, daemon=True, name="reversi-store")
        self._thread.start()

    def close(self) -> None:
        """Finish all jobs and close the file."""
        self._jobs.put(None)
        self._thread.join()

    # --- games ------------------------------------------------------------------------------------

    def save(self, row: GameRow, game: Game, first: int = 0) -> asyncio.Future[None]:
        """Store a game, and its moves from *first* on; done when it is committed."""
        values = row.values()
        annotated = enumerate(zip(game.moves, game.annotations, strict=True))
        moves = [(row.id, ply, move, note.seconds, note.evaluation) for ply, (move, note) in annotated][first:]

        def save(connection: sqlite3.Connection) -> None:
            connection.execute(_SAVE_GAME, values)
            connection.execute("DELETE FROM moves WHERE game = ? AND ply >= ?", (row.id, first))
            connection.executemany("INSERT INTO moves (game, ply, move, seconds, value) VALUES (?, ?, ?, ?, ?)", moves)

        return self.run(save)

    def written(self) -> asyncio.Future[None]:
        """Return a future that is done when all jobs so far are done."""
        return self.run(lambda connection: None)

    def load(self, game_id: str) -> asyncio.Future[tuple[GameRow, Game] | None]:

        def load(connection: sqlite3.Connection) -> tuple[GameRow, Game] | None:
            stored = connection.execute("SELECT * FROM games WHERE id = ?", (game_id,)).fetchone()
            if stored is None:
                return None
            row = GameRow(**dict(stored))
            row.black, row.white = Seat(**json.loads(stored["black"])), Seat(**json.loads(stored["white"]))
            sql = "SELECT move, value, seconds FROM moves WHERE game = ? ORDER BY ply"
            moves = connection.execute(sql, (game_id,)).fetchall()
            notes = tuple(Annotation(*note) for _, *note in moves)
            start, names = Position.initial(row.rules()), (row.black.name, row.white.name)
            record = Record(start, tuple(m[0] for m in moves), *names, row.score, row.ending, annotations=notes)
            return row, Game.from_record(record)

        return self.run(load)

    def keep_review(
        self, name: str, created: float, client: str, content: bytes, max_per_client: int, max_total: int
    ) -> asyncio.Future[None]:
        """Store a review; above a limit it replaces the oldest review of its client, or of the client with most reviews."""
        row = name, created, client, content

        def keep(connection: sqlite3.Connection) -> None:
            (own,) = connection.execute("SELECT count(*) FROM reviews WHERE client = ?", (client,)).fetchone()
            (total,) = connection.execute("SELECT count(*) FROM reviews").fetchone()
            if own >= max_per_client:
                connection.execute(_DROP_REVIEW, (client,))
            elif total >= max_total:
                sql = "SELECT client FROM reviews GROUP BY client ORDER BY count(*) DESC, client = ? DESC LIMIT 1"
                connection.execute(_DROP_REVIEW, tuple(connection.execute(sql, (client,)).fetchone()))
            connection.execute("INSERT INTO reviews (id, created, client, content) VALUES (?, ?, ?, ?)", row)

        return self.run(keep)

    def review(self, name: str) -> asyncio.Future[bytes | None]:
        """Load the content of a review; None if there is no such review."""
        sql = "SELECT max(content) FROM reviews WHERE id = ?"
        return self.run(lambda connection: connection.execute(sql, (name,)).fetchone()[0])

    def tidy(
        self,
        uptime: float,
        unplayed_since: float,
        running_since: float,
        finished_since: float,
        reviews_since: float,
        max_per_client: int,
        max_total: int,
        kept: Iterable[str] = (),
    ) -> asyncio.Future[Counter[str]]:
        """Save the server's time, delete old and excess games and reviews, and count each client's running games.

        At most *max_per_client* finished games per client and *max_total* in total stay: the oldest of the client, or of the client
        with most, are deleted. The games *kept* stay, however old: they are in memory, and only changes would be stored again.
        """
        in_memory = set(kept)

        def tidy(connection: sqlite3.Connection) -> Counter[str]:
            def drop(sql: str, *values: Any) -> None:
                rows = connection.execute(sql, values).fetchall()
                connection.executemany(_DROP_GAME, [row for row in rows if row[0] not in in_memory])

            connection.execute("UPDATE uptime SET seconds = ?", (uptime,))
            drop(_OLD_GAMES, "running", running_since)
            drop(_OLD_GAMES, "finished", finished_since)
            drop(_UNPLAYED_GAMES, self._unplayed_checked, unplayed_since)
            self._unplayed_checked = unplayed_since
            finished = Counter(dict(map(tuple, connection.execute(_FINISHED_OF_CLIENTS))))
            for client, count in excess(finished, max_per_client, max_total).items():
                drop(_OLDEST_OF_CLIENT, client, count)
            connection.execute("DELETE FROM reviews WHERE created < ?", (reviews_since,))
            games = connection.execute("SELECT client, count(*) FROM games WHERE status = 'running' GROUP BY client")
            return Counter(dict(map(tuple, games)))

        return self.run(tidy)

    def uptime(self) -> asyncio.Future[float]:
        """Load the latest server time in the file."""
        sql = "SELECT max(seconds) FROM (SELECT seconds FROM uptime UNION ALL SELECT max(since) FROM games)"
        return self.run(lambda connection: float(connection.execute(sql).fetchone()[0]))

    def run(self, work: Callable[[sqlite3.Connection], Result]) -> asyncio.Future[Result]:
        """Run *work* in the thread, in a transaction, after all earlier jobs."""
        future: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put((work, future))
        return future

    # --- in the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        is_open = True
        while is_open:
            batch = [self._jobs.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < 500:
                    batch.append(self._jobs.get_nowait())
            is_open = None not in batch
            outcomes = self._run_batch([job for job in batch if job is not None])
            with contextlib.suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(_deliver, outcomes)
        self._connection.close()

    def _run_batch(self, batch: list[_Job]) -> list[_Outcome]:
        """Run all jobs in one transaction; if one of them fails, each in a separate transaction."""
        try:
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                return [(future, work(connection), None) for work, future in batch]
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0][1], None, StoreError(f"database {str(self.path)!r}: {error}"))]
        return [outcome for job in batch for outcome in self._run_batch([job])]


def excess(counts: Counter[str], max_each: int, max_total: int) -> Counter[str]:
    """Return how many each name has above *max_each*, or above a lower limit with which all have *max_total* in total."""
    low, high = 0, max(counts.values(), default=0)
    while low < high:  # binary search for the highest limit that fits
        limit = (low + high + 1) // 2
        fits = limit <= max_each and sum(min(count, limit) for count in counts.values()) <= max_total
        low, high = (limit, high) if fits else (low, limit - 1)
    return Counter({name: count - low for name, count in counts.items() if count > low})


def _deliver(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if not future.done() and error is None:
            future.set_result(result)
        elif not future.done():
            future.set_exception(error)  # type: ignore[arg-type]


def check(path: str | Path) -> None:
    """Raise a StoreError if no server could use *path* now; the file is created if there is none."""
    opened(path).close()


def opened(path: str | Path) -> sqlite3.Connection:
    """Open or create the file at *path* for this server alone. Only the default folder is created."""
    with contextlib.ExitStack() as on_error:
        try:
            if Path(path) == default_database():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.3)
            on_error.callback(connection.close)
            connection.row_factory = sqlite3.Row
            for setting in (
                "locking_mode = EXCLUSIVE",
                "journal_mode = WAL",
                "synchronous = NORMAL",
                "foreign_keys = ON",
            ):
                connection.execute(f"PRAGMA {setting}")
            _prepare(connection, path)
        except (sqlite3.Error, OSError) as error:
            reason = "another server uses it" if "locked" in str(error) else str(error)
            raise StoreError(
                f"database {str(path)!r} ({reason}): expected a database of games that no other server uses, or a new file "
                "in an existing folder"
            ) from None
        on_error.pop_all()
    return connection


def _prepare(connection: sqlite3.Connection, path: str | Path) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == VERSION:
            connection.execute(_INDEX)
            return
        if version or tables:
            raise StoreError(f"database {str(path)!r} is of version {version}: expected {VERSION}, or a new file")
        for statement in (*_SCHEMA.split(";"), _INDEX):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
