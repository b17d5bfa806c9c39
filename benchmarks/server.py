"""The server under load: many games at once against an agent, played by random clients over WebSockets on this machine.

A client waits *pause* seconds before each of its moves, as somebody who looks at the board would, or not at all. A move's answer is
the state with the agent's move (or the end of the game) in it.

Under attack, everybody has an address of their own, as a proxy would tell it, and one address does all that it may do at once:
``python -m benchmarks.server URL`` attacks until its standard input ends, then prints the answers by kind. It has the lowest
priority, so that its own work is not taken for its effect on the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import websockets

from benchmarks.timing import module_process
from play.client.client import Client, ConnectError
from reversi_env import ReversiError

#: Games that are played before the measurement.
WARM_GAMES = 8
#: What the gentle play against while somebody attacks, and what all workers have loaded before.
GENTLE = ("random", "six-factor:time=0.1")
WARM_AGENTS = ("random", "six-factor:depth=1", "network:depth=1", "greedy-invincible")
#: How a proxy tells whom it serves.
FORWARDED = "X-Forwarded-For"
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
#: The attacker's address, and its games at once against agents that take as long as they may: in the long lane, in the short one,
#: and at their ends.
ATTACKER = "203.0.113.1"
ATTACKED_AGENTS = {"network:time=5": 60, "six-factor:time=0.1": 20, "greedy-invincible:exact=18": 20}
#: Requests of the attack, and how many clients repeat each: positions that once ended a worker, the longest analyses and texts.
POSTED: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("/api/analyse", {"board": "X" * 16, "turn": "black", "seconds": 1e-12}, 3),
    ("/api/analyse", {"board": "-" * 27 + "OX------XO" + "-" * 27, "turn": "black", "seconds": 60}, 8),
    ("/api/transcripts", {"text": "(;GM[Othello]" + "B[d3]" * 11_000 + ";)"}, 8),
    ("/api/games", {"white": {"kind": "agent", "agent": "network:time=5"}}, 2),
)
#: Seconds between two requests of one of them.
REQUEST_PAUSE = 0.01


@contextmanager
def running_server(*arguments: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own, with a database of its own: where it listens, and its process id."""
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
    """Play *games* at once to their ends; times of the answers in milliseconds, errors, and the event loop's lag."""
    client = Client(url)
    asyncio.run(_warm(client, agent))
    (answers,), errors, seconds = asyncio.run(_all_games([client] * games, (agent,), pause, seed))
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


def load_under_attack(url: str, clients: int, pause: float, seed: int = 0) -> dict[str, Any]:
    """What so many *clients* find, each with a game against each of `GENTLE`, while one address attacks; and what that is told.

    The server must believe a proxy on this machine.
    """
    client = Client(url)
    for agent in WARM_AGENTS:
        asyncio.run(_warm(client, agent))
    peers = [Client(url, {FORWARDED: f"198.51.100.{k}"}) for k in range(clients)]
    with attacked(url) as attacks:
        answers, errors, seconds = asyncio.run(_all_games(peers, GENTLE, pause, seed))
    return {
        "clients": clients,
        "pause_seconds": pause,
        "seconds": seconds,
        "errors": len(errors),
        "first_errors": errors[:3],
        "agents": {
            agent: {"moves": len(times), **_quantiles(times)} for agent, times in zip(GENTLE, answers, strict=True)
        },
        "attack": attacks,
        **_lags(client),
    }


@contextmanager
def attacked(url: str) -> Iterator[dict[str, int]]:
    """Attack the server at *url* from another process meanwhile; what that was answered, by kind, is there at the end."""
    process = module_process("benchmarks.server", url, stdin=subprocess.PIPE)
    assert process.stdout is not None
    outcomes: dict[str, int] = {}
    try:
        if process.stdout.readline() != "attacking\n":
            raise ReversiError("the attack did not begin: expected a server that answers")
        yield outcomes
    finally:
        outcomes.update(json.loads(process.communicate()[0] or "{}"))  # it ends with its standard input


def memory_mib(pid: int) -> float | None:
    """Resident memory of a process, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def _warm(client: Client, agent: str) -> None:
    """So many games at once that every worker has loaded its kernels."""
    alone = asyncio.Barrier(WARM_GAMES)
    games = (_one_game(client, agent, 0.0, random.Random(n), [], alone) for n in range(WARM_GAMES))
    await asyncio.gather(*games)


async def _all_games(
    clients: list[Client], agents: tuple[str, ...], pause: float, seed: int
) -> tuple[list[list[float]], list[str], float]:
    """A game of each of the *clients* against each of the *agents*, all at once, begun when everybody has joined.

    The answers' times for each agent, the errors, and the seconds it took.
    """
    answers: list[list[float]] = [[] for _ in agents]
    errors: list[str] = []
    ready = asyncio.Barrier(len(clients) * len(agents))

    async def one(number: int, client: Client) -> None:
        which, generator = number % len(agents), random.Random(f"{seed} {number}")
        try:
            await _one_game(client, agents[which], pause, generator, answers[which], ready)
        except Exception as error:  # whatever it was, it is an error of the server or of this machine
            errors.append(repr(error))
            await ready.abort()

    players = [client for client in clients for _ in agents]
    began = perf_counter()
    await asyncio.gather(*(one(number, client) for number, client in enumerate(players)))
    return answers, errors, perf_counter() - began


@asynccontextmanager
async def _joined(client: Client, agent: str) -> AsyncIterator[Any]:
    """The connection of the black player of a new game against *agent*."""
    players = {"white": {"kind": "agent", "agent": agent}}
    created = await asyncio.to_thread(client.ask, "POST", "/api/games", players)
    socket = f"{client.url.replace('http', 'ws', 1)}/api/games/{created['game']}/socket"
    socket_kwargs: dict[str, Any] = {"compression": None, "open_timeout": 60, "ping_interval": None}
    async with websockets.connect(socket, additional_headers=client.headers, **socket_kwargs) as connection:
        await connection.send(json.dumps({"type": "join", "token": created["tokens"]["black"]}))
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
    ordered = sorted(answers)
    return {f"answer_{name}_ms": _quantile(ordered, share) for name, share in QUANTILES.items()}


def _lags(client: Client) -> dict[str, float]:
    health = client.ask("GET", "/api/health")
    return {name: health[name] for name in ("lag_median_ms", "lag_p99_ms", "lag_max_ms")}


def _quantile(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0


# --- in the process that attacks ------------------------------------------------------------------


async def attack(url: str) -> Counter[str]:
    """Attack until the standard input ends; the answers by kind."""
    client, outcomes = Client(url, {FORWARDED: ATTACKER}), Counter[str]()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))  # a thread for each of the requests
    tasks = [_post_forever(client, path, body, outcomes) for path, body, count in POSTED for _ in range(count)]
    tasks += [_play_forever(client, agent, outcomes) for agent, count in ATTACKED_AGENTS.items() for _ in range(count)]
    running = [asyncio.create_task(task) for task in tasks]
    await asyncio.sleep(2)  # until it is under way
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


async def _play_forever(client: Client, agent: str, outcomes: Counter[str]) -> None:
    """Play games without end, each move made at once."""
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
    print(json.dumps(asyncio.run(attack(sys.argv[1]))))
