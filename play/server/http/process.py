"""The server as a process: its listening socket, its uvicorn configuration and its end."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import WebSocketException

from play.server.addresses import EVERYWHERE, known_as, url
from play.server.games.store import check
from play.server.http.app import make_app
from play.server.options import ServerOptions
from reversi_env import ReversiError

#: Seconds for connections to close when the server ends.
GOODBYE_SECONDS = 3
#: Maximum number of fragments of a message.
MAX_FRAGMENTS = 32
#: The response to bytes that are no HTTP request.
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ServerError(ReversiError):
    """The server cannot listen there."""


class TimedProtocol(H11Protocol):
    """HTTP that closes connections which do not send a complete request head in time, or which send what is no HTTP.

    One client has at most *client_connections*, WebSockets among them; a proxy has any number.
    """

    patience, client_connections = 10.0, 800
    proxies: tuple[Any, ...] = ()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timeout: asyncio.TimerHandle | None = None
        self._start_timeout()
        if self._is_one_too_many():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Keep the timeout running while the head is incomplete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            if self._timeout is None and self.conn.trailing_data[0]:
                self._start_timeout()
        else:
            self._cancel_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; within the body of a request that has its response, only close the connection.

        The response is written directly, since the protocol's state may not allow one, for example after HEAD.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(REFUSAL)
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _is_one_too_many(self) -> bool:
        host = self.client[0] if self.client else ""
        if not host or any(ip_address(host) in proxies for proxies in self.proxies):
            return False
        hosts = [other.client[0] for other in self.connections if other.client]  # type: ignore[union-attr]
        return sum(known_as(other) == known_as(host) for other in hosts) > self.client_connections

    def _start_timeout(self) -> None:
        self._timeout = self.loop.call_later(self.patience, self.transport.close)

    def _cancel_timeout(self) -> None:
        if self._timeout:
            self._timeout.cancel()
        self._timeout = None


class StrictSockets(WebSocketsSansIOProtocol):
    """WebSockets that handle invalid input without tracebacks in the log.

    Text that is no UTF-8 reaches the application as bytes, which it refuses; the number of fragments is bounded; a handshake that
    is invalid or too long is refused and closes the connection, which would otherwise stay open and break the server's shutdown.
    """

    def data_received(self, data: bytes) -> None:
        """Read bytes; close a connection without a handshake."""
        try:
            super().data_received(data)
        except (AssertionError, WebSocketException):  # bytes that the protocol cannot answer
            self.transport.abort()
        if not self.handshake_initiated:
            self.transport.write(REFUSAL)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Send a message; a refusal completes the handshake too, or the log would report a missing response."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent

    def shutdown(self) -> None:
        """Close the connection, or abort it."""
        try:
            super().shutdown()
        except Exception:  # the server must be able to end, whatever the state of the connection
            self.transport.abort()

    def handle_cont(self, event: Any) -> None:
        """Abort a connection that sends a message in too many fragments."""
        if len(self.frames) >= MAX_FRAGMENTS:
            self.transport.abort()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Pass a message on; as bytes if it is no text."""
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()


def configuration(options: ServerOptions, log_level: str = "error") -> uvicorn.Config:
    """Return uvicorn's configuration: small messages, no compression, pings that find half-open connections."""
    limits = {"patience": options.patience, "client_connections": 2 * options.client_connections}
    protocol = type("_Protocol", (TimedProtocol,), {**limits, "proxies": options.trusted()})
    return uvicorn.Config(
        make_app(options),
        host=options.host,
        port=options.port,
        http=protocol,
        ws=StrictSockets,
        ws_max_size=options.largest_message,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        limit_concurrency=2 * options.most_connections,
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
        place = f"{options.host}:{options.port}"
        raise ServerError(f"cannot listen on {place}: {error}; expected a free port of this machine") from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of the server for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    return url("127.0.0.1" if host in EVERYWHERE else host, port)


class Server(uvicorn.Server):
    """A server whose shutdown a second Ctrl-C does not interrupt, since that would print a traceback."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the shutdown once."""
        if not self.should_exit:
            super().handle_exit(sig, frame)


def server_for(options: ServerOptions) -> Server:
    """Return a server that is not running yet; an error if *options* would not allow it to run."""
    check(options.file())
    _allow_files(3 * options.most_connections)
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
