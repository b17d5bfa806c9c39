"""The load benchmark, small: it counts what happens."""

from contextlib import nullcontext

import pytest

from benchmarks import server
from benchmarks.server import GENTLE, WARM_GAMES, load, load_under_attack, running_server
from play.server.messages import Refused


def test_games_are_played_to_their_ends_and_timed(api):
    found = load(api.url, 3, "greedy", 0.0)
    assert found["errors"] == 0
    assert found["moves"] > 3 * 20
    assert 0 < found["answer_median_ms"] <= found["answer_p99_ms"] <= found["answer_max_ms"]


def test_errors_are_counted(api, monkeypatch):
    """A server that refuses every new game after the first ones."""
    create, warm = api.hall.create, iter(range(WARM_GAMES))

    async def failing(request, client):
        if next(warm, None) is None:
            raise Refused(503, "full", "full")
        return await create(request, client)

    monkeypatch.setattr(api.hall, "create", failing)
    assert load(api.url, 3, "greedy", 0.0)["errors"] == 3


def test_the_gentle_have_addresses_of_their_own(special, monkeypatch):
    api = special(proxies=("127.0.0.1",))
    monkeypatch.setattr(server, "WARM_AGENTS", ())
    monkeypatch.setattr(server, "GENTLE", ("random", "greedy"))
    monkeypatch.setattr(server, "attacked", lambda url: nullcontext({}))
    found = load_under_attack(api.url, 2, 0.0)
    assert found["errors"] == 0
    assert all(times["moves"] > 2 * 15 for times in found["agents"].values())
    assert api.hall.running == {"198.51.100.0": 2, "198.51.100.1": 2}


@pytest.mark.slow
@pytest.mark.long
def test_an_attack_by_one_address_keeps_nobody_waiting():
    with running_server("--workers", "2", "--proxy", "127.0.0.1") as (url, _):
        found = load_under_attack(url, 4, 0.3)
    assert found["errors"] == 0
    assert found["attack"]["network:time=5 moves"] > 0
    for agent in GENTLE:
        assert found["agents"][agent]["answer_median_ms"] < 300, found
