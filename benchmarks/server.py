"""The server under load: many simultaneous games of random clients against an agent, over WebSockets on this machine.

A client waits *pause* seconds on average before each of its moves. The response to a move is the state with the agent's move, or
with the end of the game.

Under attack, every client has another address, in the header that a proxy sets, and one address attacks: ``python -m
benchmarks.server URL KIND CORE`` attacks until its standard input ends, then prints the responses by kind. It has the lowest
priority, so that its own work does not slow the server.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import websockets

from benchmarks.timing import module_process
from play.client.client import Client, ConnectError
from reversi_env import ReversiError

#: Games that are played before the measurement.
WARM_GAMES = 8
#: Opponents of the clients during an attack, and agents that all workers load before.
CLIENT_AGENTS = ("random", "six-factor:time=0.1")
WARM_AGENTS = ("random", "six-factor:depth=1", "network:depth=1", "greedy-invincible")
#: The header with the client's address.
FORWARDED = "X-Forwarded-For"
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
#: The attacker's address, and its simultaneous games by agent: with long and short searches, and with long solutions.
ATTACKER = "203.0.113.1"
ATTACKED_AGENTS = {"network:time=5": 60, "six-factor:time=0.1": 20, "greedy-invincible:exact=18": 20}
#: Requests of the attack, and the number of clients that repeat each: the longest analyses and texts, and a former crash.
POSTED: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("/api/analyse", {"board": "X" * 16, "turn": "black", "seconds": 1e-12}, 3),
    ("/api/analyse", {"board": "-" * 27 + "OX------XO" + "-" * 27, "turn": "black", "seconds": 60}, 8),
    ("/api/transcripts", {"text": "(;GM[Othello]" + "B[d3]" * 11_000 + ";)"}, 8),
    ("/api/games", {"white": {"kind": "agent", "agent": "network:time=5"}}, 2),
)
#: Seconds between two requests of a client, and between two messages of a connection.
REQUEST_PAUSE, MESSAGE_PAUSE = 0.01, 0.04
#: Kinds of attacks, and the maximum of a quantile under attack, as a multiple of that without or in milliseconds, if that is more.
KINDS = ("limits", "gets", "reviews", "create", "uploads", "messages")
ACCEPTED = {"median": (2.0, 0.0), "p99": (3.0, 150.0)}


@contextmanager
def running_server(*arguments: str) -> Iterator[tuple[str, int]]:
    """Start a server with a temporary database; yield its address and process id."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "games.sqlite3")
        command = [sys.executable, "-P", "-m", "play", "serve", "--port", "0", "--database", database, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            words = [word for word in process.stdout.readline().split() if word.startswith("http")]
            if not words:
                raise ReversiError(f"the server did not start: expected `{' '.join(command[3:6])}` to work here")
            yield words[0], process.pid
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def load(url: str, games: int, agent: str, pause: float, seed: int = 0) -> dict[str, Any]:
    """Play *games* at once; return response times in milliseconds, errors, and the lag of the event loop."""
    client = Client(url)
    asyncio.run(_warm(client, agent))
    peers = [Client(url, {FORWARDED: f"198.51.100.{k}"}) for k in range(games)]
    (answers,), errors, seconds = asyncio.run(_all_games(peers, (agent,), pause, seed))
    return {
        "games": games,
        "agent": agent,
        "pause_seconds": pause,
        "moves": len(answers),
        "seconds": seconds,
        "moves_per_second": len(answers) / seconds,
        "errors": len(errors),
        "first_errors": errors[:3],
        **_quantiles(answers),
        **_lags(client),
    }


def warm(url: str) -> None:
    for agent in WARM_AGENTS:
        asyncio.run(_warm(Client(url, {FORWARDED: "198.51.100.255"}), agent))


def load_under_attack(
    url: str, clients: int, pause: float, kind: str = "", core: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """Return response times of *clients*, each playing each of `CLIENT_AGENTS`, and the responses to an attack of that *kind*.

    The server must trust a proxy on this machine. The attacker is bound to a *core*.
    """
    client = Client(url)
    peers = [Client(url, {FORWARDED: f"198.51.100.{k}"}) for k in range(clients)]
    attacking: AbstractContextManager[dict[str, int]] = attacked(url, kind, core) if kind else nullcontext({})
    with attacking as attacks:
        answers, errors, seconds = asyncio.run(_all_games(peers, CLIENT_AGENTS, pause, seed))
    return {
        "kind": kind,
        "core": core,
        "clients": clients,
        "pause_seconds": pause,
        "seconds": seconds,
        "errors": len(errors),
        "first_errors": errors[:3],
        "agents": {
            agent: {"moves": len(times), **_quantiles(times)}
            for agent, times in zip(CLIENT_AGENTS, answers, strict=True)
        },
        "attack": attacks,
        **_lags(client),
    }


def exceeded(attack: dict[str, Any], baseline: dict[str, Any]) -> list[str]:
    """Return the quantiles under an attack that are above the accepted ones."""
    return [
        f"{agent} {name} {times[f'answer_{name}_ms']:.0f} ms, {baseline['agents'][agent][f'answer_{name}_ms']:.0f} without"
        for agent, times in attack["agents"].items()
        for name, (factor, least) in ACCEPTED.items()
        if times[f"answer_{name}_ms"] > max(factor * baseline["agents"][agent][f"answer_{name}_ms"], least)
    ]


@contextmanager
def attacked(url: str, kind: str, core: int | None) -> Iterator[dict[str, int]]:
    """Attack the server at *url* from another process; the responses by kind are filled in at the end."""
    process = module_process("benchmarks.server", url, kind, str(core), stdin=subprocess.PIPE)
    assert process.stdout is not None
    outcomes: dict[str, int] = {}
    try:
        if process.stdout.readline() != "attacking\n":
            raise ReversiError("the attack did not begin: expected a server that answers")
        yield outcomes
    finally:
        outcomes.update(json.loads(process.communicate()[0] or "{}"))  # it ends with its standard input


def memory_mib(pid: int) -> float | None:
    """Return the resident memory of a process, None where the system does not report it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def stolen_seconds() -> float:
    """Return the processor time that the host of this virtual machine has given to other machines; 0 if unknown."""
    path = Path("/proc/stat")
    return int(path.read_text().split()[8]) / os.sysconf("SC_CLK_TCK") if path.exists() else 0.0


async def _warm(client: Client, agent: str) -> None:
    """Play enough games at once for every worker to load its kernels."""
    alone = asyncio.Barrier(WARM_GAMES)
    games = (_one_game(client, agent, 0.0, random.Random(n), [], alone) for n in range(WARM_GAMES))
    await asyncio.gather(*games)


async def _all_games(
    clients: list[Client], agents: tuple[str, ...], pause: float, seed: int
) -> tuple[list[list[float]], list[str], float]:
    """Play a game of each client against each agent, all at once; they begin when all have joined.

    Return the response times for each agent, the errors, and the seconds.
    """
    answers: list[list[float]] = [[] for _ in agents]
    errors: list[str] = []
    ready = asyncio.Barrier(len(clients) * len(agents))

    async def one(number: int, client: Client) -> None:
        which, generator = number % len(agents), random.Random(f"{seed} {number}")
        try:
            await _one_game(client, agents[which], pause, generator, answers[which], ready)
        except Exception as error:  # any error is one of the server or of this machine
            errors.append(repr(error))
            await ready.abort()

    players = [client for client in clients for _ in agents]
    began = perf_counter()
    await asyncio.gather(*(one(number, client) for number, client in enumerate(players)))
    return answers, errors, perf_counter() - began


@asynccontextmanager
async def _joined(client: Client, agent: str) -> AsyncIterator[Any]:
    """Yield the connection of the black player of a new game against *agent*."""
    players = {"white": {"kind": "agent", "agent": agent}}
    created = await asyncio.to_thread(client.ask, "POST", "/api/games", players)
    async with _connected(client, created, "black") as connection:
        yield connection


@asynccontextmanager
async def _connected(client: Client, created: dict[str, Any], role: str) -> AsyncIterator[Any]:
    socket = f"{client.url.replace('http', 'ws', 1)}/api/games/{created['game']}/socket"
    socket_kwargs: dict[str, Any] = {"compression": None, "open_timeout": 60, "ping_interval": None}
    async with websockets.connect(socket, additional_headers=client.headers, **socket_kwargs) as connection:
        await connection.send(json.dumps({"type": "join", "token": created["tokens"][role]}))
        yield connection


def _random_move(state: dict[str, Any], generator: random.Random) -> str:
    return json.dumps({"type": "move", "move": generator.choice(state["legal"]), "ply": len(state["moves"])})


async def _one_game(
    client: Client, agent: str, pause: float, generator: random.Random, answers: list[float], ready: asyncio.Barrier
) -> None:
    async with _joined(client, agent) as connection:
        await ready.wait()
        await _play(connection, pause, generator, answers)


async def _play(connection: Any, pause: float, generator: random.Random, answers: list[float]) -> None:
    moved = None
    while True:
        state = json.loads(await connection.recv())
        if state["type"] == "error":
            raise RuntimeError(state["message"])
        if state["type"] != "state" or (state["turn"] == "white" and state["status"] == "running"):
            continue
        if moved is not None:
            answers.append(1000 * (perf_counter() - moved))
        if state["status"] == "finished":
            return
        if pause:
            await asyncio.sleep(pause * generator.uniform(0.0, 2.0))
        moved = perf_counter()
        await connection.send(_random_move(state, generator))


def _quantiles(answers: list[float]) -> dict[str, float]:
    values = np.quantile(answers or [0.0], [*QUANTILES.values()]).round(2).tolist()
    return {f"answer_{name}_ms": value for name, value in zip(QUANTILES, values, strict=True)}


def _lags(client: Client) -> dict[str, float]:
    health = client.ask("GET", "/api/health")
    return {name: health[name] for name in ("lag_median_ms", "lag_p99_ms", "lag_max_ms")}


# --- in the process that attacks ------------------------------------------------------------------

#: Sends requests over a connection, and yields their outcomes.
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], AsyncIterator[str]]


async def attack(url: str, kind: str) -> Counter[str]:
    """Attack until the standard input ends; return the number of responses by kind."""
    client, outcomes = Client(url, {FORWARDED: ATTACKER}), Counter[str]()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))  # a thread for each of the requests
    if kind == "limits":
        tasks = [_post_forever(client, path, body, outcomes) for path, body, count in POSTED for _ in range(count)]
        agents = ATTACKED_AGENTS.items()
        tasks += [_play_forever(client, agent, outcomes) for agent, count in agents for _ in range(count)]
    elif kind == "messages":
        created = [client.ask("POST", "/api/games", {}) for _ in range(2)]
        tasks = [_send_forever(client, created[n % 2], n, outcomes) for n in range(376)]
    else:
        talk, count = {
            "gets": (_get, 200),
            "reviews": (_review, 50),
            "create": (_create, 50),
            "uploads": (_stall, 150),
        }[kind]
        tasks = [_talk_forever(client, talk, outcomes) for _ in range(count)]
    running = [asyncio.create_task(task) for task in tasks]
    await asyncio.sleep(2)  # until all tasks have begun
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return outcomes


async def _post_forever(client: Client, path: str, body: dict[str, Any], outcomes: Counter[str]) -> None:
    while True:
        try:
            await asyncio.to_thread(client.ask, "POST", path, body)
            outcome = "answered"
        except ConnectError as error:
            outcome = str(error).rpartition("refuses: ")[2][:60]
        outcomes[f"{path} {outcome}"] += 1
        await asyncio.sleep(REQUEST_PAUSE)


async def _talk_forever(client: Client, talk: Talk, outcomes: Counter[str]) -> None:
    """Open connections one after the other, and *talk* over each until it is closed."""
    address = urlsplit(client.url)
    while True:
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            try:
                async for outcome in talk(reader, writer):
                    outcomes[outcome] += 1
            finally:
                writer.transport.abort()
        except (OSError, EOFError, ValueError) as error:
            outcomes[type(error).__name__] += 1
            await asyncio.sleep(REQUEST_PAUSE)


async def _request(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    body: bytes = b"",
    token: str = "",
) -> tuple[int, Any]:
    """Send a request over an open connection, and return the response's status and content."""
    fields = (
        f"Host: 127.0.0.1\r\n{FORWARDED}: {ATTACKER}\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}"
    )
    writer.write(f"{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    return int(head.split()[1]), await reader.readexactly(int(head.partition("content-length: ")[2].split()[0]))


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[str]:
    for path in cycle(("/api/health", "/icon.svg", "/api/agents")):
        yield f"GET {path} {(await _request(reader, writer, 'GET', path))[0]}"


async def _review(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[str]:
    """Share deeply nested reviews, and read those that are accepted."""
    while True:
        depth = random.choice((60, 64, 320, 350, 1_000))
        nested = '[{"move":"a1","variations":[' * depth + '[{"move":"a1"}]' + "]}]" * depth
        body = f'{{"board":"{"-" * 64}","turn":"black","moves":{nested}}}'.encode()
        status, content = await _request(reader, writer, "POST", "/api/reviews", body)
        yield f"review {depth} deep {status}"
        if status == 201:
            yield f"read {(await _request(reader, writer, 'GET', '/api/reviews/' + json.loads(content)['review']))[0]}"


async def _create(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[str]:
    while True:
        status, content = await _request(reader, writer, "POST", "/api/games", b"{}")
        yield f"create {status}"
        if status == 201:
            game = json.loads(content)
            path = f"/api/games/{game['game']}/resign"
            yield f"resign {(await _request(reader, writer, 'POST', path, token=game['tokens']['black']))[0]}"


async def _stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[str]:
    """Send nearly all of the longest text, and wait."""
    fields = f"Host: 127.0.0.1\r\n{FORWARDED}: {ATTACKER}\r\nContent-Length: 1000000"
    writer.write(f"POST /api/transcripts HTTP/1.1\r\n{fields}\r\n\r\n".encode() + b" " * 999_000)
    yield f"upload {(await reader.readline()).split()[1].decode()}"


async def _send_forever(client: Client, created: dict[str, Any], number: int, outcomes: Counter[str]) -> None:
    """Send messages to one of the attacker's games, and take-back requests, which are sent to all its connections."""
    role, messages = ("black", "white", "spectator")[number % 3], cycle(('{"type":"ping"}', '{"type":"undo"}', "x"))
    while True:
        try:
            async with _connected(client, created, role) as connection:
                while True:
                    await connection.send(next(messages))
                    outcomes["messages"] += 1
                    await asyncio.sleep(MESSAGE_PAUSE)
        except (OSError, websockets.WebSocketException) as error:
            outcomes[f"messages {type(error).__name__}"] += 1
            await asyncio.sleep(1)


async def _play_forever(client: Client, agent: str, outcomes: Counter[str]) -> None:
    """Play games without pauses, one after the other."""
    generator = random.Random()
    while True:
        try:
            async with _joined(client, agent) as connection:
                async for message in connection:
                    state = json.loads(message)
                    if state["type"] == "state" and state["status"] == "finished":
                        break
                    if state["type"] == "state" and state["turn"] == "black":
                        outcomes[f"{agent} moves"] += 1
                        await connection.send(_random_move(state, generator))
        except (ConnectError, OSError, websockets.WebSocketException) as error:
            outcomes[f"{agent} {type(error).__name__}"] += 1
            await asyncio.sleep(1)


if __name__ == "__main__":
    os.nice(19)
    if sys.argv[3].isdigit():
        os.sched_setaffinity(0, {int(sys.argv[3])})
    print(json.dumps(asyncio.run(attack(sys.argv[1], sys.argv[2]))))
