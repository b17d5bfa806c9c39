"""The server under load: many games at once against an agent, played by random clients over WebSockets on this machine.

A client waits *pause* seconds before each of its moves, as somebody who looks at the board would, or not at all. A move's answer is
the state with the agent's move (or the end of the game) in it.

Under attack, everybody has an address of their own, as a proxy would tell it, and all that one address may do is done by another
process (`hostile.py`).
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import websockets

from play.client.client import Client
from reversi_env import ReversiError

#: Games that are played before the measurement.
WARM_GAMES = 8
#: What the gentle play against while somebody attacks, and what all workers have loaded before.
GENTLE = ("random", "six-factor:time=0.1")
WARM_AGENTS = ("random", "six-factor:depth=1", "network:depth=1", "greedy-invincible")
#: How a proxy tells whom it serves.
FORWARDED = "X-Forwarded-For"
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@contextmanager
def running_server(*arguments: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own, with a database of its own: where it listens, and its process id."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "games.sqlite3")
        command = [
            sys.executable,
            "-P",
            "-m",
            "play.cli.app",
            "serve",
            "--port",
            "0",
            "--database",
            database,
            *arguments,
        ]
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
    command = [sys.executable, "-P", str(Path(__file__).with_name("hostile.py")), url]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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


async def _one_game(
    client: Client, agent: str, pause: float, generator: random.Random, answers: list[float], ready: asyncio.Barrier
) -> None:
    wanted = {"white": {"kind": "agent", "agent": agent}}
    created = await asyncio.to_thread(client.ask, "POST", "/api/games", wanted)
    socket = f"{client.url.replace('http', 'ws', 1)}/api/games/{created['game']}/socket"
    socket_kwargs: dict[str, Any] = {
        "compression": None,
        "open_timeout": 60,
        "ping_interval": None,
        "additional_headers": client.headers,
    }
    async with websockets.connect(socket, **socket_kwargs) as connection:
        await connection.send(json.dumps({"type": "join", "token": created["tokens"]["black"]}))
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
        message = {"type": "move", "move": generator.choice(state["legal"]), "ply": len(state["moves"])}
        moved = perf_counter()
        await connection.send(json.dumps(message))


def _quantiles(answers: list[float]) -> dict[str, float]:
    ordered = sorted(answers)
    return {f"answer_{name}_ms": _quantile(ordered, share) for name, share in QUANTILES.items()}


def _lags(client: Client) -> dict[str, float]:
    health = client.ask("GET", "/api/health")
    return {name: health[name] for name in ("lag_median_ms", "lag_p99_ms", "lag_max_ms")}


def _quantile(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0
