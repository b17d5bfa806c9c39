"""Whose search is next, what happens when a worker dies, and stopping."""

import asyncio
import os
import signal

import pytest

from play.server import pool as pools
from play.server.analysis import analyse
from play.server.pool import Pool
from play.server.worker import Searcher
from reversi_env import Position, Rules
from reversi_env.rules import BLACK, WHITE
from search.engine import Engine


class FakeWorker:
    """A worker that answers when the test says so."""

    all: list["FakeWorker"]

    def __init__(self, on_answer, on_end):
        self.on_answer, self.sent = on_answer, []
        FakeWorker.all.append(self)

    def send(self, message):
        self.sent.append(message)

    def end(self):
        pass

    def answer(self, cpu):
        self.on_answer(self, [{"number": job["number"], "cpu": cpu} for job in self.sent[-1]["jobs"]])


@pytest.fixture
def fakes(monkeypatch):
    FakeWorker.all = []
    monkeypatch.setattr(pools, "_Process", FakeWorker)
    return FakeWorker.all


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def names(worker):
    return [job["name"] for message in worker.sent for job in message.get("jobs", [])]


def test_a_game_that_used_much_waits_for_those_that_used_little(fakes):
    async def scenario():
        pool = Pool(1)
        pool.start()
        (worker,) = fakes
        tasks = []

        def ask(key, name):
            tasks.append(asyncio.create_task(pool.search(key, {"name": name}, is_long=False)))

        ask("hog", "hog 1")
        await settle()
        for name in ("hog 2", "hog 3"):
            ask("hog", name)
        await settle()
        worker.answer(3.0)  # the hog's first search took three seconds
        await settle()
        for name in ("a 1", "b 1"):
            ask(name[0], name)
        await settle()
        for _ in range(2):
            worker.answer(1.0)
            await settle()
        ask("a", "a 2")
        await settle()
        for _ in range(3):
            worker.answer(0.1)
            await settle()
        pool.close()
        return names(worker)

    order = asyncio.run(scenario())
    assert order[:2] == ["hog 1", "hog 2"]  # asked for while nobody else was there
    assert order.index("a 1") < order.index("hog 3")
    assert order.index("b 1") < order.index("hog 3")


def test_many_short_searches_travel_together_and_few_do_not(fakes):
    async def scenario():
        pool = Pool(2)
        pool.start()
        first, second = fakes

        def ask(count):
            message = {"name": "x", "spec": "quick"}
            return [asyncio.create_task(pool.search(f"game {i}", message, is_long=False)) for i in range(count)]

        tasks = ask(200)
        for _ in range(200):  # until it is known that they are quick
            await settle()
            for worker in fakes:
                worker.answer(0.0002)
        await settle()
        tasks += ask(100)
        await settle()
        most = max(len(message["jobs"]) for message in first.sent + second.sent)
        for _ in range(100):
            await settle()
            for worker in fakes:
                worker.answer(0.0002)
        done = [task.done() for task in tasks]
        tasks += ask(2)
        await settle()
        few = [len(worker.sent[-1]["jobs"]) for worker in fakes]
        pool.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        return most, all(done), few

    most, done, few = asyncio.run(scenario())
    assert done
    assert 4 < most <= pools.MOST_TOGETHER
    assert few == [1, 1]


def test_long_searches_leave_a_worker_free(fakes):
    async def scenario():
        pool = Pool(2)
        pool.start()
        first, second = fakes
        tasks = [asyncio.create_task(pool.search(f"game {i}", {"name": f"long {i}"}, is_long=True)) for i in range(3)]
        await settle()
        assert names(first) + names(second) == ["long 0"]
        tasks.append(asyncio.create_task(pool.search("quick", {"name": "short"}, is_long=False)))
        await settle()
        assert names(second) == ["short"]
        first.answer(1.0)
        await settle()
        assert names(first) == ["long 0", "long 1"]
        assert pool.waiting == 1
        pool.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scenario())


def test_a_search_that_nobody_waits_for_is_stopped_or_never_begun(fakes):
    async def scenario():
        pool = Pool(1)
        pool.start()
        (worker,) = fakes
        begun = asyncio.create_task(pool.search("a", {"name": "begun"}, is_long=False))
        waiting = asyncio.create_task(pool.search("b", {"name": "waiting"}, is_long=False))
        await settle()
        begun.cancel()
        waiting.cancel()
        await settle()
        (number,) = [job["number"] for job in worker.sent[0]["jobs"]]
        assert worker.sent[-1] == {"stop": number}
        worker.on_answer(worker, [{"number": number, "cpu": 0.0}])
        last = asyncio.create_task(pool.search("c", {"name": "last"}, is_long=False))
        await settle()
        pool.close()
        await asyncio.gather(last, return_exceptions=True)
        return names(worker)

    assert asyncio.run(scenario()) == ["begun", "last"]


def job(number, **changes):
    position = Position.initial(Rules(6))
    place = {"size": 6, "variant": "normal", "own": position.own, "opp": position.opp, "turn": "black"}
    agent = {"spec": "six-factor:depth=2", "name": "six-factor", "searches": True, "table": 1, "depth": 2, "seed": 5}
    return {"kind": "move", "number": number} | place | agent | changes


def test_a_worker_answers_jobs_and_bad_ones_too():
    searcher = Searcher()
    found = searcher.answer(job(1))
    assert found["number"] == 1
    assert found["move"] in Position.initial(Rules(6)).legal_moves()
    assert searcher.answer(job(2, searches=False, spec="greedy", exact=None))["move"] in ("c2", "b3", "e4", "d5")
    assert "size 5" in searcher.answer(job(3, size=5))["error"]


def test_a_stop_that_comes_before_the_search_is_heard():
    searcher = Searcher()
    searcher.answer(job(1))  # loads the kernels
    searcher.stop(2)
    found = searcher.answer(job(2, depth=30, seconds=None))
    assert found["move"] in Position.initial(Rules(6)).legal_moves()


def analysis(position, **changes):
    place = {"own": position.own, "opp": position.opp, "size": position.rules.size, "turn": str(position.turn)}
    return job(1, kind="analyse", seconds=0.05) | place | changes


@pytest.mark.parametrize(
    "board", ["X" * 16, "X" * 15 + "O", "XO" * 32, "-" * 16, "X" + "-" * 35, "O" * 15 + "-", "OX" + "-" * 62]
)
@pytest.mark.parametrize("seconds", [1e-12, 0.05])
def test_any_position_is_analysed_in_any_time(board, seconds):
    for turn in (BLACK, WHITE):
        position = Position.from_text(board, turn)
        found = Searcher().answer(analysis(position, seconds=seconds))
        assert "error" not in found
        assert found["move"] in (None if position.is_over() else position.legal_moves()[0], *position.legal_moves())
        assert found["exact"] or found["depth"] >= 1
        if position.is_over():
            assert (found["exact"], found["value"], found["moves"]) == (True, position.score(), [])


@pytest.mark.parametrize("moves", [[], ["b1", "a1", "c4"]])
def test_an_analysis_that_is_stopped_before_its_first_depth_has_an_answer(monkeypatch, moves):
    """Deepened or solved."""
    position = Position.initial(Rules(4)).play_all(moves)
    engine = Engine("six-factor", position.rules, megabytes=1)
    for switch in (engine._switch, engine.solver._switch):
        monkeypatch.setattr(switch, "withdraw", switch.request)  # whatever begins is stopped at once
    found = analyse(engine, position, 1.0)
    assert found["move"] in position.legal_moves()
    assert not found["exact"]
    assert found["depth"] == 0


@pytest.mark.parametrize("error", [IndexError("x"), ZeroDivisionError(), OverflowError("too large")])
def test_a_fault_ends_one_search_and_not_the_worker(monkeypatch, caplog, error):
    searcher = Searcher()

    def faulty(*args, **options):
        raise error

    monkeypatch.setattr(Engine, "search", faulty)
    found = searcher.answer(job(1))
    assert (found["number"], found["fault"], found["cpu"] >= 0) == (1, True, True)
    assert type(error).__name__ in found["error"]
    assert "Traceback" in caplog.text  # whoever keeps the server can find out why
    monkeypatch.undo()
    assert searcher.answer(job(2))["move"]


def test_a_visitor_is_told_of_a_fault_and_the_next_one_is_answered(special, monkeypatch):
    api = special()
    body = {"board": "X" * 16, "turn": "black", "seconds": 1e-12, "agent": "six-factor"}
    assert api.call("POST", "/api/analyse", json=body).json()["exact"]
    monkeypatch.setattr(Engine, "clear", lambda engine: [][0])
    failed = api.call("POST", "/api/analyse", json=body)
    assert (failed.status_code, failed.json()["code"]) == (503, "lost")
    monkeypatch.undo()
    assert api.call("POST", "/api/analyse", json=body).json()["value"] == 16


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_the_search_asked_for_again(special):
    api = special(workers=1, watch_pace=0.0)
    slow = {"kind": "agent", "agent": "six-factor:time=1.5"}
    created = api.create(size=6, black=slow, white={"kind": "agent", "agent": "greedy"})
    with api.socket(created["game"], created["tokens"]["spectator"]) as socket:
        socket.expect("state")
        (pid,) = api.hall.pool.pids()
        os.kill(pid, signal.SIGKILL)
        state = socket.until(lambda s: len(s["moves"]) >= 2)
    assert state["status"] == "running"
    assert api.hall.pool.pids() != [pid]
