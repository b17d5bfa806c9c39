"""Refusals of the server: agents that run programs or read files, requests of other sites, bad input, floods."""

import asyncio
import json
import re
import socket as sockets
from base64 import b64encode
from contextlib import ExitStack, suppress
from dataclasses import replace

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from play.server import catalogue
from play.server.games.hall import MAX_REVIEW_DEPTH
from play.server.http import app as application
from play.server.http import process
from play.server.http.app import PAGE
from play.server.options import ServerOptions
from reversi_env import Position

from .conftest import eventually, refusal
from .fuzz import ODD_NAMES, ODD_PATHS, UPGRADE

SPECS = (
    "gtp:/bin/sh -c id|gtp|nboard:edax|network:weights=/etc/passwd|network:weights=x|network:book=/etc/passwd|exact:exact=60|"
    "six-factor:threads=64|six-factor:table=100000|six-factor:depth=60|six-factor:time=100|greedy-invincible:exact=64|"
    "zero:depth=2|zero:weights=x|zero:time=100|six-factor:depth=x|six-factor:depth|six-factor:depth=2,depth=3|../../etc/passwd||network\x00"
)


@pytest.mark.parametrize("spec", SPECS.split("|"))
def test_unsafe_agent_specs_are_refused(api, spec):
    response = api.call("POST", "/api/games", json={"white": {"kind": "agent", "agent": spec}})
    assert response.status_code == 400, response.text
    assert response.json()["code"] in ("unknown_agent", "bad_agent")


def test_all_offered_agents_can_be_used(api):
    for agent in api.call("GET", "/api/agents").json()["agents"]:
        options = ":depth=1" if agent["searches"] else ""
        for size in agent["sizes"]:
            api.create(size=size, white={"kind": "agent", "agent": agent["name"] + options})
    refused = api.call("POST", "/api/games", json={"size": 4, "white": {"kind": "agent", "agent": "network"}})
    assert refused.status_code == 400
    assert "no network for 4x4" in refused.json()["message"]


REVIEW = {
    "board": "-----OX--XO-----",
    "turn": "black",
    "comment": "the start",
    "moves": [{"move": "b1", "variations": [[{"move": "a2", "comment": "or this"}]]}, {"move": "a1"}],
}


def review(**changes):
    return json.dumps(REVIEW | changes).encode()


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        *(("games", b"", ""), ("games", b"[]", "object"), ("games", b"\xff\xfe", "")),
        ("games", b'{"size": 5}', "$.size"),
        ("games", b'{"size": 5}', "size (4, 6, 8), variant (normal, reversed), start"),
        *(("games", b'{"colour": "black"}', "`colour`"), ("games", b'{"clock": {"seconds": 0}}', "$.clock.seconds")),
        ("games", b'{"clock": {"seconds": NaN}}', ""),
        ("games", b'{"black": {"name": "' + b"x" * 50 + b'"}}', "$.black.name"),
        ("games", ('{"black": {"name": "' + "\U0001f600" * 31 + '"}}').encode(), "120 bytes"),
        ("games", b'{"black": {"agent": "greedy"}}', "agent"),
        ("games", b'{"black": {"kind": "agent"}}', "agent"),
        *(("games", b'{"black":' * 2000, ""), ("puzzles", b'{"rating": -1}', "rating")),
        ("reviews", review(board="-" * 17), "17 squares"),
        ("reviews", review(moves=[{"move": "z9"}]), "$.moves[0].move"),
        ("reviews", review(moves=[{"move": "a1", "comment": "x" * 1001}]), "$.moves[0].comment"),
        ("reviews", review(moves=[{"move": "a1", "variations": [[{"move": "b1", "html": ""}]]}]), "`html`"),
        ("reviews", review(moves=[{"move": "a1"}] * 6000), "65536"),
        ("reviews", review().partition(b"[")[0] + b'[{"move": "a1", "variations": [' * 1000, ""),
        ("transcripts", b'{"text": "f5 a1"}', "move 2"),
        ("transcripts", b'{"text": "-----OX--XO----- X; h8:+3"}', "h8"),
        ("transcripts", b'{"text": "(;GM[Othello]B[a1];)"}', "GGF game 1"),
        ("transcripts", b'{"file": "?"}', "base64"),
        ("transcripts", b'{"file": "' + b64encode(bytes(700_001)) + b'"}', "700000"),
    ],
)
def test_invalid_bodies_are_refused_with_the_reason(api, path, body, reason):
    response = api.call("POST", f"/api/{path}", content=body)
    assert response.status_code in (400, 413), response.text
    assert reason in response.json()["message"]


def test_large_bodies_are_refused(api):
    for content in (b"x" * 100_000, (b"x" * 1000 for _ in range(100))):  # with a length, and chunked without one
        assert api.call("POST", "/api/games", content=content).status_code == 413


def test_sockets_must_join_and_errors_carry_the_message_id(api):
    created, other = api.create(size=4), api.create(size=4)
    for game, code, message in (
        (created["game"], "wrong_token", {"type": "join", "token": other["tokens"]["black"]}),
        (created["game"], "wrong_token", {"type": "join", "token": "x" * 32}),
        (created["game"], "bad_message", {"type": "join", "token": "short"}),
        (created["game"], "join_first", {"type": "move", "move": "b1", "ply": 0}),
        ("nothere", "no_game", {"type": "join", "token": "x" * 32}),
    ):
        with api.socket(game) as socket:
            socket.send(id="J", **message)
            problem = socket.expect("error")
            assert (problem["code"], problem["id"]) == (code, "J")
    with api.socket(created["game"], created["tokens"]["black"]) as socket:
        socket.expect("state")
        for number, wrong in enumerate(({"move": "b1", "ply": -1}, {"move": "b1"}, {"move": 7, "ply": 0}, {"more": 1})):
            socket.send(type="move", id=f"{number}", **wrong)
            problem = socket.expect("error")
            assert (problem["code"], problem["id"]) == ("bad_message", f"{number}")
        socket.raw.send(json.dumps({"type": "ping", "id": "bytes"}).encode())
        assert socket.expect("pong")["id"] == "bytes"


def connection(api):
    host, port = api.url.removeprefix("http://").split(":")
    return sockets.create_connection((host, int(port)), timeout=300)


def test_incomplete_request_heads_time_out(new_server):
    """A connection that the server closed before our write is reset, which is also correct."""
    api = new_server(request_timeout=0.2)
    host = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    openings = (b"", b"GET / HT", b"GET /" + host, b"POST /api/games" + host)
    with ExitStack() as stack:
        waiting = [stack.enter_context(connection(api)) for _ in openings]
        for raw, opening in zip(waiting, openings, strict=True):
            with suppress(ConnectionError):
                raw.sendall(opening)
        for raw in waiting:
            with suppress(ConnectionError):
                assert raw.recv(1000) == b""


def test_silent_sockets_and_incomplete_bodies_time_out(new_server):
    api = new_server()
    api.hall.options = replace(api.hall.options, request_timeout=0.2)  # request heads may take longer in this test
    with api.socket(api.create(size=4)["game"]) as socket, pytest.raises(ConnectionClosed) as closed:
        socket.receive()
    assert closed.value.rcvd.code == 4408
    eventually(lambda: api.hall.connections.total() == 0)
    assert status_of(api, b"/api/games", b"Host: 127.0.0.1", b"Content-Length: 100", method=b"POST", body=b"{") == 408


HANDSHAKE = tuple(UPGRADE.split(b"\r\n")[:-1])


def head(method, path, *fields):
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", *fields, b"", b""])


def status_of(api, path, *fields, method=b"GET", body=b""):
    """Return the status of the answer to a request with these header fields."""
    with connection(api) as raw:
        raw.sendall(head(method, path, *fields) + body)
        return int(raw.makefile("rb").readline().split()[1])


@pytest.mark.usefixtures("clean_log")
@pytest.mark.parametrize("hosts", [None, ("*",)])
@pytest.mark.parametrize(("path", "upgrade"), [(b"/api/health", ()), (b"/api/games/x/socket", HANDSHAKE)])
def test_invalid_hosts_and_origins_are_refused(new_server, path, upgrade, hosts):
    api, own = new_server(allowed_hosts=hosts), b"Host: 127.0.0.1"
    for name in (*ODD_NAMES, b"null", b"127.0.0.1/", b"//["):
        for origin in (name, b"http://" + name, b"file://" + name):
            assert status_of(api, path, own, b"Origin: " + origin, *upgrade) in (400, 403), origin
    twice = (b"Origin: http://127.0.0.1", b"Origin: http://evil.example")
    assert status_of(api, path, own, *twice, *upgrade) in (400, 403)
    assert status_of(api, path, b"Host: LocalHost", b"Origin: http://localHOST", *upgrade) in (101, 200)
    assert status_of(api, path, own, own, *upgrade) == status_of(api, path, *upgrade) == 400
    if hosts:
        return
    for host in {*ODD_NAMES, b"127.0.0.1\x00"} - {b"[::1]", b"127.0.0.1:99999999"}:
        for origin in (b"X: y", b"Origin: http://" + host):
            assert status_of(api, path, b"Host: " + host, origin, *upgrade) == 400, host


@pytest.mark.usefixtures("clean_log")
@pytest.mark.parametrize("upgrade", [(), HANDSHAKE])
def test_invalid_paths_are_refused(api, upgrade):
    fields = (b"Host: 127.0.0.1", b"Authorization: Bearer " + b"x" * 32, b"Content-Length: 0", *upgrade)
    files = b"/../pyproject.toml /%2e%2e/server/options.py //etc/passwd /__init__.py /app.js /page /page/ /page//app.js"
    files += b" /page/../__init__.py /page/..%2f__init__.py /api/ /api/games/x/moves /api/games/%0d%0aX:y"
    somewhere = {b"/", b"/api/games/%00/socket", b"/api/health?" + b"x" * 9_000}
    for path in {*ODD_PATHS, *files.split(), b"/\xff", b"/\x00", b""} - somewhere:
        for method in (b"GET", b"POST", b"HEAD", b"BREW", b"OPTIONS", b"CONNECT"):
            status = status_of(api, path, *fields, method=method)
            assert status in (400, 403, 404, 405), (path[:40], method, status)


@pytest.mark.usefixtures("clean_log")
@pytest.mark.parametrize("rest", [b"zz\r\n", b"2\r\n{}\r\nzz\r\n", b"1100\r\n" + b"x" * 0x1100 + b"\r\nzz\r\n"])
@pytest.mark.parametrize(
    ("path", "origin", "status"),
    [
        *((b"/api/games", b"X: y", None), (b"/api/games", b"Origin: http://evil.example", b"403")),
        *((b"/api/health", b"X: y", b"405"), (b"/not/here", b"X: y", b"404")),
    ],
)
def test_an_invalid_chunked_body_ends_the_connection(api, path, origin, status, rest):
    """The body is sent with its head, and later, when the request may have been refused with *status*."""
    fields = (b"Host: 127.0.0.1", origin, b"Transfer-Encoding: chunked")
    for method in (b"POST", b"HEAD"):
        assert status_of(api, path, *fields, method=method, body=rest) == 400
    with connection(api) as raw, suppress(ConnectionError):
        raw.sendall(head(b"POST", path, *fields))
        answers = raw.makefile("rb")
        if status:
            assert answers.readline().split()[1] == status
        raw.sendall(rest)
        answers.read()  # until the server closes
    assert api.http.get("/api/health").status_code == 200


def test_message_floods_close_the_socket(new_server):
    api = new_server(message_burst=5, messages_per_second=0.001, max_errors=3)
    created = api.create(size=4)
    for messages, code in ((['{"type": "ping"}'] * 50, 1008), (["nonsense"] * 50, 1008), (["x" * 100_000], 1009)):
        with api.socket(created["game"], created["tokens"]["black"]) as socket:
            with suppress(ConnectionClosed):
                for message in messages:
                    socket.raw.send(message)
            with suppress(ConnectionClosed):
                while True:
                    socket.receive()
            assert socket.raw.close_code == code
    assert api.state(created)["status"] == "running"


@pytest.mark.parametrize(
    ("method", "field", "flood"),
    [
        (b"GET", HANDSHAKE, b"\x89\x80abcd" * 500),
        (b"GET", HANDSHAKE, b"\x8a\x80abcd" * 500),
        (b"POST", (b"Transfer-Encoding: chunked",), b"1\r\n \r\n" * 1_000),
    ],
)
def test_control_frames_and_tiny_chunks_are_limited(api, method, field, flood):
    path = f"/api/games/{api.create()['game']}/socket" if method == b"GET" else "/api/games"
    with connection(api) as raw, suppress(ConnectionError):
        raw.sendall(head(method, path.encode(), b"Host: 127.0.0.1", *field))
        if method == b"GET":
            assert b" 101 " in raw.recv(1000)
        raw.sendall(flood)
        received = raw.makefile("rb").read()  # until the server closes
        assert received.count(b"\x8a\x04") < 50  # answers to pings
        assert not received.startswith(b"HTTP")


@pytest.mark.usefixtures("clean_log")
def test_requests_above_the_rate_are_delayed_then_refused(new_server):
    patient = new_server(request_burst=1, requests_per_second=200.0)
    assert {patient.call("GET", "/api/health").status_code for _ in range(20)} == {200}
    api = new_server(request_burst=4, requests_per_second=0.0, max_delay=0.01, proxies=("127.0.0.1",))
    game = api.create()["game"]
    assert [api.http.get(path).status_code for path in ("/icon.svg", "/nothing", "/icon.svg", "/icon.svg")][2:] == [
        200,
        429,
    ]
    refused = api.call("GET", "/api/health")
    assert (*refusal(refused), refused.headers["connection"]) == (429, "too_many_requests", "close")
    assert refused.headers["x-content-type-options"] == "nosniff"
    with pytest.raises(InvalidStatus) as error, api.socket(game):
        pass
    assert error.value.response.status_code == 429
    assert api.http.get("/icon.svg", headers={"X-Forwarded-For": "192.0.2.9"}).status_code == 200


def test_new_connections_above_the_rate_are_closed(new_server, monkeypatch):
    monkeypatch.setattr(
        process.TimedProtocol, "_exceeds_limits", counted := RecordingMethod(process.TimedProtocol._exceeds_limits)
    )
    api = new_server(client_connections=1, request_burst=3, requests_per_second=0.0)
    for _ in range(4):
        with connection(api) as raw, suppress(ConnectionError):
            raw.sendall(head(b"GET", b"/icon.svg", b"Host: 127.0.0.1", b"Connection: close"))
            raw.makefile("rb").read()
    assert counted.results == [False, False, False, True]


class RecordingMethod:
    """A method that records its results."""

    def __init__(self, method):
        self.method, self.results = method, []

    def __get__(self, instance, owner):
        return lambda: self.results.append(result := self.method(instance)) or result


def test_stalled_uploads_count_towards_the_limits(new_server):
    api = new_server(client_uploads=2_000_000, max_uploads=3_000_000, proxies=("127.0.0.1",))
    upload = (b"POST", b"/api/transcripts", b"Host: 127.0.0.1")
    with ExitStack() as stack:
        for size in (b"Content-Length: 900000", b"Transfer-Encoding: chunked"):
            raw = stack.enter_context(connection(api))
            raw.sendall(head(*upload, size) + b"1\r\n \r\n")
        eventually(lambda: api.hall.uploads.total() == 1_900_000, "both uploads")
        for client, size, code in (
            ("127.0.0.1", 200_000, "too_many_uploads"),
            ("192.0.2.1", 999_000, None),
            ("192.0.2.2", 200_000, "busy"),
        ):
            raw = stack.enter_context(connection(api))
            raw.sendall(head(*upload, b"X-Forwarded-For: " + client.encode(), b"Content-Length: %d" % size))
            if code:
                assert code.encode() in raw.makefile("rb").read()  # until the connection is closed
            else:
                eventually(lambda: len(api.hall.uploads) == 2, "the upload of another")
        assert api.create(size=4)
    eventually(lambda: not api.hall.uploads, "the end of all uploads")


def nested(depth):
    """Return a review with variations of this depth."""
    opening, closing = b'[{"move":"a1","variations":[', b"]}]"
    return review(moves=[]).replace(
        b'"moves": []', b'"moves": ' + opening * depth + b'[{"move":"a1"}]' + closing * depth
    )


@pytest.mark.usefixtures("clean_log")
def test_inputs_of_the_maximum_depth_are_accepted_and_stored(api):
    deepest = api.call("POST", "/api/reviews", content=nested(MAX_REVIEW_DEPTH))
    assert deepest.status_code == 201
    stored = api.call("GET", f"/api/reviews/{deepest.json()['review']}")
    assert (stored.status_code, stored.text.count("variations")) == (200, MAX_REVIEW_DEPTH)
    for depth in (MAX_REVIEW_DEPTH + 1, 320, 350):
        assert api.call("POST", "/api/reviews", content=nested(depth)).status_code == 400
    created = api.create(black={"name": "\u00e9" * 40}, white={"name": "\U0001f600" * 30})
    assert api.state(created)["white"]["name"] == "\U0001f600" * 30
    text = {"text": "(;GM[Othello]" + "(;C[x]" * 9_000 + ";)"}
    posts = {
        "analyse": {"agent": "x" * 40},
        "puzzles": {"rating": 4e3},
        "openings": {"moves": ["a1"] * 128},
        "transcripts": text,
    }
    for path, body in posts.items():
        position = {} if path in ("puzzles", "transcripts") else {"board": "-" * 64, "turn": "black"}
        assert api.call("POST", f"/api/{path}", json=position | body).status_code in (200, 400), path


def test_messages_cost_more_in_games_with_many_connections(new_server, monkeypatch):
    api = new_server()
    created, costs = api.create(size=4), []
    monkeypatch.setattr(api.hall.messages, "reserve", lambda client, cost: costs.append((client, cost)) or 0.01)
    with ExitStack() as stack:
        for _ in range(8):
            socket = stack.enter_context(api.socket(created["game"], created["tokens"]["spectator"]))
        socket.send(type="ping", id="last")
        while socket.receive()["type"] != "pong":
            pass
    assert costs == [("127.0.0.1", 1 + number / 8) for number in range(9)]


def test_a_full_role_refuses_connections_but_not_other_roles(new_server):
    api = new_server(room_connections=1)
    created = api.create(size=4)
    game, tokens = created["game"], created["tokens"]
    with api.socket(game, tokens["spectator"]), api.socket(game, tokens["white"]), api.socket(game) as late:
        late.send(type="join", token=tokens["spectator"])
        assert late.expect("error")["code"] == "room_full"
        with pytest.raises(ConnectionClosed) as closed:
            late.receive()
        with api.socket(game, tokens["black"]) as black:
            assert black.role == "black"
    assert closed.value.rcvd.code == 1013


def test_requests_per_visitor_are_limited(new_server):
    api = new_server(client_analyses=0, game_burst=2, games_per_second=0.0, review_burst=2, reviews_per_second=0.0)
    position = {"board": Position.initial().to_text(), "turn": "black"}
    for path, body, allowed in (
        ("games", {"size": 4}, 2),
        ("reviews", REVIEW, 2),
        ("analyse", position, 0),
        ("openings", position, 0),
        ("puzzles", {}, 0),
        ("transcripts", {"text": "f5"}, 0),
    ):
        *served, refused = [api.call("POST", f"/api/{path}", json=body) for _ in range(allowed + 1)]
        assert [response.status_code for response in served] == [201] * allowed
        assert refused.status_code == 429
        assert refused.headers["retry-after"]


def test_every_answer_has_the_security_headers(monkeypatch):
    """Pages, API answers, refusals by the framework and internal errors, under any ASGI server."""
    monkeypatch.setattr(catalogue, "entries", lambda: [][0])
    app = application.make_app(ServerOptions(database=":memory:", workers=0))
    urls = ["http://localhost" + path for path in ("/", "/openapi.json", "/api/games/x", "/api/nothing", "/api/agents")]

    async def answers():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport) as client:
            return [await client.get(url) for url in [*urls, "http://evil.example/"]]

    responses = asyncio.run(answers())
    assert [answer.status_code for answer in responses] == [200, 200, 401, 404, 500, 400]
    assert [answer.headers["cache-control"] for answer in responses] == ["no-cache", *["no-store"] * 5]
    for answer in responses:
        assert application.HEADERS.items() - {("cache-control", "no-store")} <= set(answer.headers.items())


def test_the_page_serves_its_files_without_inline_code(api):
    routes = api.server.config.app.routes
    served = {route.path for route in routes if not route.path.startswith(("/api/", "/openapi", "/review/"))}
    served = {re.sub("^/[0-9a-f]{12}(?=/)", "", path) for path in served}  # files are also below the content hash
    sources = [path for path in PAGE.rglob("*.*") if path.suffix not in (".py", ".pyc")]
    assert served == {"/"} | {f"/{path.relative_to(PAGE).as_posix()}" for path in sources}
    page, style = api.http.get("/"), api.http.get("/style.css")
    assert "server" not in page.headers
    assert "unsafe" not in application.POLICY
    assert not [inline for inline in ("<style", "style=", "<script>") if inline in page.text]
    assert style.headers["content-type"].startswith("text/css")
    assert api.http.get("/style.css", headers={"If-None-Match": style.headers["etag"]}).status_code == 304


def test_the_server_listens_on_localhost_by_default():
    assert ServerOptions().host == "127.0.0.1"
    assert ServerOptions().hosts() == ("127.0.0.1", "localhost", "[::1]")
    assert ServerOptions(host="0.0.0.0").hosts() == ("*",)
    named = ServerOptions(host="192.168.1.5", allowed_hosts=("reversi.example",)).hosts()
    assert named == ("reversi.example", "127.0.0.1", "localhost", "[::1]", "192.168.1.5")  # has the printed address


def test_tokens_are_long_random_and_stored_only_as_hashes(new_server, tmp_path):
    api = new_server(database=tmp_path / "games.sqlite3")
    tokens = [token for _ in range(20) for token in api.create(size=4)["tokens"].values()]
    assert len(set(tokens)) == 60
    assert min(map(len, tokens)) >= 32
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not [token for token in tokens if token.encode() in stored]


def test_the_api_description_matches_the_routes(api):
    document = api.http.get("/openapi.json").json()
    described = {(path, method) for path, operations in document["paths"].items() for method in operations}
    routes = [route for route in api.server.config.app.routes if route.path.startswith("/api/")]
    served = [(route.path, set(getattr(route, "methods", None) or {"GET"}) - {"HEAD"}) for route in routes]
    assert described == {(path, method.lower()) for path, methods in served for method in methods}
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names
    assert names <= document["components"]["schemas"].keys()
