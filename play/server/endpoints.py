"""The HTTP interface: one table of endpoints, from which come the routes, the checking of bodies and ``/openapi.json``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from play.game import Game
from play.server import catalogue
from play.server.hall import Hall
from play.server.messages import (
    Agents,
    AnalyseRequest,
    Analysis,
    Created,
    CreateGame,
    Health,
    MoveRequest,
    RecordedPosition,
    Refused,
    State,
    Transcript,
    TranscriptRequest,
    encode,
    read_body,
)
from play.server.room import Room, board_text, colour_name
from play.server.sockets import same_origin
from reversi_env import Position, ReversiError, Rules, __version__


class JsonResponse(Response):
    """Bytes of JSON."""

    media_type = "application/json"


@dataclass(frozen=True)
class Endpoint:
    """One operation: its place, what it takes and gives, and the function that does it.

    *answers* is a class of `play.server.messages`, or None for plain text. *refuses*: the statuses that it may refuse with
    beyond 400, 413 and 429.
    """

    method: str
    path: str
    name: str
    summary: str
    work: Callable[[Hall, Request, Any], Awaitable[Any]]
    answers: type | None
    takes: type | None = None
    status: int = 200
    needs_token: bool = False
    refuses: tuple[int, ...] = ()


async def health(hall: Hall, request: Request, body: None) -> Health:
    """How the server is."""
    lag = request.app.state.lag
    return Health(
        status="ok",
        version=__version__,
        rooms=len(hall.rooms),
        connections=hall.connections.total(),
        waiting=hall.pool.waiting,
        searches=hall.pool.searches,
        lag_median_ms=lag.quantile(0.5),
        lag_p99_ms=lag.quantile(0.99),
        lag_max_ms=lag.quantile(1.0),
    )


async def agents(hall: Hall, request: Request, body: None) -> Agents:
    """Who can be played against."""
    return Agents(catalogue.entries(), hall.options.longest_think, hall.options.deepest)


async def create(hall: Hall, request: Request, body: CreateGame) -> Created:
    """A new game."""
    return await hall.create(body, client_of(request))


async def state(hall: Hall, request: Request, body: None) -> State:
    """A game as it is."""
    room, _ = await _opened(hall, request)
    return room.state()


async def record(hall: Hall, request: Request, body: None) -> str:
    """A game as a line of GGF."""
    room, _ = await _opened(hall, request)
    return room.ggf() + "\n"


async def move(hall: Hall, request: Request, body: MoveRequest) -> Any:
    """A move."""
    room, role = await _opened(hall, request)
    return await room.move(role, body.move, body.ply)


async def undo(hall: Hall, request: Request, body: None) -> Any:
    """A take-back, or the wish for one."""
    room, role = await _opened(hall, request)
    return await room.undo(role)


async def resign(hall: Hall, request: Request, body: None) -> Any:
    """The end."""
    room, role = await _opened(hall, request)
    return await room.resign(role)


async def analyse(hall: Hall, request: Request, body: AnalyseRequest) -> Analysis:
    """The engine's opinion; given up when the client goes."""
    work = asyncio.create_task(hall.analyse(body, client_of(request)))
    gone = asyncio.create_task(_disconnected(request))
    await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not work.done():
        work.cancel()
        raise Refused(499, "gone", "the client is gone")
    return work.result()


async def transcript(hall: Hall, request: Request, body: TranscriptRequest) -> Transcript:
    """A record read."""
    try:
        if "(;" in body.text:
            game = Game.from_ggf(body.text.strip())
        else:
            game = Game.from_transcript(body.text, Rules(body.size, body.variant, body.start))
    except ReversiError as error:
        raise Refused(400, "bad_transcript", str(error)[:300]) from None
    rules, result = game.rules, game.record().result
    positions = [_recorded(position, name) for position, name in zip(game.positions, [*game.moves, None], strict=True)]
    return Transcript(rules.size, rules.variant, game.black, game.white, list(game.moves), positions, result)


def _recorded(position: Position, name: str | None) -> RecordedPosition:
    return RecordedPosition(board_text(position), colour_name(position.turn), position.legal_moves(), name)


#: Everything that can be asked for over HTTP.
ENDPOINTS = (
    Endpoint("GET", "/api/health", "health", "How the server is.", health, Health),
    Endpoint("GET", "/api/agents", "agents", "The agents on offer, and the server's limits.", agents, Agents),
    Endpoint("POST", "/api/games", "createGame", "Create a game.", create, Created, CreateGame, 201, refuses=(503,)),
    Endpoint("GET", "/api/games/{id}", "game", "A game's state.", state, State, needs_token=True),
    Endpoint("GET", "/api/games/{id}/record", "record", "A game's record in GGF.", record, None, needs_token=True),
    Endpoint(
        *("POST", "/api/games/{id}/moves", "move", "Make a move.", move, State, MoveRequest),
        needs_token=True,
        refuses=(409, 503),
    ),
    Endpoint(
        *("POST", "/api/games/{id}/undo", "undo", "Take back, or ask the other side to agree to it.", undo, State),
        needs_token=True,
        refuses=(409, 503),
    ),
    Endpoint(
        *("POST", "/api/games/{id}/resign", "resign", "Give the game up.", resign, State),
        needs_token=True,
        refuses=(409, 503),
    ),
    Endpoint(
        *("POST", "/api/analyse", "analyse", "Search a position.", analyse, Analysis, AnalyseRequest), refuses=(503,)
    ),
    Endpoint(
        *("POST", "/api/transcripts", "transcript", "Read a game record.", transcript, Transcript, TranscriptRequest)
    ),
)


async def respond(endpoint: Endpoint, hall: Hall, request: Request) -> Response:
    """Check the request, do the work, and answer."""
    if not same_origin(request.headers):
        raise Refused(403, "other_origin", "requests from pages of other servers are not answered")
    body = None
    if endpoint.method == "POST":
        raw = await _body(request, hall, endpoint)
        body = read_body(endpoint.takes, raw) if endpoint.takes else None
    answer = await endpoint.work(hall, request, body)
    if isinstance(answer, str):
        return PlainTextResponse(answer, endpoint.status)
    return JsonResponse(answer if isinstance(answer, bytes) else encode(answer), endpoint.status)


def client_of(request: Request) -> str:
    """The address that limits are counted by."""
    return request.client.host if request.client else ""


async def _body(request: Request, hall: Hall, endpoint: Endpoint) -> bytes:
    """The request's body; refused when it is too large or too slow."""
    options = hall.options
    largest = options.largest_transcript if endpoint.takes is TranscriptRequest else options.largest_body
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared[:18]) > largest:
        raise Refused(413, "too_large", f"the body has {declared[:18]} bytes: expected at most {largest}")
    parts, length = [], 0
    try:
        async with asyncio.timeout(options.patience):
            async for part in request.stream():
                length += len(part)
                if length > largest:
                    raise Refused(413, "too_large", f"the body is too large: expected at most {largest} bytes")
                parts.append(part)
    except TimeoutError:
        raise Refused(408, "too_slow", "the body did not arrive in time") from None
    except ClientDisconnect:
        raise Refused(400, "gone", "the client is gone") from None
    return b"".join(parts)


async def _opened(hall: Hall, request: Request) -> tuple[Room, Any]:
    """The room of the path's game, and the role that the request's token opens."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 8 <= len(token) <= 128:
        raise Refused(401, "no_token", "expected a header 'Authorization: Bearer TOKEN'")
    room = await hall.room(request.path_params["id"])
    return room, room.role(token)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
