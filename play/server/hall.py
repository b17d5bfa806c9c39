"""`Hall`: all games – those with people in them in memory, the others in the store."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sqlite3
import time
from collections import Counter
from time import monotonic
from typing import Any

from play.game import Game
from play.server import catalogue
from play.server.clock import Buckets, Clock, ServerTime
from play.server.messages import AnalyseRequest, Analysis, Created, CreateGame, Refused, SeatRequest
from play.server.options import ServerOptions
from play.server.pool import Pool, WorkerLost
from play.server.room import Room, Seat, hashed, new_token
from play.server.store import Store
from play.server.worker import load_rules
from reversi_env import Position, ReversiError, Rules
from reversi_env.rules import BLACK, WHITE, Colour

log = logging.getLogger("reversi.server")


class Hall:
    """The games of one server. `open` and `close` within the event loop that everything else is called in."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.store = Store(options.database)
        self.pool = Pool(options.workers)
        self.time = ServerTime()
        self.rooms: dict[str, Room] = {}
        self.running = 0
        self.connections: Counter[str] = Counter()
        self.analyses: Counter[str] = Counter()
        self._loading: dict[str, asyncio.Task[Room]] = {}
        self._creations = Buckets(options.game_burst, options.games_per_second)

    async def open(self) -> None:
        """Open the store, start the workers and the sweeping of old games."""
        self.store.open()
        self.time.resume(await self.store.run(_uptime))
        self.pool.start()
        await asyncio.to_thread(load_rules)
        await self._tidy()
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def close(self) -> None:
        """Send everybody away, stop searching, write what is left."""
        self._sweeper.cancel()
        for room in list(self.rooms.values()):
            self.drop(room, "the server is shutting down")
        self.pool.close()
        await self._tidy()
        self.store.close()
        await asyncio.sleep(0)

    # --- games ------------------------------------------------------------------------------------

    async def create(self, request: CreateGame, client: str) -> Created:
        """A new game, stored."""
        if not self._creations.take(client):
            raise Refused(429, "too_many_games", "too many new games from this address; try again later")
        if self.running >= self.options.most_running:
            raise Refused(503, "full", "too many games are running; try again later")
        self._make_space()
        rules = Rules(request.size, request.variant, request.start)
        tokens = {"spectator": new_token()}
        seats, orders = {}, {}
        for colour, wanted in ((BLACK, request.black), (WHITE, request.white)):
            seats[colour], order = self._seat(wanted, str(colour), request.size)
            if order is None:
                tokens[str(colour)] = new_token()
                seats[colour].secret = hashed(tokens[str(colour)])
            else:
                orders[colour] = order
        game_id = secrets.token_urlsafe(9)
        game = Game(rules, seats[BLACK].name, seats[WHITE].name)
        room = Room(self, game_id, game, seats, hashed(tokens["spectator"]))
        room.orders = orders
        if request.clock:
            seconds, increment = request.clock.seconds, request.clock.increment
            room.clock = Clock(seconds, seconds, increment, self.options.clock_grace)
        await self._stored(self.store.write([room.insertion()]))
        self.rooms[game_id] = room
        self.running += 1
        room._go_on()
        return Created(game_id, tokens)

    async def room(self, game_id: str) -> Room:
        """The room of a game, brought back from the store if need be; whose time is up has lost before anybody sees it."""
        room = self.rooms.get(game_id)
        if room is None:
            if game_id not in self._loading:
                task = asyncio.get_running_loop().create_task(self._load(game_id))
                self._loading[game_id] = task
                task.add_done_callback(lambda _: self._loading.pop(game_id, None))
            room = await asyncio.shield(self._loading[game_id])
        ended = room.look_at_flag()
        if ended is not None:
            await ended
        return room

    def drop(self, room: Room, reason: str) -> None:
        """Take a room out of memory; the store has it."""
        self.rooms.pop(room.id, None)
        room.close(reason)

    def _seat(self, wanted: SeatRequest, colour: str, size: int) -> tuple[Seat, catalogue.Order | None]:
        if wanted.kind == "human":
            if wanted.agent is not None:
                raise Refused(400, "bad_seat", f"{colour}: expected no agent for a human")
            return Seat("human", _plain(wanted.name) or colour.title()), None
        if wanted.agent is None:
            raise Refused(400, "bad_seat", f"{colour}: expected an agent, such as six-factor:depth=4")
        order = catalogue.order(wanted.agent, size, self.options)
        return Seat("agent", _plain(wanted.name) or order.spec, order.spec), order

    async def _load(self, game_id: str) -> Room:
        self._make_space()
        row, moves = await self._stored(self.store.run(lambda connection: _read(connection, game_id)))
        if row is None:
            raise Refused(404, "no_game", "there is no such game")
        room = Room.restored(self, row, moves)
        for colour, seat in room.seats.items():
            if seat.agent:
                room.orders[colour] = catalogue.order(seat.agent, room.game.rules.size, self.options, lenient=True)
        self.rooms[game_id] = room
        room._go_on()
        return room

    def _make_space(self) -> None:
        if len(self.rooms) < self.options.most_rooms:
            return
        idle = min((r for r in self.rooms.values() if not r.members), key=lambda r: r.idle_since, default=None)
        if idle is None:
            raise Refused(503, "full", "too many games are open; try again later")
        self.drop(idle, "")

    async def _stored(self, work: asyncio.Future[Any]) -> Any:
        try:
            return await work
        except sqlite3.Error as error:
            log.error("the database failed: %s", error)
            raise Refused(503, "storage", "the games cannot be stored or read now; try again later") from None

    # --- old games --------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Take games nobody is in out of memory, now and then, and tidy the store."""
        while True:
            await asyncio.sleep(self.options.sweep_every)
            now = monotonic()
            for room in list(self.rooms.values()):
                if not room.members and now - room.idle_since > self.options.room_idle and not room._thinking:
                    self.drop(room, "")
            await self._tidy()

    async def _tidy(self) -> None:
        """Note the server's time in the store, forget old games and count those that are running."""
        uptime, now, options = self.time.now(), time.time(), self.options

        def tidy(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE uptime SET seconds = ?", (uptime,))
            sql = "DELETE FROM games WHERE status = ? AND updated < ?"
            connection.execute(sql, ("running", now - options.running_idle))
            connection.execute(sql, ("finished", now - options.finished_kept))
            return int(connection.execute("SELECT count(*) FROM games WHERE status = 'running'").fetchone()[0])

        try:
            self.running = await self.store.run(tidy)
        except sqlite3.Error as error:
            log.error("the store could not be tidied: %s", error)

    # --- analysis ---------------------------------------------------------------------------------

    async def analyse(self, request: AnalyseRequest, client: str) -> Analysis:
        """What the engine thinks of a position."""
        position = _position(request)
        agent = request.agent or catalogue.default_evaluator(position.rules.size)
        catalogue.check_evaluator(agent, position.rules.size)
        if self.analyses[client] >= self.options.client_analyses:
            raise Refused(429, "too_many_analyses", "wait for your other analyses")
        if self.analyses.total() >= self.options.most_analyses:
            raise Refused(429, "busy", "the server is busy with analyses; try again later")
        seconds = min(request.seconds, self.options.longest_analysis)
        message = {
            "kind": "analyse",
            "size": position.rules.size,
            "variant": position.rules.variant,
            "own": position.own,
            "opp": position.opp,
            "turn": request.turn,
            "spec": f"analysis with {agent}",
            "name": agent,
            "table": self.options.analysis_table,
            "seconds": seconds,
        }
        self.analyses[client] += 1
        try:
            found = await self.pool.search(f"client {client}", message, is_long=seconds > catalogue.SHORT_SECONDS)
        except WorkerLost as error:
            raise Refused(503, "lost", str(error)) from None
        finally:
            self.analyses[client] -= 1
            if not self.analyses[client]:
                del self.analyses[client]
        if "error" in found:
            status, code = (503, "lost") if "fault" in found else (400, "bad_position")
            raise Refused(status, code, found["error"])
        fields = {k: v for k, v in found.items() if k not in ("number", "cpu")}
        return Analysis(**fields, agent=agent)


def _read(connection: sqlite3.Connection, game_id: str) -> tuple[Any, list[Any]]:
    row = connection.execute("SELECT * FROM games WHERE id = ?", (game_id,)).fetchone()
    moves = connection.execute("SELECT * FROM moves WHERE game = ? ORDER BY ply", (game_id,)).fetchall()
    return row, moves


def _uptime(connection: sqlite3.Connection) -> float:
    """The last moment, in the server's time, that the store knows of."""
    sql = "SELECT max(seconds) FROM (SELECT seconds FROM uptime UNION ALL SELECT max(since) FROM games)"
    return float(connection.execute(sql).fetchone()[0])


def _position(request: AnalyseRequest) -> Position:
    turn: Colour = BLACK if request.turn == "black" else WHITE
    try:
        plain = Position.from_text(request.board, turn)
        return Position(Rules(plain.rules.size, request.variant), plain.own, plain.opp, turn)
    except ReversiError as error:
        raise Refused(400, "bad_position", str(error)[:200]) from None


def _plain(name: str | None) -> str | None:
    """A name without what is not printable."""
    return "".join(c for c in name if c.isprintable()).strip() if name else None
