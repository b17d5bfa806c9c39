"""The server as a process: its listening socket, its uvicorn configuration and its end."""

import asyncio
import errno
import socket
from ipaddress import ip_address
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import WebSocketException

from play.server.addresses import EVERYWHERE, known_as, url
from play.server.games.clock import RateLimiter
from play.server.games.store import check
from play.server.http.app import make_app
from play.server.options import ServerOptions
from reversi_env import ReversiError

#: Seconds that connections have to close at shutdown.
GOODBYE_SECONDS = 3
#: Maximum numbers: lines of a request with its chunks, fragments of a message, and queued messages.
MAX_LINES, MAX_FRAGMENTS, MAX_QUEUED = 500, 32, 200
#: Bytes of a WebSocket that are read between two checks of its limits; control frames: burst and rate.
PIECE_BYTES, CONTROL_BURST, CONTROLS_PER_SECOND = 512, 20, 1.0
#: Errors of bind that are about the port; others are about the address.
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)
#: The response to bytes that are not an HTTP request.
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ServerError(ReversiError):
    """The server cannot listen there."""


class TimedProtocol(H11Protocol):
    """HTTP that closes connections without a complete request head in time, or with invalid HTTP.

    One client has at most *client_connections*, WebSockets among them, and new ones at the rate of *openings*; a proxy has any
    number.
    """

    request_timeout, client_connections = 10.0, 800
    openings = RateLimiter(800, 100.0)
    proxies: tuple[Any, ...] = ()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timeout: asyncio.TimerHandle | None = None
        self._lines = 0
        self._start_timeout()
        if self._exceeds_limits():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Keep the timeout running while the head is incomplete, and while a body arrives after its response was sent."""
        is_in_head = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        self._lines = data.count(b"\n") + (self._lines if is_in_head or self.conn.their_state is h11.SEND_BODY else 0)
        if self._lines > MAX_LINES:
            self.transport.abort()
            return
        super().data_received(data)
        unwanted = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        if (unwanted or self.conn.their_state is h11.IDLE) and not self.transport.is_closing():
            if self._timeout is None and (unwanted or self.conn.trailing_data[0]):
                self._start_timeout()
        else:
            self._cancel_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP; if the request already has its response, only close the connection.

        The response is written directly, since the protocol's state may not allow one, for example after HEAD.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(REFUSAL)
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _exceeds_limits(self) -> bool:
        host = self.client[0] if self.client else ""
        if not host or any(ip_address(host) in proxies for proxies in self.proxies):
            return False
        if not self.openings.try_acquire(known_as(host)):
            return True
        hosts = [other.client[0] for other in self.connections if other.client]  # type: ignore[union-attr]
        return sum(known_as(other) == known_as(host) for other in hosts) > self.client_connections

    def _start_timeout(self) -> None:
        self._timeout = self.loop.call_later(self.request_timeout, self.transport.close)

    def _cancel_timeout(self) -> None:
        if self._timeout:
            self._timeout.cancel()
        self._timeout = None


class StrictSockets(WebSocketsSansIOProtocol):
    """WebSockets that handle invalid input without tracebacks in the log.

    Text that is not UTF-8 reaches the application as bytes, which it refuses. The number of fragments is limited. An invalid or too
    long handshake is refused and closes the connection, which would otherwise stay open and break the server's shutdown.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._controls = RateLimiter(CONTROL_BURST, CONTROLS_PER_SECOND)

    def data_received(self, data: bytes) -> None:
        """Read bytes; close a connection without a handshake."""
        try:
            for start in range(0, len(data), PIECE_BYTES):
                super().data_received(data[start : start + PIECE_BYTES])
                if self.queue.qsize() > MAX_QUEUED:
                    self.transport.abort()
                if self.transport.is_closing():
                    break
        except (AssertionError, WebSocketException):  # bytes that the protocol cannot answer
            self.transport.abort()
        if not self.handshake_initiated:
            self.transport.write(REFUSAL)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Send a message; a refusal completes the handshake too, or the log would report a missing response.

        After the protocol itself has closed the connection, the client is gone.
        """
        if self.close_sent:
            raise ClientDisconnected
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except Exception:  # the server must be able to end, whatever the state of the connection
            self.transport.abort()

    def handle_ping(self) -> None:
        """Answer a ping; abort a connection that sends too many."""
        if self._controls.try_acquire(""):
            super().handle_ping()
        else:
            self.transport.abort()

    def handle_pong(self, event: Any) -> None:
        """Note a pong; abort a connection that sends too many."""
        if self._controls.try_acquire(""):
            super().handle_pong(event)
        else:
            self.transport.abort()

    def handle_cont(self, event: Any) -> None:
        """Abort a connection that sends a message in too many fragments."""
        if len(self.frames) >= MAX_FRAGMENTS:
            self.transport.abort()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Pass a message to the application; as bytes if it is not UTF-8."""
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()


def configuration(options: ServerOptions, log_level: str = "error") -> uvicorn.Config:
    """Return uvicorn's configuration: small messages, no compression, pings that find half-open connections."""
    connections = 2 * options.client_connections
    limits = {
        "request_timeout": options.request_timeout,
        "client_connections": connections,
        "openings": RateLimiter(max(connections, options.request_burst), options.requests_per_second),
        "proxies": options.trusted(),
    }
    protocol = type("_Protocol", (TimedProtocol,), limits)
    return uvicorn.Config(
        make_app(options),
        host=options.host,
        port=options.port,
        http=protocol,
        ws=StrictSockets,
        ws_max_size=options.max_message_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        limit_concurrency=2 * options.max_connections,
        backlog=1024,
        server_header=False,
        access_log=False,
        log_level=log_level,
        proxy_headers=bool(options.proxies),
        forwarded_allow_ips=list(options.proxies or ()),
        h11_max_incomplete_event_size=16_384,
    )


def listen(options: ServerOptions) -> socket.socket:
    """Return a socket at the server's address; port 0 takes any free one."""
    if not options.host:  # would mean all addresses
        raise ServerError(f"cannot listen on {options.host!r}: expected an address, such as 127.0.0.1")
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is named; small messages would wait 40 ms otherwise.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        place, port = f"{options.host}:{options.port}", isinstance(error, OSError) and error.errno in PORT_ERRORS
        expected = "a free port, such as --port 0" if port else "an address of this machine, such as --host 127.0.0.1"
        reason = getattr(error, "strerror", None) or error
        raise ServerError(f"cannot listen on {place}, {str(reason).lower()}: expected {expected}") from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of the server for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    return url("127.0.0.1" if host in EVERYWHERE else host, port)


class Server(uvicorn.Server):
    """A server whose shutdown a second Ctrl-C does not interrupt, since that would print a traceback."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            super().handle_exit(sig, frame)


def server_for(options: ServerOptions) -> Server:
    """Return a server that is not running yet; raise an error if it could not run with *options*."""
    check(options.file())
    _allow_files(3 * options.max_connections)
    return Server(configuration(options))


def _allow_files(wanted: int) -> None:
    """Raise the limit of open files, usually 1024, if the system allows it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
