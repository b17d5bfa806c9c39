"""Hostile messages in large numbers: no crash, no status 500, no change in other games, bounded memory."""

import asyncio
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.server import memory_mib
from play.server.workers.precompiling import DONE, MESSAGE
from tests.oracles.jobs import children_of

from .conftest import eventually
from .fuzz import storm
from .test_refusals import connection
from .test_store import ServerProcess

#: Allowed statuses: success of valid messages, refusals, or 0 for a closed connection. 5xx would be a fault.
EXPECTED = {0, 100, 101, 200, 201, 400, 401, 403, 404, 405, 408, 409, 413, 426, 429}


@pytest.mark.usefixtures("clean_log")
@pytest.mark.parametrize(("role", "seed"), [("spectator", 0), ("black", 1)])
def test_hostile_messages_affect_only_their_own_game(new_server, role, seed):
    api = new_server(max_transcript_bytes=20_000)
    bystander, target = api.create(size=6), api.create(size=8)
    api.move(bystander, "black", "b3", 0)
    before = api.state(bystander), api.state(target)
    counters = asyncio.run(storm(api.url, target["game"], target["tokens"][role], 800, seed))
    assert counters["statuses"].keys() <= EXPECTED, counters["statuses"]
    assert counters["statuses"][400] > 20
    assert counters["codes"]["bad_message"] > 80
    eventually(lambda: api.hall.connections.total() == 0, "the end of all connections")  # states count the spectators
    after = api.state(bystander), api.state(target)
    assert after[0] == before[0] | {"revision": after[0]["revision"]}
    if role == "spectator":
        assert after[1] == before[1] | {"revision": after[1]["revision"]}
    assert all(move in ("d3", "pass") for move in after[1]["moves"])
    assert api.move(bystander, "white", after[0]["legal"][0], 1).status_code == 200


def attack(server, count, seed, role="spectator"):
    """Send *count* hostile messages and open 200 incomplete requests; check that other games and the workers do not change."""

    def workers():
        """Return the search workers, without the process that compiles in the background."""
        children = children_of(server.process.pid)
        return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]

    target, bystander = server.create(), server.create(size=6)
    before, workers_before = server.state(bystander), workers()
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connection(server)).sendall(b"POST /api/games HTTP/1.1\r\nHo")
        counters = asyncio.run(storm(server.url, target["game"], target["tokens"][role], count, seed))
    assert counters["statuses"].keys() <= EXPECTED, counters["statuses"]
    assert counters["codes"].keys() & {"500", "502", "503"} == set(), counters["codes"]
    assert (server.state(bystander), workers()) == (before, workers_before)
    return counters


@pytest.mark.slow
@pytest.mark.long
def test_many_hostile_messages_and_half_open_connections(tmp_path):
    """`tests/project/test_fuzz.py` sends fewer messages."""
    server = ServerProcess(tmp_path / "games.sqlite3")
    attack(server, 2_000, seed=2)
    grown_from = memory_mib(server.process.pid)
    counters = attack(server, 50_000, seed=3)
    assert counters["statuses"][101] > 0
    grown_to = memory_mib(server.process.pid)
    print(f"50,000 messages: {counters}; memory {grown_from} MiB before, {grown_to} after")
    if grown_from is not None and grown_to is not None:
        assert grown_to - grown_from < 40
    status, errors = server.end(signal.SIGTERM)
    assert re.fullmatch(rf"games are stored in .*\n(the recorded games .*\n)?({MESSAGE}\n)?({DONE}\n)?", errors), errors
    assert status in (0, 143, -signal.SIGTERM)
