"""The HTTP interface: functions whose annotations define routes, checks and ``/openapi.json``."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_type_hints

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from play.server import catalogue, messages
from play.server.addresses import client_of, url_for_others
from play.server.games.hall import Hall
from play.server.games.room import Room
from play.server.http.sockets import same_origin
from play.server.messages import Refused, Role, encode, read
from reversi_env import __version__

Work = Callable[..., Awaitable[Any]]
Answer = TypeVar("Answer")
#: Returns a response of encoded JSON.
json_response = partial(Response, media_type="application/json")


@dataclass(frozen=True)
class Endpoint:
    """One operation of the interface.

    *takes* and *answers* are classes of `play.server.messages`, or None for no body and for plain text. With *needs_token* the
    function gets the room and the token's role. *refuses* are the statuses of its refusals.
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


#: All operations.
ENDPOINTS: list[Endpoint] = []


def endpoint(method: str, path: str, name: str, *refuses: int, status: int = 200) -> Callable[[Work], Work]:
    """Declare a function as the operation *name*; *refuses* are error statuses beyond those of all operations of its kind."""

    def declare(work: Work) -> Work:
        hints = get_type_hints(work)
        answers, needs_token = hints.pop("return"), "room" in hints
        usual = [400, 403, 429, *([408, 413] if method == "POST" else []), *([401, 404] if needs_token else [])]
        kinds = hints.get("body"), {str: None, bytes: messages.State}.get(answers, answers)  # bytes: an encoded state
        about = method, path, name, work.__doc__ or "", work
        ENDPOINTS.append(Endpoint(*about, *kinds, status, needs_token, (*usual, *refuses)))
        return work

    return declare


@endpoint("GET", "/api/health", "health")
async def health(hall: Hall, request: Request) -> messages.Health:
    connections, pool, lags = hall.connections.total(), hall.pool, request.app.state.lag.quantiles
    return messages.Health("ok", __version__, len(hall.rooms), connections, pool.waiting, pool.searches, *lags)


@endpoint("GET", "/api/agents", "agents")
async def agents(hall: Hall, request: Request) -> messages.Agents:
    """The agents on offer, the server's limits, and its address."""
    options, (_, port) = hall.options, request.scope["server"]
    # Other machines cannot reach this address behind a proxy.
    address = None if options.proxies else url_for_others(options.host, port)
    entries = catalogue.entries()
    for entry in entries:
        missing = hall.missing if hall.started.is_set() else {f"{entry.name}:{size}" for size in entry.sizes}
        entry.ready = [size for size in entry.sizes if f"{entry.name}:{size}" not in missing]
    return messages.Agents(entries, options.max_think_time, options.max_depth, address, hall.compiled)


@endpoint("POST", "/api/games", "createGame", 503, status=201)
async def create(hall: Hall, request: Request, body: messages.CreateGame) -> messages.Created:
    return await hall.create(body, client_of(request))


@endpoint("GET", "/api/games/{id}", "game", 503)
async def state(room: Room, role: Role) -> messages.State:
    return await room.when_stored(room.state())


@endpoint("GET", "/api/games/{id}/record", "record", 503)
async def record(room: Room, role: Role) -> str:
    """A game's record in GGF."""
    return await room.when_stored(room.game.to_ggf() + "\n")


@endpoint("POST", "/api/games/{id}/moves", "move", 409, 503)
async def move(room: Room, role: Role, body: messages.MoveRequest) -> bytes:
    return await room.move(role, body.move, body.ply)


@endpoint("POST", "/api/games/{id}/undo", "undo", 409, 503)
async def undo(room: Room, role: Role) -> bytes:
    """Take back, or ask the other side to agree to it."""
    return await room.undo(role)


@endpoint("POST", "/api/games/{id}/resign", "resign", 409, 503)
async def resign(room: Room, role: Role) -> bytes:
    return await room.resign(role)


@endpoint("POST", "/api/games/{id}/rematch", "rematch", 409, 503)
async def rematch(room: Room, role: Role) -> bytes:
    """Begin the next game of the same players, with colours exchanged; the state has its name."""
    return await room.rematch(role)


@endpoint("POST", "/api/analyse", "analyse", 503)
async def analyse(hall: Hall, request: Request, body: messages.AnalyseRequest) -> messages.Analysis:
    return await _while_there(request, hall.analyse(body, client_of(request)))


@endpoint("POST", "/api/openings", "opening")
async def opening(hall: Hall, request: Request, body: messages.OpeningRequest) -> messages.Opening:
    """Name an opening, and look up its next moves in the book and in recorded games."""
    return await hall.opening(body, client_of(request))


@endpoint("POST", "/api/puzzles", "puzzles")
async def puzzles(hall: Hall, request: Request, body: messages.PuzzleRequest) -> messages.Puzzles:
    """Positions with one best move."""
    return await hall.puzzles(body, client_of(request))


@endpoint("POST", "/api/transcripts", "transcript", 503)
async def transcript(hall: Hall, request: Request, body: messages.TranscriptRequest) -> messages.Transcript:
    """Read games or positions."""
    return await _while_there(request, hall.read(body, client_of(request)))


@endpoint("POST", "/api/reviews", "share", 503, status=201)
async def share(hall: Hall, request: Request, body: messages.Review) -> messages.Shared:
    """Store a review under a secret name."""
    return await hall.share(body, client_of(request))


@endpoint("GET", "/api/reviews/{id}", "review", 404, 503)
async def review(hall: Hall, request: Request) -> messages.Review:
    content: Any = await hall.review(request.path_params["id"])  # already encoded
    return content


async def respond(endpoint: Endpoint, hall: Hall, request: Request) -> Response:
    """Check and execute a request; return the response."""
    if not same_origin(request.headers):
        raise Refused(403, "other_origin", "requests from pages of other servers are not answered")
    if endpoint.method != "POST":
        return await _answer(endpoint, hall, request)
    options = hall.options
    limits = {messages.TranscriptRequest: options.max_transcript_bytes, messages.Review: options.max_review_bytes}
    largest = limits.get(endpoint.takes, options.max_body_bytes)  # type: ignore[call-overload]
    declared = request.headers.get("content-length", "0")[:18]
    if declared.isdigit() and int(declared) > largest:
        raise Refused(413, "too_large", f"the body has {declared} bytes: expected at most {largest}")
    is_declared = declared.isdigit() and "transfer-encoding" not in request.headers
    with hall.uploading(client_of(request), int(declared) if is_declared else largest):
        raw = await _body(request, largest, options.request_timeout)
        return await _answer(endpoint, hall, request, *([read(endpoint.takes, raw)] if endpoint.takes else []))


async def _answer(endpoint: Endpoint, hall: Hall, request: Request, *body: Any) -> Response:
    if not endpoint.needs_token and endpoint.name not in ("health", "agents"):
        await hall.started.wait()
    context = await _opened(hall, request) if endpoint.needs_token else (hall, request)
    answer = await endpoint.work(*context, *body)
    if isinstance(answer, str):
        return PlainTextResponse(answer, endpoint.status)
    return json_response(answer if isinstance(answer, bytes) else encode(answer), endpoint.status)


async def _body(request: Request, largest: int, timeout: float) -> bytes:
    parts, length = [], 0
    try:
        async with asyncio.timeout(timeout):
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
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 8 <= len(token) <= 128:
        raise Refused(401, "no_token", "expected a header 'Authorization: Bearer TOKEN', 8 to 128 characters")
    await hall.started.wait()
    room = await hall.room(request.path_params["id"])
    return room, room.role(token)


async def _while_there(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of *work*, which is cancelled when the client disconnects."""
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
