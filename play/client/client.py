"""`Client` of `play.server`: creates or joins a game, and plays it to its end for a person or an agent.

It checks every board of the server against its own, like the client of report 001, and ends with the game. After a lost
connection it reconnects for a while. The server is not trusted: its texts are shown without control characters.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from play.game import Game
from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rules import BLACK, WHITE, Colour

DEFAULT_PORT = 8400
#: Timeouts of a response and of all attempts to reconnect, and time between two attempts, in seconds.
ANSWER_SECONDS, RECONNECT_SECONDS, RETRY_SECONDS = 20.0, 60.0, 0.5
#: Seconds after which a connection without a move counts as a successful reconnection.
STEADY_SECONDS = 10.0
#: Maximum size of an answer, in bytes.
MAX_ANSWER = 1 << 20
#: Close codes after which reconnecting is of no use.
NOT_ADMITTED, POLICY = 4403, 1008
#: Errors that no state follows, since the game has not changed.
UNCHANGED = ("nothing_to_undo", "illegal_move")


class ConnectError(ReversiError):
    """The server cannot be reached, refuses a request, or sends something invalid."""


class UnreachableError(ConnectError):
    """There is no server, or it has gone away."""

    exit_status = 1


@dataclass(frozen=True)
class Ticket:
    """A seat of a game, with the token that opens it."""

    game: str
    token: str

    def __str__(self) -> str:
        return f"{self.game}.{self.token}"

    @classmethod
    def read(cls, text: str) -> Ticket:
        """Return the ticket of ``GAME.TOKEN``, or of the web page's invitation link."""
        _, joins, fragment = text.partition("#join=")
        parts = unquote(fragment if joins else text).strip().split(".")
        if len(parts) not in (2, 3) or not all(parts):
            raise ConnectError(f"ticket {quoted(text)}: expected GAME.TOKEN, or an invitation link")
        return cls(parts[0], parts[-1])


def server_url(address: str) -> str:
    """Return the URL of ``HOST``, ``HOST:PORT`` or a URL; the default port is 8400."""
    text = address if "//" in address else f"//{address}"
    try:
        parts = urlsplit(text.partition("#")[0], scheme="http")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        raise ConnectError(f"server {quoted(address)}: expected HOST or HOST:PORT, such as 127.0.0.1:8400")
    if port is None and parts.scheme == "http":
        port = DEFAULT_PORT
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port else "")


class Client:
    """A connection to the Reversi server at *url*, which is checked. *headers* are sent with every request."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self.url, self.headers = url, headers or {}
        health = self.ask("GET", "/api/health")
        if not isinstance(health, dict) or health.get("status") != "ok":
            raise ConnectError(f"{url} is no Reversi server: expected one started with `reversi serve`")

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json", **self.headers}, method=method)
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as response:
                return decode_message(response.read(MAX_ANSWER))
        except HTTPError as error:
            raise ConnectError(f"{self.url} refuses: {_reason(error)}") from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            text = (getattr(reason, "strerror", None) or str(reason)).lower()
            raise UnreachableError(
                f"{self.url} ({_plain(text)}): expected a server there; start one with `reversi serve`, or check the address"
            ) from None

    def create(self, rules: Rules, colour: Colour, opponent: str | None) -> tuple[Ticket, Ticket | None]:
        """Create a game against an agent of the server, or a person if *opponent* is None; return our ticket and the opponent's."""
        request: dict[str, Any] = {"size": rules.size, "variant": rules.variant}
        if opponent is not None:
            request[str(colour.other)] = {"kind": "agent", "agent": opponent}
        created = self.ask("POST", "/api/games", request)
        try:
            tokens = created["tokens"]
            theirs = Ticket(created["game"], tokens[str(colour.other)]) if opponent is None else None
            return Ticket(created["game"], tokens[str(colour)]), theirs
        except (LookupError, TypeError):
            raise ConnectError(f"{self.url} created {quoted(created)}: expected a game and its tokens") from None

    def play(self, ticket: Ticket, player: ClientPlayer) -> Game:
        session = _Session(ticket, player)
        address = f"{self.url.replace('http', 'ws', 1)}/api/games/{quote(ticket.game)}/socket"
        lost_at: float | None = None
        while True:
            began, moves = time.monotonic(), session.game.moves
            try:
                with connect(address, compression=None, open_timeout=ANSWER_SECONDS) as socket:
                    if session.follow(socket):
                        return session.game
            except ConnectionClosed as closed:
                reason = _plain(closed.rcvd.reason) if closed.rcvd else ""
                if closed.rcvd and closed.rcvd.code in (NOT_ADMITTED, POLICY):
                    raise ConnectError(f"{self.url} refuses: {reason or 'connection closed'}") from None
                if session.game.moves != moves or time.monotonic() - began > STEADY_SECONDS:
                    lost_at = None
            except (OSError, InvalidHandshake, TimeoutError) as error:
                reason = _plain(str(error))
            if lost_at is None:
                lost_at = time.monotonic()
                player.on_notice("connection lost, trying again")
            elif time.monotonic() - lost_at > RECONNECT_SECONDS:
                raise UnreachableError(f"lost {self.url}: {reason or 'closed'}; come back with --join {ticket}")
            time.sleep(RETRY_SECONDS)


class ClientPlayer:
    """The player of a client; *role* is its seat after joining."""

    role = ""

    def on_joined(self, role: str) -> None:
        """Receive the seat that the ticket opened."""
        self.role = role

    def on_notice(self, text: str) -> None:
        """Receive a message for the player."""

    def on_state(self, game: Game) -> None:
        """Receive the game after a change."""

    def decide(self, game: Game) -> dict[str, Any]:
        """Return a message for the server when it is our turn: a move, an undo or a resignation."""
        raise NotImplementedError

    def grants_undo(self) -> bool:
        """Return whether the other side may take its move back."""
        return True


class _Session:
    """State across lost connections: the game, and whether we still owe the server a message."""

    def __init__(self, ticket: Ticket, player: ClientPlayer) -> None:
        self._ticket, self._player = ticket, player
        self._role = ""
        self._owes, self._is_ours, self._asks_undo = True, False, False
        self.game = Game()

    def follow(self, socket: Any) -> bool:
        """Play over one connection; return whether the game is over."""
        socket.send(json.dumps({"type": "join", "token": self._ticket.token}))
        while True:
            try:
                message = decode_message(socket.recv())
                kind = message.get("type")
            except (ValueError, AttributeError) as error:
                raise ConnectError(f"the server's message cannot be read ({error}): expected a JSON object") from None
            if kind == "joined":
                self._role = str(message.get("role"))
                self._player.on_joined(self._role)
                self._owes = True  # the last connection may have lost our message
            elif kind == "error":
                self._error(socket, message)
            elif kind == "state" and self._state(socket, message):
                return True

    def _error(self, socket: Any, message: dict[str, Any]) -> None:
        if message.get("status") in (401, 403, 404):
            raise ConnectError(f"the server refuses: {message.get('message')}")
        self._player.on_notice(f"the server refuses: {message.get('message')}")
        self._owes = True
        if message.get("code") in UNCHANGED and self._is_ours:
            self._decide(socket)

    def _state(self, socket: Any, state: dict[str, Any]) -> bool:
        """Receive a state, and answer it if it is our turn; return whether the game is over."""
        before, asked = self.game.moves, self._asks_undo
        self.game, self._asks_undo = replayed_game(state), state.get("undo_request") == self._role
        over = state["status"] == "finished"
        self._is_ours = state["turn"] == self._role and not over
        if self.game.moves != before or over:
            self._player.on_state(self.game)
        if self.game.moves != before or (asked and not self._asks_undo):
            self._owes = True
        if over:
            return True
        if state.get("undo_request") not in (None, self._role) and self._role != "spectator":
            socket.send(json.dumps({"type": "grant" if self._player.grants_undo() else "decline"}))
        elif self._is_ours and self._owes:
            self._decide(socket)
        return False

    def _decide(self, socket: Any) -> None:
        socket.send(json.dumps(self._player.decide(self.game)))
        self._owes = False


def replayed_game(state: dict[str, Any]) -> Game:
    """Return the game of a state, replayed by our own rules; an error if the boards differ."""
    try:
        game = Game(Rules(state["size"], state["variant"], state.get("start", "standard")))
        for move in state["moves"]:
            game.play(move)
        result = state.get("result")
        if result and result["ending"] in ("resigned", "timeout"):
            game.end(result["ending"], WHITE if result["winner"] == "black" else BLACK)
        board, status, _ = state["board"], state["status"], state["turn"]
        score = state["result"]["score"] if game.is_over() else None
    except (ReversiError, KeyError, TypeError, AttributeError) as error:
        raise ConnectError(f"the server's game breaks the rules: {error}") from None
    if game.position.to_text() != board or game.is_over() != (status == "finished"):
        raise ConnectError(
            f"the server's board differs from ours after {' '.join(game.moves[-3:])}: expected the same rules"
        )
    if game.is_over() and game.score(BLACK) != score:
        raise ConnectError(f"the server's score {quoted(score)} is not ours: expected {game.score(BLACK)}")
    return game


def decode_message(text: str | bytes) -> Any:
    """Return the content of a server's JSON without unprintable characters, since terminals execute escape sequences."""
    try:
        return _plain(json.loads(text))
    except RecursionError:
        raise ValueError("too deep") from None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(character for character in value if character.isprintable())
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _reason(error: HTTPError) -> str:
    with error:  # it is the response, which holds the connection
        try:
            return str(decode_message(error.read(MAX_ANSWER))["message"])
        except (ValueError, KeyError, TypeError, OSError):
            return f"HTTP {error.code}"
