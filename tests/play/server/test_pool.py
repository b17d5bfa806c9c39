"""The worker pool: order of searches, lost workers, stopping."""

import asyncio
import os
import signal
from typing import ClassVar

import msgspec
import pytest

from play.server import catalogue
from play.server.messages import Refused
from play.server.options import ServerOptions
from play.server.workers import pool as pools
from play.server.workers.analysis import analyse
from play.server.workers.pool import Pool
from play.server.workers.worker import Answer, Job, Searcher
from reversi_env import Position, Rules
from reversi_env.rules import BLACK, WHITE
from search.agents.book import packaged_book
from search.engine.engine import Engine
from search.engine.limits import Limits

from .conftest import refusal


class FakeWorker:
    """A worker that answers on the test's request."""

    all: ClassVar[list["FakeWorker"]] = []

    def __init__(self, is_process, on_answer, on_end):
        self.on_answer, self.sent, self.searches = on_answer, [], {}
        FakeWorker.all.append(self)

    def send(self, message):
        self.sent.append(message)

    def end(self):
        pass

    async def answer(self, cpu):
        self.on_answer(self, [Answer(job.number, cpu) for job in self.sent[-1]])
        await settle()


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def names(worker):
    """Return the names of the searches that a worker was given."""
    await settle()
    return [job.agent.partition(":")[2] for jobs in worker.sent if isinstance(jobs, list) for job in jobs]


def search(pool, client, name, *, game=None, is_long=False, agent="random"):
    """Start a search that the test identifies by *name*."""
    wanted = job(-1, agent=f"{agent}:{name}", seconds=1.0 if is_long else None)
    return asyncio.create_task(pool.search(client, wanted, game))


async def ask(pool, *names, unit="client"):
    """Start searches of the clients, or of the games of one client, in the first word of each name."""
    for name in names:
        owner = name.split()[0]
        search(pool, *((owner, name) if unit == "client" else ("all", name)), game=name if unit == "client" else owner)
    await settle()


def scenario(workers):
    """Run a test with a pool of fake workers in an event loop; cancel unfinished searches at its end."""

    def wrap(test):
        def run():
            async def within():
                pool = Pool(workers)
                pool.start()
                await test(pool, *FakeWorker.all)
                pool.close()
                await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(FakeWorker, "all", [])
                patch.setattr(pools, "Worker", FakeWorker)
                asyncio.run(within())

        return run

    return wrap


@pytest.mark.parametrize("unit", ["game", "client"])
def test_heavy_users_wait_for_light_users(unit):

    @scenario(workers=1)
    async def run_scenario(pool, worker):
        async def answer(*cpu):
            for seconds in cpu:
                await worker.answer(seconds)

        await ask(pool, "hog 1", unit=unit)
        await ask(pool, "hog 2", "hog 3", unit=unit)
        await answer(3.0)  # the hog's first search took three seconds
        await ask(pool, "a 1", "b 1", unit=unit)
        await answer(1.0, 1.0)
        await ask(pool, "a 2", unit=unit)
        await answer(0.1, 0.1, 0.1)
        order = await names(worker)
        assert order[:2] == ["hog 1", "hog 2"]  # started while no other client was present
        assert max(order.index("a 1"), order.index("b 1")) < order.index("hog 3")

    run_scenario()


@scenario(workers=3)
async def test_concurrent_searches_are_all_charged(pool, *workers):
    await ask(pool, "hog 1", "hog 2", "other 1")
    for worker, seconds in zip(workers, (3.0, 3.0, 4.0), strict=True):
        await worker.answer(seconds)
    await ask(pool, "x 1", "x 2", "y 1")
    await ask(pool, "hog 3", "other 2")
    await workers[0].answer(0.0)
    assert await names(workers[0]) == ["hog 1", "x 1", "other 2"]


@scenario(workers=2)
async def test_many_short_searches_are_batched_and_few_are_not(pool, *workers):
    searches = [search(pool, f"game {i}", "quick") for i in range(300)]
    for _ in range(300):  # the pool learns that these searches are quick
        await settle()
        for worker in workers:
            await worker.answer(0.0002)
    assert all(task.done() for task in searches)
    assert 4 < max(len(jobs) for worker in workers for jobs in worker.sent) <= pools.MAX_BATCH
    for i, _ in enumerate(workers):
        search(pool, f"game {i}", "quick")
    await settle()
    assert [len(worker.sent[-1]) for worker in workers] == [1, 1]


@scenario(workers=2)
async def test_long_searches_leave_a_worker_free(pool, first, second):
    for i in range(3):
        search(pool, f"game {i}", f"long {i}", is_long=True)
    assert await names(first) + await names(second) == ["long 0"]
    search(pool, "quick", "short")
    assert await names(second) == ["short"]
    await first.answer(1.0)
    assert await names(first) == ["long 0", "long 1"]
    assert pool.waiting == 1


@scenario(workers=2)
async def test_one_client_leaves_a_worker_to_present_clients(pool, first, second):
    for i in range(3):
        search(pool, "hog", f"hog {i}")
    assert (await names(first), await names(second)) == (["hog 0"], ["hog 1"])  # nobody else is present
    search(pool, "a", "a 0")
    await first.answer(0.001)
    await second.answer(0.001)
    assert (await names(first), await names(second)) == (["hog 0", "a 0"], ["hog 1", "hog 2"])
    search(pool, "hog", "hog 3")
    await first.answer(0.001)
    assert await names(first) == ["hog 0", "a 0"]  # one worker stays free for others
    search(pool, "b", "b 0")
    assert await names(first) == ["hog 0", "a 0", "b 0"]


@scenario(workers=2)
async def test_agents_that_may_need_compilation_leave_a_worker_free(pool, first, second):
    for name in ("six-factor", "discs"):
        search(pool, "a", name, agent=name)
    search(pool, "b", "short")
    assert (await names(first), await names(second)) == (["six-factor"], ["short"])
    for worker in (first, second, first):
        await worker.answer(0.001)
    for client in "ab":
        search(pool, client, "again", agent="discs")
    assert await names(first) == ["six-factor", "discs", "again"]
    assert await names(second) == ["short", "again"]  # it is compiled now


@scenario(workers=1)
async def test_cancelled_searches_are_stopped_or_not_started(pool, worker):
    running, waiting = search(pool, "a", "begun"), search(pool, "b", "waiting")
    await settle()
    running.cancel()
    waiting.cancel()
    await settle()
    [number] = [job.number for job in worker.sent[0]]
    assert worker.sent[-1] == number
    worker.on_answer(worker, [Answer(number)])
    search(pool, "c", "last")
    assert await names(worker) == ["begun", "last"]


def job(number, kind="move", position=None, *, agent="six-factor:depth=2", seconds=None):
    """Return a job of an agent on 6x6."""
    return Job(kind, position or Position.initial(Rules(6)), agent, 1, seconds, 5, number)


def test_search_time_is_the_agents_own_or_the_clocks(monkeypatch):
    times, search, searcher = [], Engine.search, Searcher()

    def note(engine, position, limits, **options):
        times.append((limits.time, limits.soft))
        return search(engine, position, Limits(depth=1), **options)

    monkeypatch.setattr(Engine, "search", note)
    for own, share, most in ((None, None, None), (None, 1.0, 3.0), (2.0, None, None), (2.0, 3.0, 9.0), (2.0, 0.2, 0.5)):
        assert searcher.answer(msgspec.structs.replace(job(1, seconds=own), share=share, most=most)).result["move"]
        assert times[-1] == (min(filter(None, (own, most)), default=None), share)


def test_agents_use_the_packaged_book_on_request():
    position = Position.initial().play_all(["f5", "d6"])
    values = {move.move: move.value for move in packaged_book(Rules()).moves(position) if move.plays}
    wide = "network:depth=1,book=yes,variety=1"
    jobs = [Job("move", position, wide, 1, seed=seed) for seed in range(20)]
    results = [Searcher().answer(one).result for one in jobs]
    assert {one["move"] for one in results} == set(values) == {"c3", "c4"}
    assert all(one["value"] == values[one["move"]] for one in results)
    with pytest.raises(Refused, match="6x6"):
        catalogue.limited_agent("network:depth=1,book=yes", 6, ServerOptions())


def test_a_stop_before_the_search_takes_effect():
    searcher = Searcher()
    searcher.answer(job(1))  # loads the kernels
    searcher.stopped = 2
    answer = searcher.answer(job(2, agent="six-factor:depth=30", seconds=600.0))
    assert answer.result["move"] in Position.initial(Rules(6)).legal_moves()


@pytest.mark.parametrize("board", ["X" * 16, "XO" * 32, "-" * 16, "X" + "-" * 35, "O" * 15 + "-", "OX" + "-" * 62])
@pytest.mark.parametrize("seconds", [1e-12, 0.05])
def test_any_position_is_analysed_in_any_time_limit(board, seconds):
    for turn in (BLACK, WHITE):
        position = Position.from_text(board, turn)
        answer = Searcher().answer(job(1, "analyse", position, seconds=seconds))
        assert not answer.error
        result = answer.result
        assert result["move"] in (None if position.is_over() else position.legal_moves()[0], *position.legal_moves())
        assert result["exact"] or result["depth"] >= 1
        if position.is_over():
            assert (result["exact"], result["value"], result["moves"]) == (True, position.score(), [])


@pytest.mark.parametrize("moves", [[], ["b1", "a1", "c4"]])
def test_an_analysis_stopped_before_depth_1_has_an_answer(monkeypatch, moves):
    position = Position.initial(Rules(4)).play_all(moves)
    engine = Engine("six-factor", position.rules, megabytes=1)
    for switch in (engine.switch, engine.solver.switch):
        monkeypatch.setattr(switch, "withdraw", switch.request)  # every search is stopped at its start
    result = analyse(engine, position, 1.0)
    assert result["move"] in position.legal_moves()
    assert not result["exact"]
    assert result["depth"] == 0


def test_a_failed_search_does_not_stop_the_next(new_server, monkeypatch, caplog):
    api = new_server()
    body = {"board": "X" * 16, "turn": "black", "seconds": 1e-12, "agent": "six-factor"}
    assert api.call("POST", "/api/analyse", json=body).json()["exact"]
    with monkeypatch.context() as broken:
        broken.setattr(Engine, "clear", lambda engine: [][0])
        assert refusal(api.call("POST", "/api/analyse", json=body)) == (503, "lost")
    assert "IndexError" in caplog.text  # the operator finds the reason in the log
    assert api.call("POST", "/api/analyse", json=body).json()["value"] == 16


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_the_search_repeated(new_server, caplog):
    api = new_server(workers=1, watch_pace=0.0)
    slow = {"kind": "agent", "agent": "six-factor:time=1.5"}
    created = api.create(size=6, black=slow, white={"kind": "agent", "agent": "greedy"})
    with api.socket(created["game"], created["tokens"]["spectator"]) as socket:
        socket.expect("state")
        (pid,) = api.hall.pool.pids()
        os.kill(pid, signal.SIGKILL)
        state = socket.until(lambda s: len(s["moves"]) >= 2)
    assert state["status"] == "running"
    assert api.hall.pool.pids() != [pid]
    assert f"status {-signal.SIGKILL}" in caplog.text
