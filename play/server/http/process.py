"""The server as a process: it listens, says where, and ends cleanly."""

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

#: Seconds that connections get to end when the server does.
GOODBYE_SECONDS = 3
#: Parts that a message may come in.
MOST_FRAGMENTS = 32
#: The answer to what cannot be read.
REFUSAL = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ServerError(ReversiError):
    """The server cannot listen there."""


class TimedProtocol(H11Protocol):
    """HTTP that closes connections which do not send a whole request head in time, or whose request breaks off into nonsense.

    One client has at most so many connections, those that have become WebSockets among them; a proxy has any number.
    """

    patience, most_of_one = 10.0, 800
    proxies: tuple[Any, ...] = ()

    def connection_made(self, transport: Any) -> None:
        """Start waiting."""
        super().connection_made(transport)
        self._timeout: asyncio.TimerHandle | None = None
        self._start_timeout()
        if self._is_one_too_many():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Wait on while the head is incomplete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            if self._timeout is None and self.conn.trailing_data[0]:
                self._start_timeout()
        else:
            self._cancel_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._cancel_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; if that comes within a body whose request has an answer already, only end the connection.

        The answer is written as it is: the protocol's own state may not allow one, after HEAD for example.
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
        return sum(known_as(other) == known_as(host) for other in hosts) > self.most_of_one

    def _start_timeout(self) -> None:
        self._timeout = self.loop.call_later(self.patience, self.transport.close)

    def _cancel_timeout(self) -> None:
        if self._timeout:
            self._timeout.cancel()
        self._timeout = None


class StrictSockets(WebSocketsSansIOProtocol):
    """WebSockets for clients of all kinds.

    Text that is no UTF-8 comes to the application as bytes, which refuses it, and not as a traceback in the log; a message does
    not consist of any number of empty fragments; and a handshake that cannot be read, or is too long, is refused and ends the
    connection, instead of leaving one behind on which even the server's own shutdown fails.
    """

    def data_received(self, data: bytes) -> None:
        """Take bytes in; what does not even begin as a WebSocket ends here."""
        try:
            super().data_received(data)
        except (AssertionError, WebSocketException):  # bytes that the protocol has no answer to
            self.transport.abort()
        if not self.handshake_initiated:
            self.transport.write(REFUSAL)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Send what the application says; a refusal completes the handshake too, or the log would say that there was no answer."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent

    def shutdown(self) -> None:
        """End the connection politely, or else anyhow."""
        try:
            super().shutdown()
        except Exception:  # whatever state a stranger has brought it into, the server must be able to end
            self.transport.abort()

    def handle_cont(self, event: Any) -> None:
        """Close a connection that sends a message in too many parts."""
        if len(self.frames) >= MOST_FRAGMENTS:
            self.transport.abort()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand on a message; one that is no text as what it is."""
        try:
            b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()


def configuration(options: ServerOptions, log_level: str = "error") -> uvicorn.Config:
    """How uvicorn is to serve: small messages, no compression, pings that find half-open connections."""
    limits = {"patience": options.patience, "most_of_one": 2 * options.client_connections, "proxies": options.trusted()}
    protocol = type("_Protocol", (TimedProtocol,), limits)
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
    """A socket at the server's address; port 0 takes any that is free."""
    if not options.host:  # the system would take it for all addresses
        raise ServerError(f"cannot listen on {options.host!r}: expected an address, such as 127.0.0.1")
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # The protocol is named because asyncio looks for it: without it small messages wait 40 ms for the last one's receipt.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ServerError(
            f"cannot listen on {options.host}:{options.port}: {error}; expected a free port of this machine"
        ) from None
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a browser finds the server."""
    host, port = listener.getsockname()[:2]
    return url("127.0.0.1" if host in EVERYWHERE else host, port)


class Server(uvicorn.Server):
    """A server that ends once: a second Ctrl-C would only cut off what takes `GOODBYE_SECONDS` at most, with a traceback."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        if not self.should_exit:
            super().handle_exit(sig, frame)


def server_for(options: ServerOptions) -> Server:
    """A server that has yet to run; an error, if it could not as *options* have it."""
    check(options.file())
    _allow_files(3 * options.most_connections)
    return Server(configuration(options))


def _allow_files(wanted: int) -> None:
    """Let the process have so many connections open, where the system asks and allows it: the usual limit is 1024."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
