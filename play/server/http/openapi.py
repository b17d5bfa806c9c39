"""``/openapi.json``: the description of the HTTP interface, from the table of endpoints and the message classes."""

from http import HTTPStatus
from typing import Any, get_args

import msgspec

from play.server import messages
from play.server.http.endpoints import ENDPOINTS, Endpoint
from reversi_env import __version__

#: The parameter in the path of a game or a review.
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
#: Messages of the WebSocket. OpenAPI cannot describe their exchange, which docs/reference/server.md does.
_MESSAGES = (*get_args(messages.Incoming), messages.Joined, messages.State, messages.Pong, messages.Problem)


def document() -> dict[str, Any]:
    kinds = [kind for e in ENDPOINTS for kind in (e.takes, e.answers) if kind is not None]
    _, schemas = msgspec.json.schema_components([*kinds, *_MESSAGES], ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    paths["/api/games/{id}/socket"] = {"get": _socket()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reversi Lab game server",
            "version": __version__,
            "description": "Games of Reversi and Reversed Reversi between people and agents.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "A seat's token."}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    content = {"text/plain": {"schema": {"type": "string"}}} if endpoint.answers is None else _json(endpoint.answers)
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [_ID] if "{id}" in endpoint.path else [],
        "responses": {
            str(status): {
                "description": HTTPStatus(status).phrase,
                "content": content if status == endpoint.status else _json(messages.Problem),
            }
            for status in (endpoint.status, *sorted(endpoint.refuses))
        },
    }
    if endpoint.takes is not None:
        operation["requestBody"] = {"required": True, "content": _json(endpoint.takes)}
    if endpoint.needs_token:
        operation["security"] = [{"token": []}]
    return operation


def _socket() -> dict[str, Any]:
    return {
        "operationId": "socket",
        "summary": "Follow and play a game over a WebSocket; the messages are described in docs/reference/server.md.",
        "parameters": [_ID],
        "responses": {
            "101": {"description": "The connection is a WebSocket now; the first message is a Join."},
            "403": {"description": "A page of another server, or too many connections."},
        },
    }


def _json(kind: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
