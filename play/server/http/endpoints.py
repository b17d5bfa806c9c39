"""The HTTP interface: functions that declare what they take and give. From them come routes, checks and ``/openapi.json``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_type_hints

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from play.server import catalogue
from play.server.addresses import client_of, url_for_others
from play.server.games.hall import Hall
from play.server.games.room import Room
from play.server.http.sockets import same_origin
from play.server.messages import (
    Agents,
    AnalyseRequest,
    Analysis,
    Created,
    CreateGame,
    Health,
    MoveRequest,
    Opening,
    OpeningRequest,
    PuzzleRequest,
    Puzzles,
    Refused,
    Review,
    Role,
    Shared,
    State,
    Transcript,
    TranscriptRequest,
    encode,
    read,
)
from reversi_env import __version__

Work = Callable[..., Awaitable[Any]]
Answer = TypeVar("Answer")
#: An answer of bytes that are JSON.
json_response = partial(Response, media_type="application/json")


@dataclass(frozen=True)
class Endpoint:
    """One operation: its place, the function that does it, and what that declares.

    *takes* and *answers* are classes of `play.server.messages`, or None for no body and for plain text; with *needs_token* the
    function is given the room and the role that the token opens. *refuses*: the statuses that it may refuse with.
    """

    method: str
    path: str
    name: str
    summary: str
    work: Work
    takes: type | None
    answers: type | None
    status: int
    needs_token: bool
    refuses: tuple[int, ...]


#: Everything that can be asked for over HTTP.
ENDPOINTS: list[Endpoint] = []


def endpoint(method: str, path: str, name: str, *refuses: int, status: int = 200) -> Callable[[Work], Work]:
    """Declare a function as the operation *name*; it may refuse with *refuses* beyond what all of its kind may."""

    def declare(work: Work) -> Work:
        hints = get_type_hints(work)
        answers, needs_token = hints.pop("return"), "room" in hints
        usual = [400, 403, 429, *([408, 413] if method == "POST" else []), *([401, 404] if needs_token else [])]
        kinds = hints.get("body"), {str: None, bytes: State}.get(answers, answers)  # bytes: a state that is written
        about = method, path, name, work.__doc__ or "", work
        ENDPOINTS.append(Endpoint(*about, *kinds, status, needs_token, (*usual, *refuses)))
        return work

    return declare


@endpoint("GET", "/api/health", "health")
async def health(hall: Hall, request: Request) -> Health:
    """How the server is."""
    lag = request.app.state.lag
    lags = lag.quantile(0.5), lag.quantile(0.99), lag.quantile(1.0)
    connections, pool = hall.connections.total(), hall.pool
    return Health("ok", __version__, len(hall.rooms), connections, pool.waiting, pool.searches, *lags)


@endpoint("GET", "/api/agents", "agents")
async def agents(hall: Hall, request: Request) -> Agents:
    """The agents on offer, the server's limits, and its address."""
    options, (_, port) = hall.options, request.scope["server"]
    # behind a proxy the address is one that nobody outside needs to know, nor could reach
    address = None if options.proxies else url_for_others(options.host, port)
    return Agents(catalogue.entries(), options.longest_think, options.deepest, address)


@endpoint("POST", "/api/games", "createGame", 503, status=201)
async def create(hall: Hall, request: Request, body: CreateGame) -> Created:
    """Create a game."""
    return await hall.create(body, client_of(request))


@endpoint("GET", "/api/games/{id}", "game", 503)
async def state(room: Room, role: Role) -> State:
    """A game's state."""
    return await room.when_stored(room.state())


@endpoint("GET", "/api/games/{id}/record", "record", 503)
async def record(room: Room, role: Role) -> str:
    """A game's record in GGF."""
    return await room.when_stored(room.game.to_ggf() + "\n")


@endpoint("POST", "/api/games/{id}/moves", "move", 409, 503)
async def move(room: Room, role: Role, body: MoveRequest) -> bytes:
    """Make a move."""
    return await room.move(role, body.move, body.ply)


@endpoint("POST", "/api/games/{id}/undo", "undo", 409, 503)
async def undo(room: Room, role: Role) -> bytes:
    """Take back, or ask the other side to agree to it."""
    return await room.undo(role)


@endpoint("POST", "/api/games/{id}/resign", "resign", 409, 503)
async def resign(room: Room, role: Role) -> bytes:
    """Give the game up."""
    return await room.resign(role)


@endpoint("POST", "/api/analyse", "analyse", 503)
async def analyse(hall: Hall, request: Request, body: AnalyseRequest) -> Analysis:
    """Search a position."""
    return await _while_there(request, hall.analyse(body, client_of(request)))


@endpoint("POST", "/api/openings", "opening")
async def opening(hall: Hall, request: Request, body: OpeningRequest) -> Opening:
    """Name an opening, and look its moves up in the book and in recorded games."""
    return await hall.opening(body, client_of(request))


@endpoint("POST", "/api/puzzles", "puzzles")
async def puzzles(hall: Hall, request: Request, body: PuzzleRequest) -> Puzzles:
    """Positions with one best move."""
    return await hall.puzzles(body, client_of(request))


@endpoint("POST", "/api/transcripts", "transcript", 503)
async def transcript(hall: Hall, request: Request, body: TranscriptRequest) -> Transcript:
    """Read games or positions."""
    return await _while_there(request, hall.read(body, client_of(request)))


@endpoint("POST", "/api/reviews", "share", 503, status=201)
async def share(hall: Hall, request: Request, body: Review) -> Shared:
    """Keep a review under a name that nobody guesses."""
    return await hall.share(body, client_of(request))


@endpoint("GET", "/api/reviews/{id}", "review", 404, 503)
async def review(hall: Hall, request: Request) -> Review:
    """A review that was shared."""
    return await hall.review(request.path_params["id"])


async def respond(endpoint: Endpoint, hall: Hall, request: Request) -> Response:
    """Check the request, do the work, and answer."""
    if not same_origin(request.headers):
        raise Refused(403, "other_origin", "requests from pages of other servers are not answered")
    body = []
    if endpoint.method == "POST":
        raw = await _body(request, hall, endpoint)
        body = [read(endpoint.takes, raw)] if endpoint.takes else []
    given = await _opened(hall, request) if endpoint.needs_token else (hall, request)
    answer = await endpoint.work(*given, *body)
    if isinstance(answer, str):
        return PlainTextResponse(answer, endpoint.status)
    return json_response(answer if isinstance(answer, bytes) else encode(answer), endpoint.status)


async def _body(request: Request, hall: Hall, endpoint: Endpoint) -> bytes:
    """The request's body; refused when it is too large or too slow."""
    options = hall.options
    sizes: dict[type | None, int] = {TranscriptRequest: options.largest_transcript, Review: options.largest_review}
    largest = sizes.get(endpoint.takes, options.largest_body)
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


async def _opened(hall: Hall, request: Request) -> tuple[Room, Role]:
    """The room of the path's game, and the role that the request's token opens."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 8 <= len(token) <= 128:
        raise Refused(401, "no_token", "expected a header 'Authorization: Bearer TOKEN', 8 to 128 characters")
    room = await hall.room(request.path_params["id"])
    return room, room.role(token)


async def _while_there(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """What *work* gives; it is dropped when the client leaves."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not task.done():
        task.cancel()
        raise Refused(499, "gone", "the client is gone")
    return task.result()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
