"""The application: routes, the web page, headers for browsers, and errors as JSON."""

import asyncio
import gzip
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send

from play.server.addresses import client_of
from play.server.games.hall import Hall
from play.server.http import openapi
from play.server.http.endpoints import ENDPOINTS, json_response, respond
from play.server.http.sockets import serve_connection
from play.server.messages import Problem, Refused, encode
from play.server.options import ServerOptions

#: Only files of this server run on its page; nothing inline, nothing from elsewhere, and no frames.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Headers of every response that does not set them.
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
#: Interval between two measurements of the event loop's lag, in seconds, and the number of measurements that are kept.
LAG_INTERVAL, MAX_LAGS = 0.02, 3_000
#: Number of measurements after which the quantiles are updated, so that requests only read them.
MEASURED_TOGETHER = 50
#: Headers of refusals. A client that is too slow or sends too much must open a new connection.
RETRY, CLOSE = {"retry-after": "5"}, {"connection": "close"}
REFUSAL_HEADERS = {408: CLOSE, 413: CLOSE, 429: RETRY | CLOSE, 503: RETRY}
_TOO_MANY = Problem("too_many_requests", "too many requests from this address; try again later", 429)
TOO_MANY_REQUESTS = json_response(encode(_TOO_MANY), 429, REFUSAL_HEADERS[429])
#: Files below a path with their hash never change.
IMMUTABLE = "public, max-age=31536000, immutable"
#: The folder of the web page; its files are read once, and no others are served.
PAGE = Path(__file__).resolve().parents[2] / "web"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


class Lag:
    """The lag of the event loop: by how much short sleeps were too long, in milliseconds."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=MAX_LAGS)
        #: Median, 99th percentile and maximum, at most `MEASURED_TOGETHER` measurements old.
        self.quantiles = (0.0, 0.0, 0.0)

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        for number in count():
            began = loop.time()
            await asyncio.sleep(LAG_INTERVAL)
            self._lags.append(round(max(0.0, 1000 * (loop.time() - began - LAG_INTERVAL)), 2))
            if number % MEASURED_TOGETHER == 0:
                lags = sorted(self._lags)
                self.quantiles = (lags[len(lags) // 2], lags[99 * len(lags) // 100], lags[-1])


class Application(Starlette):
    """An application that adds the headers to every response, including refused hosts and internal errors.

    Requests and handshakes beyond an address's rate are first delayed, then refused.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "lifespan":
            hall: Hall = self.state.hall
            wait = hall.requests.reserve(client_of(HTTPConnection(scope)), max_wait=hall.options.max_delay)
            if wait != 0:
                await asyncio.sleep(hall.options.max_delay if wait is None else wait)
            if wait is None:
                await TOO_MANY_REQUESTS(scope, receive, with_headers)
                return
        await super().__call__(scope, receive, with_headers)


def make_app(options: ServerOptions) -> Starlette:
    """Return the application of one server; its hall is ``app.state.hall``."""
    hall = Hall(options)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await hall.open()
        watching = asyncio.create_task(app.state.lag.watch())
        try:
            yield
        finally:
            watching.cancel()
            await hall.close()

    description = json_response(encode(openapi.document()))

    async def describe(request: Request) -> Response:
        return description

    routes = [
        *(Route(endpoint.path, partial(respond, endpoint, hall), methods=[endpoint.method]) for endpoint in ENDPOINTS),
        WebSocketRoute("/api/games/{id}/socket", partial(serve_connection, hall)),
        Route("/openapi.json", describe),
        *_page(),
    ]
    app = Application(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(options.hosts()))],
        exception_handlers={Refused: _refusal, HTTPException: _http_problem, 404: _not_found},
    )
    app.router.redirect_slashes = False
    app.state.hall, app.state.lag = hall, Lag()
    return app


async def _refusal(request: Request, refused: Any) -> Response:
    return json_response(encode(refused.problem()), refused.status, REFUSAL_HEADERS.get(refused.status))


async def _http_problem(request: Request, error: Any) -> Response:
    """Return the refusal of an unknown path or method, which starlette raises."""
    return json_response(encode(Problem("http", error.detail, error.status_code)), error.status_code, error.headers)


async def _not_found(request: Request, error: Any) -> Response:
    """Return the web page, which shows the error, if a browser requests a page; otherwise the error as JSON."""
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return await _http_problem(request, error)
    return await _served(_index(), ".html", status=404)(request)


def _page() -> list[Route]:
    """Return the routes of every file, with and without the hash of all files before it, and of ``index.html``."""
    files = _files()
    routes = [Route(path, _served(_index(), ".html")) for path in ("/", "/review/{id}")]
    for folder, caching in ((f"/{_version()}", IMMUTABLE), ("", "no-cache")):
        for name, content in files.items():
            routes.append(Route(f"{folder}/{name}", _served(content, Path(name).suffix, caching)))
    return routes


@cache
def _files() -> dict[str, bytes]:
    paths = sorted(path for path in PAGE.rglob("*") if path.suffix in _KINDS)
    return {path.relative_to(PAGE).as_posix(): path.read_bytes() for path in paths}


@cache
def _version() -> str:
    return sha256(repr(_files()).encode()).hexdigest()[:12]


@cache
def _index() -> bytes:
    """Return ``index.html`` with the hash in the paths of the files that it loads."""
    return re.sub(rb'(?<=(?:src|ref)=")(?=/\w)', f"/{_version()}".encode(), _files()["index.html"])


@cache
def _served(
    content: bytes, suffix: str, caching: str = "no-cache", status: int = 200
) -> Callable[[Request], Awaitable[Response]]:
    packed, digest = gzip.compress(content, mtime=0), sha256(content).hexdigest()[:32]

    async def serve(request: Request) -> Response:
        is_packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"etag": f'"{digest}{"-gzip" * is_packed}"', "cache-control": caching, "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        encoding = {"content-encoding": "gzip"} if is_packed else {}
        return Response(packed if is_packed else content, status, headers | encoding, _KINDS[suffix])

    return serve
