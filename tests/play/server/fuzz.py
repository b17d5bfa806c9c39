"""Reproducible random input for a server: heads, bodies, handshakes, frames, moves out of turn, truncated requests."""

import asyncio
import json
import random
import re
import struct
from collections import Counter
from contextlib import suppress
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

#: Timeout of an answer in seconds; on a busy machine the first answer may wait for compilation.
PATIENCE = 300
#: Paths, and server names of `Host` and `Origin`, that caused errors in some server before.
ODD_PATHS = (
    *rb"/ // * ? [ //[ /.. /../.. /% /%zz /%00 /%ff /%ed%a0%80 /\ http://[/ http://127.0.0.1/api/health /api/health#".split(),
    *rb"/api/games// /api/games/%00/socket /api/games/%2e%2e/record /api/games/../../etc/passwd".split(),
    *(b"/" + b"a/" * 3_000, b"/" + b"a" * 20_000, b"/api/games/" + b"%00" * 2_000, b"/api/health?" + b"x" * 9_000),
)
ODD_NAMES = (
    *b"[ ] [::1 [::1] [v1.x] http://[ 127.0.0.1: 127.0.0.1:x 127.0.0.1:99999999 127.0.0.1@evil evil.example * ..".split(),
    *(b"", b"127.0.0.1, evil", b"\xff\xfe", "\uff11\uff12\uff17.0.0.1".encode(), b"a" * 9_000),
)
#: Bytes that mutations insert.
INSERTS = (b" ", b"\t", b"\r", b"\x00", b"\x7f", b"\xff", b"\xc0\x80", *rb"[ ] : / @ % %00 \ # ? ..".split())
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
ODD_FIELDS = (
    b"Expect: 100-continue|Connection: close|Connection: upgrade|Upgrade: h2c|Transfer-Encoding: gzip|Content-Length: -1|"
    b"Content-Length: 1, 2|\xff: x|no colon|: empty|X: a\r\n b|X: |Host: evil.example|Origin: http://127.0.0.1|"
    b"Authorization: Bearer \xff\xff\xff\xff\xff\xff\xff\xff|Sec-WebSocket-Protocol: ,,|Sec-WebSocket-Extensions: x;;|"
    b"Sec-WebSocket-Version: 99|Content-Type: \x01|If-None-Match: \xe9"
).split(b"|")
ANALYSIS = {"board": "-----OX--XO-----", "turn": "black", "seconds": 0.001, "agent": "six-factor"}
#: Valid bodies by path, and valid messages of a socket.
VALID_BODIES = {
    "/api/games": ({"size": 8, "variant": "normal", "white": {"kind": "agent", "agent": "greedy"}},),
    "/api/analyse": (ANALYSIS, ANALYSIS | {"board": "X" * 16, "seconds": 1e-12}),
    "/api/puzzles": ({"size": 6, "variant": "normal", "rating": 1e3},),
    "/api/openings": ({"board": ANALYSIS["board"], "turn": "black", "moves": ["b1", "a1"]},),
    "/api/transcripts": (
        {"text": "f5d6c3"},
        {"text": "-XO-------------X;\nX"},
        {"file": "FBoBAQIAAAAAAM8HCAAAAA==", "first": 3},
        {"text": "(;GM[Othello]PB[]TY[6]BO[6 ------ ------ --O*-- --*O-- ------ ------ *]B[b3];)"},
    ),
    "/api/reviews": (
        {
            "board": ANALYSIS["board"],
            "turn": "black",
            "moves": [{"move": "b1", "comment": "x", "variations": [[{"move": "a2"}]]}],
        },
    ),
    "/api/games/{game}/moves": ({"move": "d3", "ply": 0},),
    "/api/games/{game}/undo": ({},),
    "/api/games/{game}/resign": ({},),
    "/api/games/%00/moves": ({"move": "d3", "ply": 0},),
}
VALID_MESSAGES = (
    {"type": "move", "move": "d3", "ply": 0},
    {"type": "join", "token": "x" * 32},
    {"type": "undo"},
    {"type": "grant"},
    {"type": "decline"},
    {"type": "ping", "id": "1"},
)
SEEDS = (*(seed for seeds in VALID_BODIES.values() for seed in seeds), *VALID_MESSAGES)
PATHS = (
    *VALID_BODIES,
    *("/api/games/{game}", "/api/games/{game}/record", "/api/health", "/api/nothere", "/", "/page/app.js"),
    *("/api/reviews/x", "/api/reviews/%00", "/review/x"),
    *("/openapi.json", "/api/games/..%2f..", "/" + "a" * 300),
)
ODD = (
    *(None, True, -1, 2**70, 1e308, 0.5, [], {}, [[[[]]]], {"a": {"b": {}}}),
    *("", "a1", "pass", "\ud800", "x" * 500, "gtp:sh"),
)


def body(generator: random.Random, expected: tuple[dict, ...] = SEEDS) -> bytes:
    """Return a body that is almost valid or invalid."""
    kind = generator.randrange(8)
    if kind == 0:
        return generator.randbytes(generator.randrange(200))
    if kind == 1:
        return b"[" * generator.randrange(3000) + b"1"
    if kind == 2 and generator.random() < 0.04:
        return b'{"text": "' + b"f5" * generator.randrange(40_000) + b'"}'
    message = dict(generator.choice(SEEDS if kind == 4 else expected))
    for _ in range(generator.randrange(3)):
        key = generator.choice([*message, "size", "type", "token", "zzz"])
        message[key] = generator.choice(ODD)
    text = json.dumps(message).encode()
    if kind == 3:
        cut = generator.randrange(len(text))
        return text[:cut] + generator.randbytes(generator.randrange(3)) + text[cut + generator.randrange(3) :]
    return text


def mutated(generator: random.Random, data: bytes) -> bytes:
    """Return *data* with a few bytes inserted, removed or repeated."""
    for _ in range(generator.randrange(1, 4)):
        at, end = sorted(generator.randrange(len(data) + 1) for _ in range(2))
        data = data[:at] + generator.choice((*INSERTS, data[at:end], b"")) + data[generator.choice((at, at + 1, end)) :]
    return data


def head(generator: random.Random, method: str, path: str, host: str, token: str) -> bytes:
    """Return a request line and header fields without those of the body; at most one of them is odd."""
    target, name, more = path.encode(), host.encode(), b""
    kind = generator.randrange(10)
    if kind == 0:
        target = generator.choice((mutated(generator, target), generator.choice(ODD_PATHS)))
    elif kind == 1:
        name = generator.choice((mutated(generator, name), generator.choice(ODD_NAMES)))
    elif kind == 2:
        more = generator.choice(ODD_FIELDS) + b"\r\n"
    elif kind == 3 and generator.random() < 0.3:
        more = b"".join(b"X%d: y\r\n" % number for number in range(generator.randrange(300)))
    authorization = b"Authorization: Bearer " + token.encode() + b"\r\n"
    return method.encode() + b" " + target + b" HTTP/1.1\r\nHost: " + name + b"\r\n" + more + authorization


def request(generator: random.Random, host: str, game: str, token: str) -> tuple[bytes, bool]:
    """Return the bytes of a request or a handshake, and whether the server may wait for more."""
    if generator.random() < 0.01:
        return generator.randbytes(generator.randrange(1, 300)) + b"\r\n\r\n", True
    if generator.random() < 0.15:
        path = generator.choice(("/api/games/{game}/socket", *PATHS)).replace("{game}", game)
        method = generator.choice(("GET", "GET", "GET", "POST", "HEAD"))
        return head(generator, method, path, host, token) + UPGRADE + b"\r\n", False
    method = generator.choice(("POST",) * 10 + ("GET",) * 4 + ("PUT", "HEAD", "OPTIONS", "CONNECT", "BREW"))
    path = generator.choice(tuple(VALID_BODIES) if method == "POST" else PATHS)
    data = body(generator, VALID_BODIES.get(path, SEEDS))
    first = head(generator, method, path.replace("{game}", game), host, token)
    kind = generator.random()
    if kind < 0.02:
        return first + b"Content-Length: %d\r\n\r\n" % generator.randrange(10**12) + data, True
    if kind < 0.06:
        chunks = mutated(generator, b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
        return first + b"Transfer-Encoding: chunked\r\n\r\n" + chunks, True
    return first + b"Content-Length: %d\r\n\r\n" % len(data) + data, False


def frame(generator: random.Random, payload: bytes) -> bytes:
    """Return a masked text frame, or sometimes another kind, a fragmented message, or a violation of the protocol."""
    kind = generator.randrange(1000)
    if kind < 20:
        start, end = sorted(generator.randrange(len(payload) + 1) for _ in range(2))
        return _frame(0x01, payload[:start]) + _frame(0x00, payload[start:end]) + _frame(0x80, payload[end:])
    if kind < 40:
        return _frame(generator.choice((0x82, 0x89, 0x8A)), payload[:125])
    if kind < 45:
        return _frame(generator.randrange(256), payload)
    if kind < 47:
        return _frame(0x88, generator.choice((b"", b"\x03", b"\x00\x00", b"\x03\xe8\xff", payload)))
    if kind == 47:
        return b"\x81\xff" + struct.pack("!Q", generator.randrange(5_000, 2**63)) + b"abcd"
    return _frame(0x81, payload, mask=kind != 48)


def _frame(first: int, payload: bytes, mask: bool = True) -> bytes:
    """Return a frame whose *first* byte may violate the protocol."""
    return bytes([first]) + Frame(Opcode.TEXT, payload).serialize(mask=mask)[1:]


async def http_storm(host: str, port: int, game: str, token: str, count: int, generator: random.Random) -> Counter[int]:
    """Send *count* requests and handshakes, each on a connection that ends when the answer begins; count the statuses."""
    statuses: Counter[int] = Counter()
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, port)
        raw, may_wait = request(generator, host, game, token)
        line = b""  # closing without an answer is allowed
        with suppress(OSError):  # write_eof may raise any OSError if the server has closed
            writer.write(raw)
            if may_wait:
                writer.write_eof()
            line = await asyncio.wait_for(reader.readline(), PATIENCE)
        statuses[int(line.split()[1]) if line else 0] += 1
        writer.transport.abort()
    return statuses


async def socket_storm(
    host: str, port: int, game: str, token: str, count: int, generator: random.Random
) -> Counter[str]:
    """Send *count* frames, 25 per connection, most of them after joining; count the codes of the answers."""
    codes: Counter[str] = Counter()
    sent = 0
    while sent < count:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET /api/games/{game}/socket HTTP/1.1\r\nHost: {host}\r\n".encode() + UPGRADE + b"\r\n")
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            opened = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            codes[opened.split()[1].decode()] += 1
            if generator.random() < 0.9:
                writer.write(_frame(0x81, json.dumps({"type": "join", "token": token}).encode()))
            for _ in range(25):
                data = frame(generator, body(generator))
                sent += 1
                if not writer.transport.is_closing():
                    writer.write(data)
                    await writer.drain()
            writer.write(_frame(0x81, b'{"type": "ping", "id": "the end"}'))
            data = await asyncio.wait_for(read_until(reader, b'"id":"the end"'), PATIENCE)
            codes.update(re.findall('"code":"(.+?)"', data.decode("latin-1")))
        writer.transport.abort()
    return codes


async def read_until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    """Read until *end*, a close frame (0x88, which occurs in no text), or the end of the connection."""
    data = b""
    while end not in data and b"\x88" not in data and (part := await reader.read(65_536)):
        data += part
    return data


async def storm(url: str, game: str, token: str, count: int, seed: int = 0, streams: int = 4) -> dict[str, Counter]:
    """Send *count* messages, half of them requests and half frames, on *streams* concurrent connections of each kind."""
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    share = -(-count // (2 * streams))
    place = (host, port, game, token, share)
    requests = [http_storm(*place, random.Random(f"{seed} http {n}")) for n in range(streams)]
    frames = [socket_storm(*place, random.Random(f"{seed} socket {n}")) for n in range(streams)]
    counters = await asyncio.gather(*requests, *frames)
    return {"statuses": sum(counters[:streams], Counter()), "codes": sum(counters[streams:], Counter())}
