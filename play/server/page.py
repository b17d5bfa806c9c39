"""The web page's files, read once: nothing else of the disk can be asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).resolve().parent.parent / "web"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


def routes() -> list[Route]:
    """A route for every file, and ``/`` for ``index.html``."""
    files = {path.name: _served(path) for path in sorted(FOLDER.iterdir()) if path.suffix in _KINDS}
    return [Route("/", files["index.html"]), *(Route(f"/{name}", serve) for name, serve in files.items())]


def _served(path: Path) -> Callable[[Request], Awaitable[Response]]:
    content = path.read_bytes()
    headers = {"etag": f'"{sha256(content).hexdigest()[:32]}"', "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        """The file, or 304 if the browser has it already."""
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_KINDS[path.suffix], headers=headers)

    return serve
