"""A server in this process with its searches in a thread, and clients that check it against its OpenAPI description."""

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn
from websockets.sync.client import connect

from play.server.games.clock import ServerTime
from play.server.http import openapi
from play.server.http.process import configuration, listen, url_of
from play.server.options import ServerOptions

WAIT_SECONDS = 300.0
API_PATHS = openapi.document()["paths"]


def eventually(condition: Callable[[], object], what: str = "the condition") -> object:
    """Wait until *condition* is true; return its value."""
    ends = time.monotonic() + WAIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < ends, f"{what} did not happen in time"
        time.sleep(0.01)
    return found


def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def stop(api: "Api", database: Path) -> None:
    """Stop a server and wait until its games are in the database file."""
    api.server.should_exit = True
    eventually(lambda: not database.with_name(database.name + "-wal").exists(), "the end of the server")


def assert_described(response: httpx.Response) -> None:
    """Check that the API description has the status, unless the framework refused the path or method."""
    path, method = response.request.url.path, response.request.method.lower()
    for template, operations in API_PATHS.items():
        if method in operations and re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path):
            assert str(response.status_code) in operations[method]["responses"], (method, path, response.text)


class Api:
    """A client of one server."""

    def __init__(self, url: str, server: uvicorn.Server | None = None) -> None:
        self.url, self.server = url, server
        self.hall = server and server.config.app.state.hall
        self.http = httpx.Client(base_url=url, timeout=WAIT_SECONDS, verify=False)  # avoids loading certificates

    def call(self, method, path, token=None, **arguments):
        headers = arguments.pop("headers", {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        response = self.http.request(method, path, headers=headers, **arguments)
        assert_described(response)
        return response

    def create(self, **request):
        response = self.call("POST", "/api/games", json=request)
        assert response.status_code == 201, response.text
        return response.json()

    def state(self, created, token=None):
        return self.call("GET", f"/api/games/{created['game']}", token or created["tokens"]["spectator"]).json()

    def move(self, created, colour, move, ply):
        body = {"move": move, "ply": ply}
        return self.call("POST", f"/api/games/{created['game']}/moves", created["tokens"][colour], json=body)

    def act(self, created, role, action):
        """Take a move back or resign."""
        return self.call("POST", f"/api/games/{created['game']}/{action}", created["tokens"][role])

    @contextmanager
    def socket(self, game, token=None, **options):
        with connect(f"{self.url.replace('http', 'ws')}/api/games/{game}/socket", compression=None, **options) as raw:
            yield Socket(raw, token)


class Socket:
    """A game's socket; with a token it joins at once."""

    def __init__(self, raw, token):
        self.raw = raw
        if token:
            self.send(type="join", token=token)
            self.role = self.expect("joined")["role"]

    def send(self, **message):
        self.raw.send(json.dumps(message))

    def receive(self):
        return json.loads(self.raw.recv(timeout=WAIT_SECONDS))

    def expect(self, kind):
        """Return the next message, which must be of this type."""
        message = self.receive()
        assert message["type"] == kind, message
        return message

    def until(self, condition):
        """Return the first state that meets *condition*."""
        while True:
            message = self.receive()
            assert message["type"] == "state", message
            if condition(message):
                return message


@contextmanager
def running(options: ServerOptions, monotonic: Callable[[], float] = time.monotonic):
    """Run a server in a thread of this process; *monotonic* is the time of its games."""
    listener = listen(options)
    server = uvicorn.Server(configuration(replace(options, port=listener.getsockname()[1])))
    server.config.app.state.hall.time = ServerTime(monotonic)
    logging.getLogger("uvicorn").propagate = True  # so that `clean_log` sees its errors
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    eventually(lambda: server.started or not thread.is_alive(), "the start")
    assert server.started
    api = Api(url_of(listener), server)
    try:
        yield api
    finally:
        api.http.close()
        server.should_exit = True
        thread.join(WAIT_SECONDS)
        listener.close()
        assert not thread.is_alive()


#: No limits of requests and messages per address, because all tests share one address.
UNLIMITED = {"request_burst": 10**9, "client_message_burst": 10**9}
OPTIONS = ServerOptions(
    port=0, workers=0, database=":memory:", watch_pace=0.0, clock_grace=0.1, request_timeout=WAIT_SECONDS, **UNLIMITED
)


@pytest.fixture(scope="session")
def api():
    """One server for all tests with default options."""
    with running(OPTIONS) as api:
        yield api


@pytest.fixture
def new_server():
    """Start a server with other options or another *monotonic*; it ends with the test."""
    with ExitStack() as stack:

        def start(monotonic=time.monotonic, **changes):
            database = str(changes.pop("database", OPTIONS.database))
            return stack.enter_context(running(replace(OPTIONS, database=database, **changes), monotonic))

        yield start


@pytest.fixture
def clean_log(caplog):
    """Fails a test that leaves an error in the log, where uvicorn writes tracebacks."""
    yield
    errors = [record for when in ("setup", "call") for record in caplog.get_records(when)]
    assert not [record for record in errors if record.levelno >= logging.ERROR], caplog.text
