"""Clocks on the server: they run without connections and out of memory, but not while the server is down."""

import asyncio
import queue

import pytest

from play.server.games import clock as clocks
from play.server.games.clock import Clock, RateLimiter
from reversi_env.notation import read_ggf_game
from reversi_env.rules import BLACK

from .conftest import WAIT_SECONDS, eventually, stop

HUNDRED = {"seconds": 100, "increment": 0}


class FakeTime:
    """Time that the test advances."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def fake_time():
    return FakeTime()


def in_loop(api, work, *arguments):
    """Call *work* in the server's event loop; return its result."""

    async def run():
        result = work(*arguments)
        return await result if asyncio.isfuture(result) or asyncio.iscoroutine(result) else result

    return asyncio.run_coroutine_threadsafe(run(), api.hall.store._loop).result(WAIT_SECONDS)


def drop(api, created):
    in_loop(api, api.hall.drop, api.hall.rooms[created["game"]], "")


def left(api, created, colour="white"):
    state = api.state(created)
    return state["clock"][colour] if state["status"] == "running" else state["result"]


LOST = {"winner": "black", "score": 16, "ending": "timeout"}


def start_game(api, **request):
    """Create a game of two people in which black has moved."""
    created = api.create(size=4, clock=HUNDRED, **request)
    assert api.move(created, "black", "b1", 0).status_code == 200
    return created


@pytest.mark.parametrize("dropped", [False, True])
def test_time_runs_without_a_connection(new_server, fake_time, dropped):
    api = new_server(monotonic=fake_time, clock_grace=2.0)
    created = api.create(size=4, clock=HUNDRED)
    fake_time.now += 500  # before the first move no time runs
    assert api.move(created, "black", "b1", 0).status_code == 200
    for seconds, expected in ((60, 40), (39.5, 0.5), (1.5, 0), (1.1, LOST), (9, LOST)):
        fake_time.now += seconds
        if dropped:
            drop(api, created)
        assert left(api, created) == expected
    assert api.state(created)["clock"] == {"black": 100, "white": 0, "increment": 0, "running": None, "grace": 2.0}
    late = api.move(created, "white", "a1", 1)
    assert (late.status_code, late.json()["code"]) == (409, "game_over")
    assert api.state(created)["moves"] == ["b1"]
    [row] = in_loop(api, api.hall.store.run, lambda c: list(c.execute("SELECT ending, loser FROM games")))
    assert tuple(row) == ("timeout", 1)


def test_time_runs_for_games_out_of_memory(new_server, fake_time):
    api = new_server(monotonic=fake_time, room_idle=0.0, sweep_every=0.01, clock_grace=2.0)
    created = start_game(api)
    for gone in (10, 20, 30):
        eventually(lambda: created["game"] not in api.hall.rooms, "the leaving")
        fake_time.now += 10
        assert left(api, created) == 100 - gone
    fake_time.now += 71.5
    assert api.move(created, "white", "a1", 1).json()["clock"]["white"] == 0
    assert api.move(created, "black", "c4", 2).status_code == 200
    record = api.call("GET", f"/api/games/{created['game']}/record", created["tokens"]["spectator"]).text
    assert read_ggf_game(record).annotations[1].seconds == 101.5
    eventually(lambda: created["game"] not in api.hall.rooms, "the leaving")
    fake_time.now += 0.75
    assert left(api, created) == LOST


@pytest.mark.parametrize("agent", ["greedy", "six-factor:depth=2", "six-factor:time=2", "greedy-invincible:exact=18"])
def test_a_clock_does_not_make_quick_agents_long(new_server, monkeypatch, agent):
    """Long searches leave a worker free for others; searches of quick agents are never long."""
    api, jobs = new_server(), queue.SimpleQueue()

    async def note(client, job, game):
        jobs.put(job)
        await asyncio.Event().wait()

    monkeypatch.setattr(api.hall.pool, "search", note)
    start_game(api, white={"kind": "agent", "agent": agent})
    job = jobs.get(timeout=WAIT_SECONDS)
    assert job.is_long == ("time" in agent or "exact" in agent)
    assert 1 < job.share < job.most


def test_rate_limiter_allows_a_burst_and_refills(monkeypatch, fake_time):
    monkeypatch.setattr(clocks, "monotonic", fake_time)
    limiter = RateLimiter(burst=2, rate=0.5)
    assert [limiter.try_acquire("one") for _ in range(3)] == [True, True, False]
    assert limiter.try_acquire("another")
    fake_time.now += 2
    assert [limiter.try_acquire("one") for _ in range(2)] == [True, False]
    fake_time.now += 1000
    assert [limiter.try_acquire("one") for _ in range(3)] == [True, True, False]
    assert [limiter.reserve("one", max_wait=4.0) for _ in range(3)] == [2.0, 4.0, None]
    assert [limiter.reserve("two", cost) for cost in (1.5, 1.0, 0.5)] == [0.0, 1.0, 2.0]


def test_increments_first_repay_the_used_grace():
    clock = Clock(10.0, 10.0, 3.0, 2.0)
    clock.run(BLACK, 0.0)
    assert clock.until_flag(10.0) == 2.0
    assert clock.press(BLACK, 11.0)
    assert clock.left(BLACK, 11.0) == 2.0
    clock.run(BLACK, 11.0)
    assert not clock.press(BLACK, 15.0)
    assert clock.state(15.0).black == 0  # a late move gets no increment


def test_a_move_taken_back_earns_no_increment(new_server, fake_time):
    api = new_server(fake_time)
    created = api.create(size=4, clock={"seconds": 10, "increment": 60})

    def clocks():
        state = api.state(created)["clock"]
        return state["black"], state["white"]

    def undo(*colours):  # one side asks, the other agrees
        for colour in colours:
            assert api.call("POST", f"/api/games/{created['game']}/undo", created["tokens"][colour]).status_code == 200

    assert api.move(created, "black", "b1", 0).status_code == 200
    assert clocks() == (10, 10)  # before the first move no time runs
    for _ in range(3):
        fake_time.now += 3
        assert api.move(created, "white", "a1", 1).status_code == 200
        undo("white", "black")
    assert clocks() == (10, 1)  # at least one second is left after an undo
    fake_time.now += 0.75
    assert api.move(created, "white", "a1", 1).status_code == 200
    assert clocks() == (10, 60.25)
    undo("black", "white")  # both moves
    assert clocks() == (10, 1)
    assert not api.state(created)["moves"]


def test_a_timeout_is_detected_without_a_request(new_server):
    api = new_server(clock_grace=0.2)
    created = api.create(size=4, clock={"seconds": 1, "increment": 0.5})
    api.move(created, "black", "b1", 0)
    with api.socket(created["game"], created["tokens"]["spectator"]) as socket:
        drop(api, created)
    with api.socket(created["game"], created["tokens"]["spectator"]) as socket:
        state = socket.until(lambda state: state["status"] == "finished")
    assert (state["result"], state["clock"]["white"], state["clock"]["black"]) == (LOST, 0, 1)


def test_no_time_runs_while_the_server_is_down(new_server, fake_time, tmp_path, monkeypatch):
    """A killed server returns the time since its last stored time, but no time before a later stored move."""

    async def nothing():
        pass

    api = new_server(database=tmp_path / "games.sqlite3", monotonic=fake_time)
    created = start_game(api)
    for is_killed, seconds in ((False, 70), (True, 40), (False, 10)):
        fake_time.now += 30
        if is_killed:
            in_loop(api, api.hall.tidy)  # as the sweeper does
            monkeypatch.setattr(api.hall, "tidy", nothing)
            fake_time.now += 15
        stop(api, tmp_path / "games.sqlite3")
        fake_time = FakeTime(7.0)  # monotonic time starts anew after a reboot
        api = new_server(database=tmp_path / "games.sqlite3", monotonic=fake_time)
        assert left(api, created) == seconds
    monkeypatch.setattr(api.hall, "tidy", nothing)
    fake_time.now += 5
    assert api.move(created, "white", "a1", 1).status_code == 200
    stop(api, tmp_path / "games.sqlite3")
    fake_time = FakeTime(7.0)
    api = new_server(database=tmp_path / "games.sqlite3", monotonic=fake_time)
    fake_time.now += 60
    assert left(api, created, "black") == 40


@pytest.mark.parametrize("returns", ["by socket", "by request", "to a dropped room"])
def test_agents_search_and_use_time_only_if_somebody_is_present(new_server, fake_time, monkeypatch, returns):
    api, events = new_server(monotonic=fake_time), queue.SimpleQueue()

    async def search(client, job, game):
        events.put(job.share)
        try:
            await asyncio.Event().wait()
        finally:
            events.put("dropped")

    monkeypatch.setattr(api.hall.pool, "search", search)
    created = api.create(size=4, clock=HUNDRED, white={"kind": "agent", "agent": "six-factor:time=5"})
    game, tokens = created["game"], created["tokens"]
    with api.socket(game, tokens["black"]) as black, api.socket(game, tokens["spectator"]):
        black.send(type="move", move="b1", ply=0)
        share = events.get(timeout=WAIT_SECONDS)
    assert events.get(timeout=WAIT_SECONDS) == "dropped"
    fake_time.now += 90
    if returns == "by socket":
        with api.socket(game, tokens["black"]) as black:
            assert black.expect("state")["clock"]["white"] == 100
            assert events.get(timeout=WAIT_SECONDS) == share
        return
    if returns == "to a dropped room":
        drop(api, created)
    assert left(api, created) == 100  # a request counts as presence
    assert events.get(timeout=WAIT_SECONDS) == share
