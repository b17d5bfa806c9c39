"""Games outlive the server: closed, dropped from memory, or killed."""

import json
import random
import re
import signal
import sqlite3
import threading
import time
import urllib.request

import pytest

from play.server import addresses
from play.server.games.store import StoreError, opened
from tests.oracles.jobs import children_of, launch
from tests.search.agents.test_external import gone

from .conftest import WAIT_SECONDS, eventually, stop
from .test_clocks import in_loop

GREEDY = {"kind": "agent", "agent": "greedy"}


def test_a_new_server_has_the_old_ones_games(special, tmp_path):
    database = tmp_path / "games.sqlite3"
    first = special(database=database)
    running = first.create(size=6, variant="reversed", clock={"seconds": 100, "increment": 1})
    first.move(running, "black", "b3", 0)
    resigned = first.create(size=4, white=GREEDY)
    first.call("POST", f"/api/games/{resigned['game']}/resign", resigned["tokens"]["black"])
    before = [first.state(running), first.state(resigned)]
    stop(first, database)
    second = special(database=database)
    after = [second.state(running), second.state(resigned)]
    for old, new in zip(before, after, strict=True):
        old["clock"] = new["clock"] = None  # time goes on
        assert new == old
    assert second.move(running, "white", after[0]["legal"][0], 1).status_code == 200
    wrong = second.call("GET", f"/api/games/{running['game']}", resigned["tokens"]["black"])
    assert wrong.status_code == 403


def test_a_game_goes_on_under_narrower_limits(special, tmp_path):
    database = tmp_path / "games.sqlite3"
    first = special(database=database)
    created = first.create(size=4, white={"kind": "agent", "agent": "six-factor:time=4,exact=16"})
    stop(first, database)
    second = special(database=database, longest_think=0.05)
    assert second.move(created, "black", "b1", 0).status_code == 200
    assert second.hall.rooms[created["game"]].agents[1].seconds == 0.05
    eventually(lambda: len(second.state(created)["moves"]) >= 2)
    wanted = {"white": {"kind": "agent", "agent": "six-factor:time=4"}}
    assert second.call("POST", "/api/games", json=wanted).status_code == 400


def test_games_that_nobody_attends_leave_the_memory_and_come_back(special):
    api = special(room_idle=0.0, sweep_every=0.02)
    created = api.create(size=4, white=GREEDY)
    api.move(created, "black", "b1", 0)
    eventually(lambda: created["game"] not in api.hall.rooms, "the leaving")
    state = api.state(created)
    assert state["moves"][0] == "b1"
    assert eventually(lambda: len(api.state(created)["moves"]) >= 2)  # the agent had not moved, or has


def test_old_games_are_forgotten(special, monkeypatch):
    api = special(room_idle=0.0, sweep_every=0.02, running_idle=3600.0, finished_kept=5 * 3600.0)
    running, finished = api.create(size=4), api.create(size=4)
    api.call("POST", f"/api/games/{finished['game']}/resign", finished["tokens"]["black"])
    token, clock = running["tokens"]["spectator"], time.time
    monkeypatch.setattr("play.server.games.hall.time.time", lambda: clock() + 2 * 3600)
    eventually(lambda: api.call("GET", f"/api/games/{running['game']}", token).status_code == 404, "forgetting")
    assert api.state(finished)["status"] == "finished"


def test_a_full_memory_makes_room(special):
    api = special(most_rooms=2)
    created = [api.create(size=4) for _ in range(5)]
    assert len(api.hall.rooms) <= 2
    for game in created:
        assert api.move(game, "black", "b1", 0).status_code == 200


def test_a_game_that_cannot_be_written_is_not_told(special, monkeypatch):
    api = special()
    created = api.create(size=4)
    store = api.hall.store
    with monkeypatch.context() as broken:
        broken.setattr(store, "save", lambda *_: store.run(lambda c: c.execute("INSERT INTO nowhere VALUES (1)")))
        refused = api.move(created, "black", "b1", 0)
    assert (refused.status_code, refused.json()["code"]) == (503, "storage")
    assert api.state(created)["moves"] == []
    assert api.move(created, "black", "b1", 0).status_code == 200


@pytest.mark.parametrize("path", ["", "/record"])
def test_nobody_who_asks_is_told_of_a_move_before_it_is_written(special, monkeypatch, path):
    api = special()
    created = api.create(size=4)
    store, room, asked = api.hall.store, api.hall.rooms[created["game"]], threading.Event()

    def fail(connection):
        assert asked.wait(WAIT_SECONDS)
        connection.execute("INSERT INTO nowhere VALUES (1)")

    def noticed(told):
        def tell():
            found = told()
            asked.set()
            return found

        return tell

    with api.socket(created["game"], created["tokens"]["black"]) as black, monkeypatch.context() as broken:
        broken.setattr(store, "save", lambda *_: store.run(fail))
        black.send(type="move", move="b1", ply=0)
        eventually(lambda: room.game.moves, "the move")
        broken.setattr(room, "state", noticed(room.state))
        broken.setattr(room.game, "to_ggf", noticed(room.game.to_ggf))
        refused = api.call("GET", f"/api/games/{created['game']}{path}", created["tokens"]["white"])
    assert (refused.status_code, refused.json()["code"]) == (503, "storage")
    assert api.state(created)["moves"] == []


def test_another_programs_database_is_left_alone(tmp_path):
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE things (a)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="version 0") as refused:
        opened(tmp_path / "other")
    other = sqlite3.connect(tmp_path / "other", timeout=0)
    other.execute("CREATE TABLE more (a)")  # not held any longer, even while the refusal is looked at
    other.close()
    assert refused.value


# --- kill -9 ----------------------------------------------------------------------------------------


class Killable:
    """A server in a process of its own."""

    def __init__(self, database):
        self.process = launch("serve", "--port", 0, "--workers", 1, "--database", database)
        self.url = re.search(r"http://\S+", self.process.stdout.readline()).group()

    def ask(self, path, token=None, body=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            return json.load(response)

    def end(self, signal_number):
        self.process.send_signal(signal_number)
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        return self.process.returncode, errors


@pytest.mark.slow
def test_a_killed_server_has_lost_nothing_it_told(tmp_path):
    """Many games, half of them finished; every state that a client has seen must be there after the kill."""
    database, generator = tmp_path / "games.sqlite3", random.Random(1)
    server = Killable(database)
    seen = {}
    for number in range(16):
        body = {"size": 4, "white": GREEDY} if number % 2 else {"size": 4}
        created = server.ask("/api/games", body=body)
        path, tokens = f"/api/games/{created['game']}", created["tokens"]
        state = server.ask(path, tokens["spectator"])
        for _ in range(60 if number % 3 == 0 else number % 7):
            if state["status"] == "finished":
                break
            if state["turn"] in tokens:
                move = {"move": generator.choice(state["legal"]), "ply": len(state["moves"])}
                state = server.ask(f"{path}/moves", tokens[state["turn"]], move)
            else:
                state = server.ask(path, tokens["spectator"])
        if number % 5 == 0 and state["status"] == "running":
            state = server.ask(f"{path}/resign", tokens["black"], {})
        seen[created["game"]] = (tokens["spectator"], state)
    workers = children_of(server.process.pid)
    server.end(signal.SIGKILL)
    eventually(lambda: all(map(gone, workers)), "the end of the workers")
    again = Killable(database)
    finished = 0
    for game, (token, before) in seen.items():
        after = again.ask(f"/api/games/{game}", token)
        assert after["moves"][: len(before["moves"])] == before["moves"]
        if before["status"] == "finished":
            assert after == before | {"black": after["black"], "white": after["white"]}
            finished += 1
    assert 3 < finished < 16
    status, errors = again.end(signal.SIGINT)  # and Ctrl-C ends it cleanly
    assert status in (0, 130, -signal.SIGINT)
    assert "Traceback" not in errors


# --- reviews ----------------------------------------------------------------------------------------

REVIEW = {
    "board": "-----OX--XO-----",
    "turn": "black",
    "comment": "the start",
    "moves": [{"move": "b1", "variations": [[{"move": "a2", "comment": "or this"}]]}, {"move": "a1"}],
}


def test_a_review_is_kept_under_a_name_until_it_is_old(special, tmp_path, monkeypatch):
    database = tmp_path / "games.sqlite3"
    first = special(database=database)
    names = [first.call("POST", "/api/reviews", json=REVIEW).json()["review"] for _ in range(2)]
    assert len(set(names)) == 2
    assert min(map(len, names)) >= 22  # 128 random bits
    stop(first, database)
    second = special(database=database, sweep_every=0.02)
    path = f"/api/reviews/{names[0]}"
    assert second.call("GET", path).json() == REVIEW
    assert second.http.get(f"/review/{names[0]}").text == second.http.get("/").text
    for method in ("POST", "PUT", "PATCH", "DELETE"):  # nobody can change it
        assert second.http.request(method, path, json=REVIEW).status_code == 405
    clock = time.time
    monkeypatch.setattr("play.server.games.hall.time.time", lambda: clock() + 366 * 86_400)
    eventually(lambda: second.call("GET", path).status_code == 404, "forgetting")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"board": "-" * 17}, "17 squares"),
        ({"moves": [{"move": "z9"}]}, "$.moves[0].move"),
        ({"moves": [{"move": "a1", "comment": "x" * 1001}]}, "length <= 1000"),
        ({"moves": [{"move": "a1", "variations": [[{"move": "b1", "html": ""}]]}]}, "unknown field"),
        ({"moves": [{"move": "a1"}] * 3000}, "expected at most 32768"),
    ],
)
def test_reviews_are_checked(api, changes, reason):
    refused = api.call("POST", "/api/reviews", json=REVIEW | changes)
    assert refused.status_code in (400, 413)
    assert reason in refused.json()["message"]


def test_reviews_are_limited(special):
    api = special(review_burst=2, reviews_per_second=0.0)
    assert [api.call("POST", "/api/reviews", json=REVIEW).status_code for _ in range(3)] == [201, 201, 429]
    deep = b'{"board": "----------------", "turn": "black", "moves": ' + b'[{"move": "a1", "variations": [' * 1000
    assert api.call("POST", "/api/reviews", content=deep).status_code == 400


def test_who_shares_too_much_pushes_out_his_own_reviews(special, monkeypatch):
    """However many addresses flood it, a friend's link stays, and a new one finds room."""
    monkeypatch.setattr(addresses, "_own_address", lambda: "192.168.1.5")
    api = special(client_reviews=3, most_reviews=5, host="0.0.0.0", proxies=("127.0.0.1",))
    assert api.call("GET", "/api/agents").json()["address"] is None  # which the proxy alone knows

    def share(client):
        headers = {"X-Forwarded-For": client}
        return api.call("POST", "/api/reviews", json=REVIEW, headers=headers).json()["review"]

    def kept(names):
        return [api.call("GET", f"/api/reviews/{name}").status_code == 200 for name in names]

    friend = [share("10.0.0.1")]
    flood = [share("10.0.0.2") for _ in range(5)]  # its own share is three
    assert kept(flood) == [False, False, True, True, True]
    friend += [share("10.0.0.1"), share("10.0.0.1")]  # the second one is too many in all
    assert kept(friend) == [True, True, True]
    assert kept(flood) == [False, False, False, True, True]


def test_an_old_game_that_somebody_is_in_is_not_forgotten(special):
    """Only what changes would be written again: the moves before would be lost."""
    api = special(running_idle=0.0)
    created, old = api.create(size=4), api.create(size=4)
    in_loop(api, drop_room, api, old["game"])
    with api.socket(created["game"], created["tokens"]["white"]) as white:
        api.move(created, "black", "b1", 0)
        white.until(lambda state: state["moves"])
        in_loop(api, api.hall.tidy)
        api.move(created, "white", "a1", 1)
        white.until(lambda state: len(state["moves"]) == 2)
    in_loop(api, drop_room, api, created["game"])
    assert api.state(created)["moves"] == ["b1", "a1"]
    assert api.call("GET", f"/api/games/{old['game']}", old["tokens"]["black"]).status_code == 404


def test_tidying_looks_at_old_games_only(special):
    """A server has many more that are finished, and nothing is written while they are looked at."""
    api, asked = special(), []
    run = api.hall.store.run
    in_loop(api, run, lambda connection: connection.set_trace_callback(asked.append))
    in_loop(api, api.hall.tidy)
    explained = [f"EXPLAIN QUERY PLAN {sql}" for sql in asked if "FROM games" in sql]
    plans = in_loop(api, run, lambda connection: [row[3] for sql in explained for row in connection.execute(sql)])
    assert explained
    assert not [plan for plan in plans if plan.startswith("SCAN")]


def drop_room(api, game):
    api.hall.drop(api.hall.rooms[game], "")
