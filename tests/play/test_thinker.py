"""Pondering on the opponent's time: the expected position, its end, and the reuse of its results."""

import threading

import pytest

from play.protocols import gtp, nboard
from play.thinker import Ponderer, Thinker, expected_position, ponder
from play.time_control import TimeControl
from reversi_env import Position, Rules
from search.engine.engine import Engine
from search.engine.limits import Limits
from tests.oracles.jobs import PATIENCE, wait_until

START = Position.initial()


class Pondering(Thinker):
    """Ponders until the end is requested; records start, positions and limits."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.begun, self.pondered, self.at_work = threading.Event(), [], 0

    def ponder(self, position, is_over, **limits):
        self.pondered.append((position, limits))
        self.at_work += 1
        self.begun.set()
        while not is_over():
            super().ponder(position, is_over)
        self.at_work -= 1


@pytest.mark.parametrize(
    ("position", "line", "expected"),
    [
        *((START, ("d3", "c3", "c4"), START.play("d3").play("c3")), (START, ("d3",), START.play("d3"))),
        *((START, (), None), (Position.from_text("XXXXXXXXXXXXXXO-"), ("d4",), None)),
    ],
)
def test_the_position_after_the_expected_reply_is_pondered(position, line, expected):
    assert expected_position(position, line) == expected


def test_pondering_starts_after_the_own_move_and_ends_at_once():
    thinker = Pondering("six-factor:depth=3")
    ponderer = Ponderer(thinker)
    ponderer.begin(START)
    ponderer.expect(START, ("d3", "c3"))
    ponderer.begin(START)  # the expected move was not made
    ponderer.begin(START.play("c4"))  # another move was made
    assert not thinker.pondered
    for _ in range(5):
        thinker.begun.clear()
        ponderer.begin(START.play("d3"), clock=TimeControl(10.0))
        assert thinker.begun.wait(PATIENCE)
        ponderer.end()
        assert thinker.at_work == 0
    ponderer.end()
    assert thinker.pondered == [(START.play("d3").play("c3"), {"depth": None, "clock": TimeControl(10.0)})] * 5


def test_pondering_can_be_switched_off():
    thinker = Pondering("six-factor:depth=3")
    ponderer = Ponderer(thinker, on=False)
    ponderer.expect(START, ("d3", "c3"))
    ponderer.begin(START.play("d3"))
    ponderer.end()
    assert not thinker.pondered


def test_pondering_rounds_double_their_time(monkeypatch):
    engine, searches = Engine("six-factor", megabytes=1), []

    def note(position, limits):
        searches.append(limits)
        return search(START, Limits(depth=1))

    search = engine.search
    monkeypatch.setattr(engine, "search", note)
    ponder(engine, START, Limits(time=1.5, soft=0.5), lambda: len(searches) == 3)
    assert searches == [Limits(time=1.5, soft=0.5), Limits(time=3.0), Limits(time=6.0)]
    searches.clear()
    ponder(engine, START, Limits(depth=5), lambda: False)
    assert searches == [Limits(depth=5)]


def test_pondering_fills_the_table_for_the_reply():
    cold, warm = Thinker("six-factor:depth=8"), Thinker("six-factor:depth=8")
    position = expected_position(START, cold.think(START).pv)
    warm.ponder(position, lambda: False)
    cold.agent.engine(Rules()).clear()
    alone, prepared = cold.think(position), warm.think(position)
    assert (prepared.move, prepared.value, prepared.depth) == (alone.move, alone.value, alone.depth)
    assert prepared.nodes < alone.nodes / 10


def test_gtp_engine_ponders_until_the_next_line():
    """Only the next line ends the search, which would take hours."""
    thinker, sent, working = Pondering("six-factor:depth=3"), [], []
    engine = gtp.GtpEngine(thinker, ponders=True)

    def lines():
        for line in ("time_settings 100 0 0", "play b d3", "genmove w", "showboard"):
            thinker.begun.clear()
            yield line
        assert thinker.begun.wait(PATIENCE)  # again after showboard
        working.append(thinker.at_work)
        thinker.begun.clear()
        yield f"play b {engine.position.legal_moves()[0]}"
        yield "genmove w"
        assert thinker.begun.wait(PATIENCE)

    gtp.serve(engine, lines(), sent.append)
    assert working == [1]
    assert thinker.at_work == 0
    assert all(answer.startswith("=") for answer in sent)
    assert len(sent) == 6
    assert all(limits["clock"] for _, limits in thinker.pondered)


def test_nboard_engine_ponders_after_its_move_is_made():
    thinker, sent = Pondering("six-factor"), []
    engine = nboard.NBoardEngine(thinker, sent.append, ponders=True)

    def lines():
        yield from ("set depth 3", "go", "ping 1")
        wait_until(lambda: "pong 1" in sent)
        assert not thinker.pondered  # the move is not on the board yet
        yield f"move {next(line for line in sent if line.startswith('==='))[4:]}"
        assert thinker.begun.wait(PATIENCE)
        yield "quit"

    nboard.serve(engine, lines())
    assert thinker.at_work == 0
    [(position, limits)] = thinker.pondered
    assert position.empties == 58
    assert limits["depth"] == 3


@pytest.mark.parametrize("command", ["gtp", "nboard"])
def test_ponder_option_and_end_of_the_process(reversi, command):
    session = {"gtp": "genmove b\n", "nboard": "go\nmove d3\n"}[command]
    status, out, err = reversi(command, "six-factor:depth=2", "--ponder", stdin=session)
    assert (status, err) == (0, "")
    assert out


def test_tree_search_follows_the_clock_and_has_values(monkeypatch):
    pytest.importorskip("torch")
    start, thinker, calls = Position.initial(Rules(6)), Thinker("zero"), []
    limited = Thinker("zero:simulations=8")
    assert thinker.has_values
    assert (thinker.agent.time, limited.agent.time) == (1.0, None)
    assert limited.think(start, depth=3, moves=2).nodes == 8
    search = thinker.agent.search
    monkeypatch.setattr(
        thinker.agent, "search", lambda position, limits, **how: calls.append(limits) or search(position, limits, **how)
    )
    thought = thinker.think(start, clock=TimeControl(2.0), depth=3, moves=3)
    assert 0 < calls[0].soft <= calls[0].time < 1
    assert thought.move == thought.moves[0].move
