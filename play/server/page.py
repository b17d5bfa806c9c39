"""The web page's files, read once: nothing else of the disk can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).resolve().parent.parent / "web"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


@dataclass(frozen=True)
class _File:
    content: bytes
    kind: str
    tag: str


class Page:
    """The files by their names; ``/`` is ``index.html``."""

    def __init__(self) -> None:
        paths = [path for path in sorted(FOLDER.iterdir()) if path.suffix in _KINDS]
        self._files = {path.name: _read(path) for path in paths}

    async def serve(self, request: Request) -> Response:
        """A file, or 304 if the browser has it already."""
        file = self._files.get(request.path_params.get("name") or "index.html")
        if file is None:
            raise HTTPException(404)
        headers = {"etag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.kind, headers=headers)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    return _File(content, _KINDS[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')
