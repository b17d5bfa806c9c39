"""Games over WebSockets: a connection follows one game, and plays in it with a player's token."""

import asyncio
import contextlib
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected, WebSocketState

from play.server import messages
from play.server.addresses import client_of
from play.server.games.clock import RateLimiter
from play.server.games.hall import Hall, counted_while_open
from play.server.games.room import Room
from play.server.messages import Incoming, Joined, Pong, Problem, Refused, Role, encode, read

#: Close codes: a limit was broken; the server is busy; no join message in time; the token or the game is wrong.
POLICY, TRY_LATER, TOO_SLOW, NOT_ADMITTED = 1008, 1013, 4408, 4403
#: Raised when a client is gone, or its connection is already closed.
GONE = (WebSocketDisconnect, WebSocketDisconnected)
#: Number of connections to a game to which sending a state costs as much as one message.
CHEAP_MEMBERS = 8


def same_origin(headers: Headers) -> bool:
    """Return whether a request comes from a page of this server (its Origin is exactly the server's address) or has no Origin."""
    origins, host = headers.getlist("origin"), headers.get("host", "").lower()
    own = (f"http://{host}", f"https://{host}") if host else ()
    return all(origin.lower() in own for origin in origins)


class Connection:
    """A member of a room over a WebSocket. Answers are queued in order; of the states only the latest is kept, to save memory."""

    def __init__(self, socket: WebSocket, role: Role) -> None:
        self.role = role
        self._socket = socket
        self._messages: list[bytes] = []
        self._state: bytes | None = None
        self._closing: tuple[int, str] | None = None
        self._news = asyncio.Event()

    def send_state(self, state: bytes) -> None:
        self._state = state
        self._news.set()

    def send(self, message: bytes) -> None:
        self._messages.append(message)
        self._news.set()

    def leave(self, code: int, reason: str) -> None:
        self._closing = (code, reason)
        self._news.set()

    async def write(self) -> None:
        """Send messages until the connection ends."""
        while True:
            await self._news.wait()
            self._news.clear()
            waiting, self._messages = self._messages, []
            state, self._state = self._state, None
            for message in [*waiting, *([state] if state else [])]:
                await self._socket.send_text(message.decode())
            if self._closing and not self._news.is_set():
                await self._socket.close(*self._closing)
                return


async def serve_connection(hall: Hall, socket: WebSocket) -> None:
    """Serve one connection to ``/api/games/{id}/socket`` to its end."""
    client, connections, options = client_of(socket), hall.connections, hall.options
    full = connections[client] >= options.client_connections or connections.total() >= options.max_connections
    if full or not same_origin(socket.headers):
        await socket.close(POLICY)  # before it is accepted: the client sees 403
        return
    with counted_while_open(connections, client), contextlib.suppress(*GONE):
        await socket.accept()
        await _admit(hall, socket, client)


async def _admit(hall: Hall, socket: WebSocket, client: str) -> None:
    try:
        first = await asyncio.wait_for(_received(socket), hall.options.request_timeout)
    except TimeoutError:
        await socket.close(TOO_SLOW, "expected a join message")
        return
    try:
        join = read(Incoming, first)
        if not isinstance(join, messages.Join):
            raise Refused(400, "join_first", "expected a join message with the token first")
        await hall.started.wait()
        await _wait(hall, client, await hall.room(socket.path_params["id"]))
        room = await hall.room(socket.path_params["id"])
        connection = Connection(socket, room.role(join.token, join.claim or None))
        connection.send(encode(Joined(role=connection.role, game=room.id, id=join.id)))
        room.enter(connection)
    except Refused as refused:
        await socket.send_text(encode(refused.problem(messages.id_of(first))).decode())
        await socket.close(TRY_LATER if refused.status in (429, 503) else NOT_ADMITTED, refused.code)
        return
    await _follow(hall, socket, client, room, connection)


async def _follow(hall: Hall, socket: WebSocket, client: str, room: Room, connection: Connection) -> None:
    reading = _read(hall, socket, client, room, connection)
    tasks = [asyncio.create_task(connection.write()), asyncio.create_task(reading)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        room.exit(connection)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception) and not isinstance(error, GONE):
            raise error
    if socket.application_state is WebSocketState.CONNECTED and socket.client_state is WebSocketState.CONNECTED:
        await socket.close()


async def _wait(hall: Hall, client: str, room: Room) -> None:
    """Wait until the rate limit admits a message of *client*; the connection is not read meanwhile."""
    cost = 1 + len(room.members) / CHEAP_MEMBERS
    if wait := hall.messages.reserve(client, cost):
        await asyncio.sleep(wait)


async def _read(hall: Hall, socket: WebSocket, client: str, room: Room, connection: Connection) -> None:
    options = hall.options
    limiter, errors = RateLimiter(options.message_burst, options.messages_per_second), 0
    while errors < options.max_errors:
        text = await _received(socket)
        if not limiter.try_acquire(""):
            connection.send(encode(Problem("too_fast", "too many messages", 429)))
            break
        await _wait(hall, client, room)
        try:
            _carry_out(read(Incoming, text), room, connection)
        except Refused as refused:
            errors += 1
            connection.send(encode(refused.problem(messages.id_of(text))))
    connection.leave(POLICY, "too many errors" if errors >= options.max_errors else "too many messages")
    await _until_closed(socket)


def _carry_out(message: Any, room: Room, connection: Connection) -> None:
    role = connection.role
    if isinstance(message, messages.Ping):
        connection.send(encode(Pong(id=message.id)))
    elif room.closed:
        raise Refused(503, "gone", "the game was unloaded; connect again")
    elif isinstance(message, messages.Move):
        room.move(role, message.move, message.ply)
    elif isinstance(message, messages.Join):
        raise Refused(409, "joined", "you have joined already")
    else:
        act = {
            messages.Undo: room.undo,
            messages.Grant: room.grant,
            messages.Decline: room.decline,
            messages.Resign: room.resign,
            messages.Rematch: room.rematch,
        }
        act[type(message)](role)


async def _received(socket: WebSocket) -> bytes:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1006))
    return message.get("bytes") or (message.get("text") or "").encode("utf-8", "replace")


async def _until_closed(socket: WebSocket) -> None:
    """Discard messages for at most five seconds, until the writer has closed the connection."""
    ends = monotonic() + 5
    with contextlib.suppress(asyncio.TimeoutError, WebSocketDisconnect):
        while (left := ends - monotonic()) > 0:
            await asyncio.wait_for(_received(socket), left)
