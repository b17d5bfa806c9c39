"""Nonsense in all quantities: no crash, no 500, nothing changed in anybody's game, memory bounded."""

import asyncio
import re
import signal
from pathlib import Path

import pytest

from benchmarks.server import memory_mib
from play.server.workers.precompiling import BEGUN, DONE
from tests.oracles.jobs import children_of

from .conftest import eventually
from .fuzz import half_open, storm
from .test_store import Killable

#: What the server may answer to nonsense: success where it was none, refusals, or a closed connection. 5xx only if it is full.
EXPECTED = {0, 101, 200, 201, 400, 401, 403, 404, 405, 408, 409, 413, 426, 429}


def workers_of(pid):
    """The children that search, and not the one that compiles what nobody has asked for yet."""
    return [child for child in children_of(pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


@pytest.mark.usefixtures("clean_log")
def test_nonsense_changes_nothing_and_breaks_nothing(special):
    api = special(largest_transcript=20_000, database=":memory:")
    bystander, target = api.create(size=6), api.create(size=8)
    api.move(bystander, "black", "b3", 0)
    before = api.state(bystander), api.state(target)
    found = asyncio.run(storm(api.url, target["game"], target["tokens"]["spectator"], 1_000))
    assert found["statuses"].keys() <= EXPECTED, found["statuses"]
    assert found["statuses"][400] > 30
    assert found["codes"]["bad_message"] > 100
    eventually(lambda: api.hall.connections.total() == 0, "the end of all connections")  # a state counts the spectators
    after = api.state(bystander), api.state(target)
    for old, new in zip(before, after, strict=True):
        assert new == old | {"revision": new["revision"]}
    assert api.move(bystander, "white", after[0]["legal"][0], 1).status_code == 200


@pytest.mark.usefixtures("clean_log")
def test_a_players_nonsense_stays_in_the_players_game(special):
    """The same as a player, who may move; the other game does not."""
    api = special()
    bystander, target = api.create(size=8), api.create(size=8)
    before = api.state(bystander)
    found = asyncio.run(storm(api.url, target["game"], target["tokens"]["black"], 600, seed=1))
    assert found["statuses"].keys() <= EXPECTED, found["statuses"]
    assert api.state(bystander) == before
    assert all(move in ("d3", "pass") for move in api.state(target)["moves"])


@pytest.mark.slow
@pytest.mark.parametrize("count", [6_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_much_nonsense_and_half_open_connections(tmp_path, count):
    """Against a server process with its usual limits: it answers as before, has not grown, and its log says nothing."""
    server = Killable(tmp_path / "games.sqlite3")
    target, bystander = server.ask("/api/games", body={}), server.ask("/api/games", body={"size": 6})
    token = bystander["tokens"]["spectator"]
    before = server.ask(f"/api/games/{bystander['game']}", token)
    place = (server.url, target["game"], target["tokens"]["spectator"])

    async def attack():
        await storm(*place, 2_000, seed=2)
        grown_from = memory_mib(server.process.pid)
        waiting = await half_open(server.url, 200)
        found = await storm(*place, count, seed=3)
        for writer in waiting:
            writer.close()
        return grown_from, found

    workers = workers_of(server.process.pid)
    grown_from, found = asyncio.run(attack())
    assert found["statuses"].keys() <= EXPECTED, found["statuses"]
    assert found["statuses"][101] > 0
    assert found["codes"].keys() & {"500", "502", "503"} == set(), found["codes"]
    assert server.ask(f"/api/games/{bystander['game']}", token) == before
    assert workers_of(server.process.pid) == workers  # none was lost
    grown_to = memory_mib(server.process.pid)
    print(f"{count} messages: {found}; memory {grown_from} MiB before, {grown_to} after")
    if grown_from is not None and grown_to is not None:
        assert grown_to - grown_from < 40
    status, errors = server.end(signal.SIGTERM)
    assert re.fullmatch(rf"games are stored in .*\n({BEGUN}\n)?({DONE}\n)?", errors), errors
    assert status in (0, 143, -signal.SIGTERM)
