"""`Store`: games in an SQLite file, written by a thread of their own.

What is waiting to be written is written in one transaction, so that many games at once cost no more than a few; and nobody
is told of a move before it is written. The file is in WAL mode with ``synchronous=NORMAL``: a killed server loses nothing, a
power cut at most the last moments, and neither leaves a broken file. One server at a time may hold a file.

Of tokens only hashes are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from play.server.options import default_database
from reversi_env import ReversiError

#: What makes a new database, and what makes one of version *n* one of the next, at place *n*.
_SCHEMAS = (
    """
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
    score INTEGER             -- in discs for black
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
""",
    """
ALTER TABLE games ADD COLUMN since REAL NOT NULL DEFAULT 0;  -- the server's time at `updated`, when the turn began
CREATE TABLE uptime (seconds REAL NOT NULL);  -- the server's time, as of late
INSERT INTO uptime VALUES (0);
""",
)
VERSION = len(_SCHEMAS)

Outcome = TypeVar("Outcome")
Write = tuple[str, tuple[Any, ...]]
#: A future with what to tell it: an outcome, or an error.
_Told = tuple[asyncio.Future[Any], Any, Exception | None]


class StoreError(ReversiError):
    """A database that cannot be used."""


class Store:
    """The games in the file *path*; ``:memory:`` is forgotten at the end. `open` before use, within an event loop."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._jobs: queue.SimpleQueue[tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]] | None]
        self._jobs = queue.SimpleQueue()

    def open(self) -> None:
        """Open or make the file, and start the thread."""
        self._loop = asyncio.get_running_loop()
        self._connection = _opened(self.path)
        self._thread = threading.Thread(target=self._work, daemon=True, name="reversi-store")
        self._thread.start()

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self._jobs.put(None)
        self._thread.join()

    def write(self, statements: list[Write]) -> asyncio.Future[None]:
        """Carry out *statements* together; done when they are committed. They are written in the order of these calls."""

        def run(connection: sqlite3.Connection) -> None:
            for sql, values in statements:
                connection.execute(sql, values)

        return self.run(run)

    def run(self, work: Callable[[sqlite3.Connection], Outcome]) -> asyncio.Future[Outcome]:
        """Do *work* in the thread, within a transaction, after all that was asked for before."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._jobs.put((work, future))
        return future

    # --- in the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        going_on = True
        while going_on:
            batch = [self._jobs.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < 500:
                    batch.append(self._jobs.get_nowait())
            going_on = None not in batch
            outcomes = self._carry_out([job for job in batch if job is not None])
            with contextlib.suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(_tell, outcomes)
        self._connection.close()

    def _carry_out(self, batch: list[Any]) -> list[_Told]:
        """All jobs in one transaction; if one of them fails, each in one of its own."""
        try:
            return self._together(batch)
        except Exception as error:
            if len(batch) == 1:
                return [(batch[0][1], None, error)]
        return [outcome for job in batch for outcome in self._carry_out([job])]

    def _together(self, batch: list[Any]) -> list[_Told]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes: list[_Told] = [(future, work(connection), None) for work, future in batch]
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return outcomes


def _tell(outcomes: list[_Told]) -> None:
    for future, outcome, error in outcomes:
        if not future.done():
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)


def check(path: str | Path) -> None:
    """Raise a StoreError if no server could keep its games in *path* now; the file is made if there is none."""
    _opened(path).close()


def _opened(path: str | Path) -> sqlite3.Connection:
    """The file at *path*, made if there is none, held for this server alone. Of folders only the default one is made."""
    _find_folder(path)
    with contextlib.ExitStack() as refused:
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.3)
            refused.callback(connection.close)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            _prepare(connection, path)
        except sqlite3.Error as error:
            reason = "another server uses it" if "locked" in str(error) else str(error)
            raise StoreError(f"database {str(path)!r}: {reason}; expected a file of this server's games") from None
        refused.pop_all()
    return connection


def _find_folder(path: str | Path) -> None:
    if str(path) == ":memory:":
        return
    folder = Path(path).parent
    try:
        if Path(path) == default_database():
            folder.mkdir(parents=True, exist_ok=True)
        missing = not folder.is_dir()
    except OSError as error:
        raise StoreError(f"database {str(path)!r}: {error}; expected a file in a folder that can be used") from None
    if missing:
        raise StoreError(f"database {str(path)!r}: no folder {str(folder)!r}; expected a file in a folder that exists")


def _prepare(connection: sqlite3.Connection, path: str | Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (0 < version <= VERSION or version == tables == 0):
        connection.execute("ROLLBACK")
        raise StoreError(f"database {str(path)!r} is of version {version}: expected {VERSION}, or a new file")
    for schema in _SCHEMAS[version:]:
        for statement in schema.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
