"""Stored games and reviews: restarts, kills, limits, deletion."""

import asyncio
import random
import re
import signal
import threading
import time
from collections import Counter

import pytest

from play.game import Game
from play.server import addresses
from play.server.games.store import GameRow, Seat, Store, excess, hashed
from reversi_env import Rules
from tests.oracles.jobs import children_of, launch
from tests.search.agents.test_external import gone

from .conftest import WAIT_SECONDS, Api, eventually, refusal, stop
from .test_clocks import drop, in_loop
from .test_refusals import REVIEW

GREEDY = {"kind": "agent", "agent": "greedy"}


def test_games_survive_a_restart_with_lower_limits(new_server, tmp_path):
    database = tmp_path / "games.sqlite3"
    first = new_server(database=database)
    running = first.create(size=6, variant="reversed", clock={"seconds": 100, "increment": 1})
    first.move(running, "black", "b3", 0)
    resigned = first.create(size=4, white=GREEDY)
    first.act(resigned, "black", "resign")
    slow = {"kind": "agent", "agent": "six-factor:time=4,exact=16"}
    limited = first.create(size=4, white=slow)
    before = [first.state(running), first.state(resigned)]
    stop(first, database)
    second = new_server(database=database, max_think_time=0.05)
    after = [second.state(running), second.state(resigned)]
    for old, new in zip(before, after, strict=True):
        old["clock"] = new["clock"] = None  # time has passed
        assert new == old
    assert second.move(running, "white", after[0]["legal"][0], 1).status_code == 200
    assert second.move({"game": running["game"], "tokens": resigned["tokens"]}, "black", "b1", 0).status_code == 403
    assert second.move(limited, "black", "b1", 0).status_code == 200
    assert second.hall.rooms[limited["game"]].agents[1].seconds == 0.05
    eventually(lambda: len(second.state(limited)["moves"]) >= 2)
    assert second.call("POST", "/api/games", json={"white": slow}).status_code == 400


def test_old_games_are_deleted(new_server, monkeypatch):
    api = new_server(room_idle=0.0, sweep_every=0.02, running_idle=3600.0, finished_kept=5 * 3600.0)
    running, finished = api.create(size=4), api.create(size=4)
    api.act(finished, "black", "resign")
    token, clock = running["tokens"]["spectator"], time.time
    monkeypatch.setattr("play.server.games.hall.time.time", lambda: clock() + 2 * 3600)
    eventually(lambda: api.call("GET", f"/api/games/{running['game']}", token).status_code == 404, "forgetting")
    assert api.state(finished)["status"] == "finished"


def test_games_leave_memory_above_the_limit(new_server):
    api = new_server(max_rooms=2)
    created = [api.create(size=4) for _ in range(5)]
    assert len(api.hall.rooms) <= 2
    for game in created:
        assert api.move(game, "black", "b1", 0).status_code == 200


def failing(store, monkeypatch, wait=lambda: None):
    """Make the next writes of *store* fail, after *wait*."""

    def fail(connection):
        wait()
        connection.execute("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setattr(store, "save", lambda *_: store.run(fail))


@pytest.mark.parametrize("path", ["", "/record"])
def test_moves_are_not_shown_before_they_are_stored(new_server, monkeypatch, path):
    api = new_server()
    created = api.create(size=4)
    room, was_read = api.hall.rooms[created["game"]], threading.Event()

    def recording(function):
        def call():
            result = function()
            was_read.set()
            return result

        return call

    with api.socket(created["game"], created["tokens"]["black"]) as black, monkeypatch.context() as broken:
        failing(api.hall.store, broken, lambda: was_read.wait(WAIT_SECONDS))
        black.send(type="move", move="b1", ply=0)
        eventually(lambda: room.game.moves, "the move")
        broken.setattr(room, "state", recording(room.state))
        broken.setattr(room.game, "to_ggf", recording(room.game.to_ggf))
        refused = api.call("GET", f"/api/games/{created['game']}{path}", created["tokens"]["white"])
    assert refusal(refused) == (503, "storage")
    assert api.state(created)["moves"] == []
    with monkeypatch.context() as broken:
        failing(api.hall.store, broken)
        assert refusal(api.move(created, "black", "b1", 0)) == (503, "storage")
    assert api.state(created)["moves"] == []
    assert api.move(created, "black", "b1", 0).status_code == 200


class ServerProcess(Api):
    """A server in its own process."""

    def __init__(self, database):
        self.process = launch("serve", "--port", 0, "--workers", 1, "--database", database)
        super().__init__(re.search(r"http://\S+", self.process.stdout.readline()).group())

    def end(self, signal_number):
        self.http.close()
        self.process.send_signal(signal_number)
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, errors


@pytest.mark.slow
def test_a_killed_server_loses_no_confirmed_move(tmp_path):
    database, generator = tmp_path / "games.sqlite3", random.Random(1)
    server, seen, finished = ServerProcess(database), [], 0
    for number in range(16):
        created = server.create(size=4, **({"white": GREEDY} if number % 2 else {}))
        state = server.state(created)
        for _ in range(60 if number % 3 == 0 else number % 7):
            if state["status"] == "running" and state["turn"] in created["tokens"]:
                server.move(created, state["turn"], generator.choice(state["legal"]), len(state["moves"]))
            state = server.state(created)
        if number % 5 == 0:
            server.act(created, "black", "resign")
            state = server.state(created)
        seen.append((created, state))
    workers = children_of(server.process.pid)
    server.end(signal.SIGKILL)
    eventually(lambda: all(map(gone, workers)), "the end of the workers")
    again = ServerProcess(database)
    for created, before in seen:
        after = again.state(created)
        assert after["moves"][: len(before["moves"])] == before["moves"]
        if before["status"] == "finished":
            assert after == before
            finished += 1
    assert 3 < finished < 16
    status, errors = again.end(signal.SIGINT)  # Ctrl-C ends it cleanly
    assert status in (0, 130, -signal.SIGINT)
    assert "Traceback" not in errors


def test_reviews_are_stored_under_a_name_and_expire(new_server, tmp_path, monkeypatch):
    database = tmp_path / "games.sqlite3"
    first = new_server(database=database)
    names = [first.call("POST", "/api/reviews", json=REVIEW).json()["review"] for _ in range(2)]
    assert len(set(names)) == 2
    assert min(map(len, names)) >= 22  # 128 random bits
    stop(first, database)
    second = new_server(database=database, sweep_every=0.02)
    path = f"/api/reviews/{names[0]}"
    assert second.call("GET", path).json() == REVIEW
    assert second.http.get(f"/review/{names[0]}").text == second.http.get("/").text
    for method in ("POST", "PUT", "PATCH", "DELETE"):  # reviews cannot be changed
        assert second.http.request(method, path, json=REVIEW).status_code == 405
    clock = time.time
    monkeypatch.setattr("play.server.games.hall.time.time", lambda: clock() + 366 * 86_400)
    eventually(lambda: second.call("GET", path).status_code == 404, "forgetting")


def test_too_many_reviews_of_a_client_replace_its_own(new_server, monkeypatch):
    monkeypatch.setattr(addresses, "_own_address", lambda: "192.168.1.5")
    api = new_server(client_reviews=3, max_reviews=5, host="0.0.0.0", proxies=("127.0.0.1",))
    assert api.call("GET", "/api/agents").json()["address"] is None  # only the proxy knows it

    def share(client):
        headers = {"X-Forwarded-For": client}
        return api.call("POST", "/api/reviews", json=REVIEW, headers=headers).json()["review"]

    def kept(names):
        return [api.call("GET", f"/api/reviews/{name}").status_code == 200 for name in names]

    friend = [share("10.0.0.1")]
    flood = [share("10.0.0.2") for _ in range(5)]  # three reviews per client
    assert kept(flood) == [False, False, True, True, True]
    friend += [share("10.0.0.1"), share("10.0.0.1")]  # the second one exceeds the total
    assert kept(friend) == [True, True, True]
    assert kept(flood) == [False, False, False, True, True]


def test_excess_games_are_taken_from_clients_with_most():
    counts = Counter({"a": 9, "b": 5, "c": 2})
    assert excess(counts, 10, 100) == {}
    assert excess(counts, 4, 100) == {"a": 5, "b": 1}
    assert excess(counts, 10, 8) == {"a": 6, "b": 2}
    assert excess(Counter(), 0, 0) == {}


def test_tidying_keeps_the_last_finished_games_of_a_client(tmp_path):
    game = Game(Rules(), "a", "b")
    game.play("d3")
    seats = [Seat("human", name, None, hashed(name)) for name in ("a", "b")]

    async def kept():
        store = Store(tmp_path / "games.sqlite3")
        store.open()
        for number, client in enumerate(["friend", *["attacker"] * 9]):
            row = GameRow(
                *(f"{number}", number, number, 1, "finished", 8, "normal", "standard", *seats, hashed("x")),
                client=client,
            )
            await store.save(row, game)
        await store.tidy(0.0, -1.0, -1.0, -1.0, -1.0, 4, 100)
        names = [number for number in range(10) if await store.load(f"{number}")]
        store.close()
        return names

    assert asyncio.run(kept()) == [0, 6, 7, 8, 9]


def test_games_without_moves_are_deleted_soon(new_server, tmp_path, monkeypatch):
    database, clock = tmp_path / "games.sqlite3", time.time
    api = new_server(database=database)
    played, resigned, waiting = (api.create(size=4) for _ in range(3))
    api.move(played, "black", "b1", 0)
    for created in (played, resigned):
        api.act(created, "black", "resign")
    for created in (played, resigned, waiting):
        drop(api, created)
    monkeypatch.setattr("play.server.games.hall.time.time", lambda: clock() + 86_400)
    in_loop(api, api.hall.tidy)
    statuses = [
        api.call("GET", f"/api/games/{each['game']}", each["tokens"]["black"]).status_code
        for each in (played, resigned, waiting)
    ]
    assert statuses == [200, 404, 404]


def test_a_room_displaced_during_entry_is_loaded_again(new_server, monkeypatch):
    api = new_server()
    created, limits = api.create(size=4), iter([1, 3])
    load = api.hall._load
    for attempts, expected in zip(limits, (200, 503), strict=True):
        left = iter(range(attempts))

        async def displaced(game, left=left):
            room = await load(game)
            if next(left, None) is not None:
                api.hall.drop(room, "")
            return room

        drop(api, created)
        monkeypatch.setattr(api.hall, "_load", displaced)
        token = created["tokens"]["black"]
        assert api.call("GET", f"/api/games/{created['game']}", token).status_code == expected


def test_an_old_game_with_connections_is_not_deleted(new_server):
    """A deleted row would be written again with only the new moves."""
    api = new_server(running_idle=0.0)
    created, old = api.create(size=4), api.create(size=4)
    drop(api, old)
    with api.socket(created["game"], created["tokens"]["white"]) as white:
        api.move(created, "black", "b1", 0)
        white.until(lambda state: state["moves"])
        in_loop(api, api.hall.tidy)
        api.move(created, "white", "a1", 1)
        white.until(lambda state: len(state["moves"]) == 2)
    drop(api, created)
    assert api.state(created)["moves"] == ["b1", "a1"]
    assert api.call("GET", f"/api/games/{old['game']}", old["tokens"]["black"]).status_code == 404
