"""An attack on a server of this machine by one address, as a proxy would tell it: everything at once that a stranger may ask for.

``python benchmarks/hostile.py URL`` attacks until its standard input ends, and then tells what it was answered. It has the lowest
priority, so that what it does itself is not taken for what it does to the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import websockets

from play.client.client import Client, ConnectError

ADDRESS = "203.0.113.1"
#: Games at once against agents that take as long as they may: in the long lane, in the short one, and at their ends.
GAMES = {"network:time=5": 60, "six-factor:time=0.1": 20, "greedy-invincible:exact=18": 20}
#: What is posted over and over, by so many at once: positions that ended a worker once, the longest analyses, the longest texts.
FULL = {"board": "X" * 16, "turn": "black", "seconds": 1e-12}
LONG = {"board": "-" * 27 + "OX------XO" + "-" * 27, "turn": "black", "seconds": 60}
MOVES = {"text": "(;GM[Othello]" + "B[d3]" * 11_000 + ";)"}
POSTED: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("/api/analyse", FULL, 3),
    ("/api/analyse", LONG, 8),
    ("/api/transcripts", MOVES, 8),
    ("/api/games", {"white": {"kind": "agent", "agent": "network:time=5"}}, 2),
)
#: Seconds between two requests of one of them.
BREATH = 0.01


async def attack(url: str) -> Counter[str]:
    """Attack until the standard input ends; the answers by kind."""
    client, outcomes = Client(url, {"X-Forwarded-For": ADDRESS}), Counter[str]()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))  # a thread for each of the requests
    tasks = [_post(client, path, body, outcomes) for path, body, count in POSTED for _ in range(count)]
    tasks += [_play(client, agent, outcomes) for agent, count in GAMES.items() for _ in range(count)]
    running = [asyncio.create_task(task) for task in tasks]
    await asyncio.sleep(2)  # until it is under way
    print("attacking", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return outcomes


async def _post(client: Client, path: str, body: dict[str, Any], outcomes: Counter[str]) -> None:
    while True:
        outcomes[f"{path} {await _asked(client, path, body)}"] += 1
        await asyncio.sleep(BREATH)


async def _asked(client: Client, path: str, body: dict[str, Any]) -> str:
    try:
        await asyncio.to_thread(client.ask, "POST", path, body)
    except ConnectError as error:
        return str(error).rpartition("refuses: ")[2][:60]
    return "answered"


async def _play(client: Client, agent: str, outcomes: Counter[str]) -> None:
    """Games without end, each move made at once."""
    while True:
        try:
            await _game(client, agent, outcomes)
        except (ConnectError, OSError, websockets.WebSocketException) as error:
            outcomes[f"{agent} {type(error).__name__}"] += 1
            await asyncio.sleep(1)


async def _game(client: Client, agent: str, outcomes: Counter[str]) -> None:
    wanted = {"white": {"kind": "agent", "agent": agent}}
    created = await asyncio.to_thread(client.ask, "POST", "/api/games", wanted)
    socket = f"{client.url.replace('http', 'ws', 1)}/api/games/{created['game']}/socket"
    async with websockets.connect(socket, compression=None, additional_headers=client.headers) as connection:
        await connection.send(json.dumps({"type": "join", "token": created["tokens"]["black"]}))
        async for message in connection:
            state = json.loads(message)
            if state["type"] == "state" and state["status"] == "finished":
                return
            if state["type"] == "state" and state["turn"] == "black":
                outcomes[f"{agent} moves"] += 1
                move = {"type": "move", "move": random.choice(state["legal"]), "ply": len(state["moves"])}
                await connection.send(json.dumps(move))


if __name__ == "__main__":
    os.nice(19)
    print(json.dumps(asyncio.run(attack(sys.argv[1]))))
