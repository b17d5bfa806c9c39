"""Nonsense for a server, the same for the same seed: bodies, frames, moves out of turn, requests cut short.

``python -m tests.server.fuzz URL COUNT`` sends it to a server of this machine and tells what came back.
"""

import asyncio
import json
import os
import random
import struct
import sys
from collections import Counter
from contextlib import suppress
from urllib.parse import urlsplit

POSTED = (
    *("/api/games", "/api/analyse", "/api/transcripts", "/api/games/{game}/moves", "/api/games/{game}/undo"),
    *("/api/games/{game}/resign", "/api/games/%00/moves"),
)
PATHS = (
    *POSTED,
    *("/api/games/{game}", "/api/games/{game}/record", "/api/health", "/api/nothere"),
    *("/openapi.json", "/api/games/..%2f..", "/" + "a" * 300),
)
SEEDS = (
    {"size": 8, "variant": "normal", "white": {"kind": "agent", "agent": "greedy"}},
    {"board": "-" * 27 + "OX------XO" + "-" * 27, "turn": "black", "seconds": 0.001, "agent": "discs"},
    {"text": "f5d6c3"},
    {"move": "d3", "ply": 0},
    {"type": "move", "move": "d3", "ply": 0},
    {"type": "join", "token": "x" * 32},
    {"type": "undo"},
    {"type": "decline"},
    {"type": "ping", "id": "1"},
)
ODD = (
    None,
    True,
    -1,
    2**70,
    1e308,
    0.5,
    "",
    "a1",
    "pass",
    "\ud800",
    "x" * 500,
    [],
    {},
    [[[[]]]],
    {"a": {"b": {}}},
    "gtp:sh",
)


def body(generator: random.Random) -> bytes:
    """Something that is nearly, or not at all, what the server expects."""
    kind = generator.randrange(6)
    if kind == 0:
        return generator.randbytes(generator.randrange(200))
    if kind == 1:
        return b"[" * generator.randrange(3000) + b"1"
    if kind == 2 and generator.random() < 0.04:
        return b'{"text": "' + b"f5" * generator.randrange(40_000) + b'"}'
    message = dict(generator.choice(SEEDS))
    for _ in range(generator.randrange(3)):
        key = generator.choice([*message, "size", "type", "token", "zzz"])
        message[key] = generator.choice(ODD)
    text = json.dumps(message).encode()
    if kind == 3:
        cut = generator.randrange(len(text))
        return text[:cut] + generator.randbytes(generator.randrange(3)) + text[cut + generator.randrange(3) :]
    return text


def frame(generator: random.Random, payload: bytes) -> bytes:
    """A masked text frame; now and then one that breaks the protocol."""
    first = 0x81
    if generator.random() < 0.005:
        first = generator.randrange(256)
    masked = 0x80 if generator.random() > 0.001 else 0
    length = len(payload)
    head = bytes([first])
    if length < 126:
        head += bytes([masked | length])
    elif length < 65_536:
        head += bytes([masked | 126]) + struct.pack("!H", length)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", length)
    mask = generator.randbytes(4) if masked else b""
    return head + mask + (bytes(b ^ mask[i % 4] for i, b in enumerate(payload)) if masked else payload)


async def http_storm(host: str, port: int, game: str, token: str, count: int, generator: random.Random) -> Counter[int]:
    """*count* requests over connections that are kept as long as the server keeps them; the statuses."""
    statuses: Counter[int] = Counter()
    connection = None
    for _ in range(count):
        if connection is None:
            connection = await asyncio.open_connection(host, port)
        reader, writer = connection
        data = body(generator)
        method, paths = generator.choice(
            (*(("POST", POSTED),) * 4, *((name, PATHS) for name in ("GET", "PUT", "HEAD", "BREW")))
        )
        path = generator.choice(paths).replace("{game}", game)
        length = len(data) if generator.random() > 0.02 else generator.randrange(10**12)
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        raw = head.encode() + data
        if generator.random() < 0.01:
            raw = generator.randbytes(generator.randrange(1, 300)) + b"\r\n\r\n"
        try:
            writer.write(raw)
            if length != len(data):
                writer.write_eof()
            status, goes_on = await asyncio.wait_for(response(reader, method), 60)
        except (ConnectionError, asyncio.IncompleteReadError):
            status, goes_on = 0, False  # closed without an answer: allowed, but no crash
        statuses[status] += 1
        if not goes_on or length != len(data):
            writer.close()
            connection = None
    if connection:
        connection[1].close()
    return statuses


async def response(reader: asyncio.StreamReader, method: str) -> tuple[int, bool]:
    """The status of a response, and whether the connection goes on."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    status = int(lines[0].split()[1])
    if method != "HEAD" and "content-length" in fields:
        await reader.readexactly(int(fields["content-length"]))
    return status, fields.get("connection") != "close"


async def socket_storm(
    host: str, port: int, game: str, token: str, count: int, generator: random.Random
) -> Counter[str]:
    """*count* frames, a score to a connection, most of them after joining; the codes of the answers."""
    codes: Counter[str] = Counter()
    sent = 0
    while sent < count:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(
            f"GET /api/games/{game}/socket HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            if generator.random() < 0.9:
                writer.write(frame(random.Random(1), json.dumps({"type": "join", "token": token}).encode()))
            for _ in range(25):
                data = frame(generator, body(generator))
                sent += 1
                if not writer.transport.is_closing():
                    writer.write(data)
                    await writer.drain()
            if generator.random() < 0.05:
                codes["left half-way"] += 1
                writer.transport.abort()
                continue
            writer.write(frame(random.Random(1), b'{"type": "ping", "id": "the end"}'))
            data = await asyncio.wait_for(read_until(reader, b'"id":"the end"'), 60)
            for code in ("bad_message", "illegal_move", "wrong_ply", "spectator", "too_fast", "wrong_token", "joined"):
                codes[code] += data.count(f'"code":"{code}"'.encode())
            codes["state"] += data.count(b'"type":"state"')
        writer.transport.abort()
    return codes


async def read_until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    """All that comes until *end* has come, or a close frame (0x88, which no text holds), or the connection is closed."""
    data = b""
    while end not in data and b"\x88" not in data and (part := await reader.read(65_536)):
        data += part
    return data


async def storm(url: str, game: str, token: str, count: int, seed: int = 0, streams: int = 4) -> dict[str, Counter]:
    """*count* requests and frames, half of each, over *streams* connections at a time of each kind."""
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    share = -(-count // (2 * streams))
    place = (host, port, game, token, share)
    requests = [http_storm(*place, random.Random(f"{seed} http {n}")) for n in range(streams)]
    frames = [socket_storm(*place, random.Random(f"{seed} socket {n}")) for n in range(streams)]
    found = await asyncio.gather(*requests, *frames)
    return {"statuses": sum(found[:streams], Counter()), "codes": sum(found[streams:], Counter())}


async def half_open(url: str, count: int) -> list[asyncio.StreamWriter]:
    """Connections that begin to ask for something and then say nothing more."""
    parts = urlsplit(url)
    writers = []
    for number in range(count):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write((b"", b"GET", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /api/games HTTP/1.1\r\nHo")[number % 4])
        writers.append(writer)
    return writers


if __name__ == "__main__":
    from urllib.request import Request, urlopen

    target, number = sys.argv[1], int(sys.argv[2])
    assert urlsplit(target).hostname == "127.0.0.1", "only for servers of this machine"
    with urlopen(Request(f"{target}/api/games", b"{}", method="POST")) as answer:
        created = json.load(answer)
    outcome = asyncio.run(
        storm(target, created["game"], created["tokens"]["spectator"], number, int(os.environ.get("SEED", 0)))
    )
    print({name: dict(counter) for name, counter in outcome.items()})
