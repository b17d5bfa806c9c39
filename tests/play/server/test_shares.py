"""Limits per address: games, connections, search time; and the identification of addresses."""

import threading
from contextlib import ExitStack

import pytest

from play.server.addresses import known_as
from play.server.catalogue import limited_agent
from play.server.messages import Refused
from play.server.options import ServerOptions
from play.server.workers import worker as workers
from play.server.workers.worker import Job, Searcher
from reversi_env import Position, ReversiError
from search.engine.solver import Solver
from tests.oracles.jobs import PATIENCE

from .conftest import stop
from .test_refusals import connection

PROXY = ("127.0.0.1",)


def test_a_client_is_an_ipv4_address_or_an_ipv6_network():
    hosts = ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8:0:1::7", "2001:db8:0:1:ffff::", "fe80::1%eth0", "x" * 9_000, "")
    names = ["192.0.2.7", "192.0.2.7", "2001:db8:0:1::/64", "2001:db8:0:1::/64", "fe80::/64", "x" * 64, ""]
    assert [known_as(host) for host in hosts] == names


def created(api, forwarded="192.0.2.1"):
    """Return the status of a new game for an address that a proxy forwards."""
    headers = {"X-Forwarded-For": forwarded}
    return api.call("POST", "/api/games", json={"size": 4}, headers=headers).status_code


def test_games_per_address_are_limited_across_restarts(new_server, tmp_path):
    database = tmp_path / "games.sqlite3"
    first = new_server(database=database, proxies=PROXY, client_games=2)
    assert [created(first) for _ in range(3)] == [201, 201, 429]
    others = ("192.0.2.2", "evil, 192.0.2.1", "192.0.2.1:99")
    assert [created(first, other) for other in others] == [201, 429, 429]
    stop(first, database)
    second = new_server(database=database, proxies=PROXY, client_games=2)
    assert [created(second), created(second, "192.0.2.2")] == [429, 201]
    odd = ("", ",", "[", "[::1", "x" * 3_000, "1.2.3.4:x", "::1:1:1", "\u00e9")
    assert {created(second, each.encode("latin1")) for each in odd} == {201}


def test_forwarded_addresses_of_untrusted_proxies_are_ignored(new_server):
    api = new_server(proxies=("10.0.0.0/8",), client_games=1)
    assert [created(api), created(api, "192.0.2.2")] == [201, 429]
    assert not ServerOptions().trusted()
    with pytest.raises(ReversiError, match="nginx"):
        ServerOptions(proxies=("nginx",))


@pytest.mark.parametrize(("proxies", "refused"), [(None, 2), (PROXY, 0)])
def test_connections_per_address_are_limited(new_server, proxies, refused):
    api = new_server(client_connections=1, proxies=proxies)
    with ExitStack() as stack:
        raws = [stack.enter_context(connection(api)) for _ in range(4)]
        assert sum(map(is_closed, raws)) == refused


def is_closed(raw):
    """Return whether the server closed a connection instead of answering."""
    try:
        raw.sendall(b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return raw.recv(1) == b""
    except ConnectionError:
        return True


def test_transcripts_are_read_by_workers(api, monkeypatch):
    threads, read = [], workers.read_games

    def note(*arguments):
        threads.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(workers, "read_games", note)
    assert api.call("POST", "/api/transcripts", json={"text": "f5d6"}).json()["games"][0]["moves"] == ["f5", "d6"]
    assert threads == ["reversi-search"]


def test_every_agent_has_a_time_limit(monkeypatch):
    options = ServerOptions()
    specs = "greedy-invincible:exact=18 greedy-invincible greedy six-factor:depth=16 network:nodes=1"
    seconds = [limited_agent(spec, 8, options).seconds for spec in specs.split()]
    assert seconds == [5.0, None, None, 5.0, 5.0]


def test_stored_agents_lose_unsupported_options():
    spec, options = "greedy-invincible:exact=10,depth=3", ServerOptions()
    assert str(limited_agent(spec, 8, options, lenient=True).spec) == "greedy-invincible:exact=10"
    with pytest.raises(Refused):
        limited_agent(spec, 8, options)


def test_a_solving_agent_is_stopped_in_time(monkeypatch):
    stop_requested, solve = threading.Event(), Solver.solve

    def endless(solver, position):
        assert position.empties < 60 or stop_requested.wait(PATIENCE)  # few empties while kernels are loaded
        return solve(solver, position, node_limit=1)

    monkeypatch.setattr(Solver, "solve", endless)
    monkeypatch.setattr(Solver, "stop", lambda solver: stop_requested.set())
    position = Position.initial()
    answer = Searcher().answer(Job("move", position, "greedy-invincible:exact=60", 1, seconds=0.3, number=1))
    assert answer.result["move"] in position.legal_moves()
