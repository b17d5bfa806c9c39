"""`reversi nboard` against the protocol document: whole sessions, and the form of every line."""

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from play.protocols.nboard import NBoardEngine, serve
from play.thinker import Thinker
from reversi_env import Position, Rules
from search.engine.solver import solve_all_moves
from tests.oracles.jobs import PATIENCE
from tests.oracles.strategies import random_moves

#: The game in the example session of the document.
EXAMPLE = (
    "(;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]"
    "BO[8 ---------------------------O*------*O--------------------------- *]"
    "B[F5]W[F6]B[D3]W[C5]B[E6]W[F7]B[E7]W[F4];)"
)
EXAMPLE_MOVES = ["f5", "f6", "d3", "c5", "e6", "f7", "e7", "f4"]
NUMBER = r"-?\d+\.\d\d"
SEARCH = re.compile(rf"search ((?:[A-H][1-8]|PA)+) ({NUMBER}) 0 (\d+|100%)")
MOVE = re.compile(rf"=== ([A-H][1-8])/({NUMBER})/\d+\.\d\d")


@pytest.fixture
def sent():
    return []


@pytest.fixture
def engine(sent):
    return NBoardEngine(Thinker("six-factor:depth=4"), sent.append)


def run(engine, *lines):
    for line in lines:
        engine.run(line)


@pytest.mark.slow
def test_set_changes_threads_table_and_level(engine, sent):
    run(engine, "set threads 2", "set table 1", "set contempt 5", "set threads none")
    assert engine.thinker.spec.text == "six-factor:depth=4,threads=2,table=1"
    assert [line for line in sent if "threads='none'" in line]
    run(engine, "set level 1", "go")
    assert engine.thinker.spec.text == "human:level=1"  # a level replaces the depth


def test_the_example_session_of_the_document(engine, sent):
    run(engine, "nboard 2", f"set game {EXAMPLE}", "set depth 6", "ping 1", "go")
    assert engine.game.moves == tuple(EXAMPLE_MOVES)  # go does not change the board
    assert sent[:4] == ["set myname six-factor", "set myname six-factor6", "pong 1", "status Thinking"]
    move = MOVE.fullmatch(sent[-1])[1].lower()
    assert move in engine.game.position.legal_moves()
    given_up = EXAMPLE.replace("RE[?]", "RE[+64.00:r]")
    assert given_up != EXAMPLE
    run(engine, f"set game {given_up}", f"move {move}", "go")  # the game continues
    assert engine.game.moves == (*EXAMPLE_MOVES, move)
    assert MOVE.fullmatch(sent[-1])[1].lower() in engine.game.position.legal_moves()


def test_hints_deepen_iteratively(engine, sent):
    run(engine, f"set game {EXAMPLE}", "set depth 6", "hint 3")
    lines = [SEARCH.fullmatch(line) for line in sent if line.startswith("search")]
    assert all(lines)
    depths = [int(line[3]) for line in lines]
    assert depths == [1] * 3 + [4] * 3 + [4] * 3  # the depth of the spec also limits it
    legal = engine.game.position.legal_moves()
    assert all(line[1][:2].lower() in legal for line in lines)
    last = [float(line[2]) for line in lines[-3:]]
    assert last == sorted(last, reverse=True)
    assert [line.split()[0] for line in sent[-2:]] == ["nodestats", "status"]
    assert re.fullmatch(r"nodestats \d+ \d+\.\d\d", sent[-2])


def test_exact_values_are_marked(sent):
    engine = NBoardEngine(Thinker("six-factor"), sent.append, Rules(4))
    run(engine, "set depth 12", "move B1", "move A1", "hint 16")
    values = {m[1][:2].lower(): float(m[2]) for line in sent if (m := SEARCH.fullmatch(line)) and m[3] == "100%"}
    assert values == solve_all_moves(engine.game.position)


def test_all_move_forms_are_read_and_unknown_lines_ignored(engine, sent):
    run(engine, "move F5/1.23/4.5", "move d6", "C3", "move D3//2")
    run(engine, "", " ", "foo", "foo bar", "set", "set nonsense 3", "set contempt -5", "sing d6", "\x00")
    assert engine.game.moves == ("f5", "d6", "c3", "d3")
    assert sent == []


def test_errors_appear_in_the_status_and_change_nothing(engine, sent):
    run(engine, "move a1", "set game (;GM[Go];)", "set depth x", "hint 0", "move", "set game (;GM[Othello]TY[10];)")
    assert len(sent) == 6
    assert all(line.startswith("status ") and "\n" not in line for line in sent)
    assert engine.game.moves == ()


@given(st.text(), st.sampled_from(["", "set game ", "set depth ", "move ", "hint "]))
def test_any_line_is_accepted(text, before):
    engine = NBoardEngine(Thinker("random"), lambda line: None, Rules(4))
    engine.run(before + text)


def test_a_pass_is_written_pa(sent):
    start = "O-X--OXOXXO-XXX-".replace("X", "*")
    engine = NBoardEngine(Thinker("six-factor:depth=2"), sent.append)
    run(engine, f"set game (;GM[Othello]TY[4]BO[4 {start} O];)", "go", "hint 1")
    assert sent[0] == "=== PA"
    assert SEARCH.fullmatch(sent[2])[1].startswith("PA")
    run(engine, "move PA")
    assert engine.game.moves == ("pass",)


def test_analyze_values_all_positions_from_last_to_first(sent):
    engine = NBoardEngine(Thinker("six-factor:depth=12"), sent.append, Rules(4))
    moves = random_moves(Position.initial(Rules(4)), 1)
    run(engine, *(f"move {move}" for move in moves), "analyze")
    lines = [re.fullmatch(rf"analysis (\d+) ({NUMBER})", line) for line in sent[1:-1]]
    assert [int(line[1]) for line in lines] == list(range(len(moves), -1, -1))
    assert float(lines[0][2]) == engine.game.position.score()
    assert float(lines[-1][2]) == -10  # the solved value of the 4x4 board


def test_learn_finished_games_and_agents_without_values(engine, sent):
    run(engine, "learn")
    assert sent == ["learned"]
    run(engine, "set game (;GM[Othello]TY[4a]BO[4 **************** *];)", "go", "hint 2")
    assert engine.game.rules == Rules(4, "reversed")
    assert [line.split()[0] for line in sent[1:]] == ["status"]
    run(NBoardEngine(Thinker("greedy"), sent.append), "set depth 3", "hint 2", "go")
    assert sent[-1].startswith("=== ")
    assert any(line.startswith("search ") for line in sent)


def test_a_ping_ends_the_search():
    """The search has no other limit; without the ping it would take hours."""
    sent, thinking = [], threading.Event()

    def send(line):
        sent.append(line)
        if line == "status Thinking":
            thinking.set()

    def lines():
        yield from ("nboard 2", "set depth 60", "go")
        assert thinking.wait(PATIENCE)
        yield from ("ping 1", "set depth 1", "hint 1", "ping 2")

    session = threading.Thread(target=serve, args=(NBoardEngine(Thinker("six-factor"), send), lines()), daemon=True)
    session.start()
    session.join(PATIENCE)
    assert not session.is_alive()
    kinds = [line.split()[0] for line in sent]
    assert kinds.index("===") < kinds.index("pong")  # the move answers the command before the ping
    assert [line for line in sent if line.startswith("pong")] == ["pong 1", "pong 2"]
