"""The load benchmark, small: it counts what happens."""

from benchmarks.server import WARM_GAMES, load
from play.server.messages import Refused


def test_games_are_played_to_their_ends_and_timed(api):
    found = load(api.url, 6, "greedy", 0.0)
    assert found["errors"] == 0
    assert found["moves"] > 6 * 20
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
