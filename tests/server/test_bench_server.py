"""The load benchmark, small: it counts what happens."""

from play.bench.server import load


def test_games_are_played_to_their_ends_and_timed(api):
    found = load(api.url, 6, "greedy", 0.0)
    assert found["errors"] == 0
    assert found["moves"] > 6 * 20
    assert 0 < found["answer_median_ms"] <= found["answer_p99_ms"] <= found["answer_max_ms"]


def test_errors_are_counted(api):
    found = load(api.url, 1, "greedy", 0.0) | {}
    assert found["errors"] == 0
    broken = load_with_refusals(api)
    assert broken["errors"] == 3


def load_with_refusals(api):
    """A server that refuses every new game after the warm ones."""
    create, warm = api.hall.create, iter(range(8))

    async def failing(request, client):
        from play.server.messages import Refused

        if next(warm, None) is None:
            raise Refused(503, "full", "full")
        return await create(request, client)

    api.hall.create = failing
    try:
        return load(api.url, 3, "greedy", 0.0)
    finally:
        del api.hall.create
