"""External engines: whole games by GTP and NBoard, failures of all kinds, and no processes left running."""

import os
import pickle
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from reversi_env import BLACK, WHITE, Position, ReversiError, Rules
from search.agents.base import Agent
from search.agents.external import EngineFailure
from search.agents.external import process as processes
from search.agents.external.gtp import GtpAgent, _time_settings
from search.agents.external.nboard import NBoardAgent
from search.agents.registry import AgentSpecError
from search.agents.simple import RandomAgent
from search.agents.spec import AgentSpec, make_agent
from tests.conftest import REPOSITORY
from tests.oracles.jobs import wait_until
from train.arena.match import play_game
from train.arena.openings import Opening, random_opening

FAKE = Path(__file__).parents[2] / "oracles" / "fake_engine.py"
#: Seconds per move in tests of timeouts. All other tests give the engine enough time.
SHORT = 0.3


def spec(protocol, *arguments, **options):
    listed = ",".join(f"{key}={value}" for key, value in options.items())
    return f"{protocol}{f'[{listed}]' if listed else ''}:{sys.executable} {FAKE} {protocol} {' '.join(map(str, arguments))}"


@pytest.fixture
def make():
    """A function that makes agents, which are closed after the test."""
    players = []

    def make_one(*arguments, **options):
        players.append(make_agent(*arguments, **options))
        return players[-1]

    yield make_one
    for player in players:
        player.close()


class FirstMove(Agent):
    """An agent of this process that plays the same moves as the fake engine."""

    def choose(self, position):
        return position.legal_actions()[0]


@pytest.fixture
def long_quit_timeout(monkeypatch):
    """Wait longer for an ended process, until its status and its last output have arrived."""
    monkeypatch.setattr(processes, "QUIT_SECONDS", 60)


def gone(pid):
    """Return whether the process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("protocol", "arguments"), [("gtp", ()), ("gtp", ("--passes", "implicit")), ("nboard", ())], ids=str
)
def test_external_engine_plays_same_games_as_internal_agent(make, protocol, arguments):
    program, passes = make(spec(protocol, *arguments)), 0
    for size, variant in ((8, "normal"), (6, "reversed"), (4, "normal")):
        rules = Rules(size, variant)
        for seed, colour in ((1, BLACK), (2, WHITE), (3, BLACK)):
            opening = random_opening(rules, 2 * (seed - 1), np.random.default_rng(seed))
            games = [
                play_game({colour: player, colour.other: RandomAgent(seed)}, opening)
                for player in (program, FirstMove())
            ]
            assert (games[0].moves, games[0].discs) == (games[1].moves, games[1].discs)
            assert games[0].forfeit is None
            passes += games[0].moves.count("pass")
    assert passes
    program.stop()
    assert gone(program._process._process.pid)
    make(spec(protocol, *arguments)).stop()  # was not started


def test_nboard_supports_any_start_position_and_gtp_does_not(make):
    position = Position.from_text("OX--OXX-OOX--XXX", turn=WHITE)
    opening = Opening(position)
    game = play_game({WHITE: make(spec("nboard")), BLACK: FirstMove()}, opening)
    assert game.moves == play_game({WHITE: FirstMove(), BLACK: FirstMove()}, opening).moves
    refused = play_game({WHITE: make(spec("gtp")), BLACK: FirstMove()}, opening)
    assert (refused.forfeit.kind, refused.discs) == ("refused", 16)


def test_gtp_choose_works_for_consecutive_positions(make):
    program, others, passes = make(spec("gtp", "--passes", "implicit")), np.random.default_rng(5), 0
    for _ in range(3):
        position = Position.initial(Rules(4)).play("b1")
        while not position.is_over():
            if position.turn == WHITE and not position.must_pass():
                assert (action := program.choose(position)) == position.legal_actions()[0]
            else:
                action = int(others.choice(position.legal_actions()))
            passes += action == position.rules.pass_action
            position = position.play(action)
    assert passes
    unrelated = Position.initial().play_all(["f5", "d6", "c3"])
    with pytest.raises(ReversiError, match="plays whole games"):
        program.choose(unrelated)
    assert make(spec("nboard")).choose(unrelated) == unrelated.legal_actions()[0]


@pytest.mark.usefixtures("long_quit_timeout")
@pytest.mark.parametrize(
    ("protocol", "how", "kind", "words"),
    [
        *(
            (protocol, *failure)
            for protocol in ("gtp", "nboard")
            for failure in (
                ("crash", "crash", "ended with exit status 3"),
                ("hang", "timeout", "gave no answer to"),
                ("illegal", "illegal", "the legal moves are"),
                ("pass", "illegal", "the legal moves are"),
                ("nonsense", "malformed", "expected a move"),
                ("garbage", "malformed", "expected"),
            )
        ),
        ("gtp", "drip", "timeout", "gave no answer to"),  # endless empty lines
        ("gtp", "refuse", "refused", "I would rather not"),
        ("gtp", "resign", "resigned", "resigned"),
    ],
)
def test_failing_engine_forfeits_and_restarts_for_next_game(make, tmp_path, protocol, how, kind, words):
    limit, after = (SHORT, 0) if kind == "timeout" else (60, 3)
    program = make(spec(protocol, "--fail", how, "--after", after, "--once", tmp_path / "failed", limit=limit))
    opening = random_opening(Rules(6), 2, np.random.default_rng(0))
    game = play_game({WHITE: program, BLACK: FirstMove()}, opening)
    assert (game.forfeit.colour, game.forfeit.kind, game.discs) == (WHITE, kind, 36)
    assert words in game.forfeit.reason
    assert ("Segmentation fault, or so" in game.forfeit.reason) == (how == "crash")  # the last line of standard error
    assert str(FAKE) in game.forfeit.reason or "…" in game.forfeit.reason
    assert len(game.moves) == 2 * after + 1  # white's moves, and black's before each of them
    program.limit = 60
    again = play_game({WHITE: program, BLACK: FirstMove()}, opening)
    assert again.forfeit is None
    assert again.moves == play_game({WHITE: FirstMove(), BLACK: FirstMove()}, opening).moves


def test_engine_with_too_much_output_is_stopped(make, monkeypatch):
    monkeypatch.setattr(processes, "MAX_UNREAD", 500)
    program = make(spec("nboard", "--fail", "flood"))
    with pytest.raises(EngineFailure, match="500") as failure:
        program.choose(Position.initial())
    assert failure.value.kind == "crash"


@pytest.mark.skipif(os.name != "posix", reason="a shell")
def test_excess_output_between_moves_forfeits_the_next_move(monkeypatch):
    monkeypatch.setattr(processes, "MAX_UNREAD", 500)
    answers = 'while read -r line; do echo "= d3"; echo; case $line in genmove*) yes;; esac; done'
    program = GtpAgent(f"sh -c '{answers}'")
    start = Position.initial()
    for _ in range(2):
        assert start.rules.name_of(program.choose_after(start, ())) == "d3"
        wait_until(lambda: program._process.excess)
        with pytest.raises(EngineFailure, match="unread output between two moves") as failure:
            program.choose_after(start, ("d3", "c3"))
        assert failure.value.kind == "crash"
    program.close()


@pytest.mark.skipif(os.name != "posix", reason="a shell")
def test_long_carriage_return_progress_output_is_skipped():
    program = processes.EngineProcess('sh -c \'yes thinking | head -n 20000 | tr "\\n" "\\r"; echo; echo d3\'')
    lines = iter(lambda: program.read_line(processes.Deadline("go", 60)), "d3")
    assert sum(len(line) for line in lines) > 2 * processes.MAX_LINE_BYTES
    program.close()


@pytest.mark.usefixtures("long_quit_timeout")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sleep 1000", f"no answer to 'known_command set_game' within {SHORT} s"),
        ("false", "ended with exit status 1 "),
        ("cat", "answered 'known_command set_game' to"),
        ("no-such-engine -x", "program 'no-such-engine' was not found"),
        (f"{REPOSITORY}/README.md", "was not found"),
    ],
)
def test_missing_or_unresponsive_engine_is_rejected_at_start(make, monkeypatch, command, words):
    monkeypatch.setattr(GtpAgent, "timeout", SHORT if "sleep" in command else GtpAgent.timeout)
    with pytest.raises(EngineFailure, match=words):
        make(f"gtp:{command}").prepare(Rules())


def test_external_agent_specs():
    program = make_agent("gtp[time=0.25,limit=5]:engine -a 1,2 --key=value 'two words': x")
    assert isinstance(program, GtpAgent)
    assert program.command == "engine -a 1,2 --key=value 'two words': x"
    assert (program.time, program.limit) == (0.25, 5)
    program = pickle.loads(pickle.dumps(make_agent("nboard:engine", time=0.5, depth=11, nodes=7, seed=3, limit=2.0)))
    assert isinstance(program, NBoardAgent)
    assert (program.command, program.time, program.limit, program.depth) == ("engine", 0.5, 2.0, 11)
    assert make_agent("gtp[time=2]:engine", time=0.5).time == 2
    with pytest.raises(AgentSpecError, match="gtp"):
        AgentSpec.parse("gtp:engine").check_not_program()


def test_file_that_is_not_executable_is_named(tmp_path):
    path = tmp_path / "binary"
    path.write_bytes(bytes(8))
    path.chmod(0o755)
    with pytest.raises(EngineFailure, match=str(path)[:40]):
        processes.EngineProcess(str(path))


def test_gtp_time_settings_use_integer_seconds():
    times = {1: "0 1 1", 0.1: "0 1 10", 2.5: "0 5 2", 0.33: "0 1 3", 0.001: "0 1 30"}
    assert {seconds: _time_settings(seconds, Rules()) for seconds in times} == times
    assert _time_settings(0.1, Rules(4)) == "0 1 6"


def pids_in(path):
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(word) for word in path.read_text().split()]


@pytest.mark.parametrize("end", ["close", "fail", "forget"])
def test_engine_and_its_child_processes_end_with_agent(tmp_path, end):
    failing, limit = (["--fail", "hang"], SHORT) if end == "fail" else ([], 60)
    program = make_agent(spec("gtp", "--pids", tmp_path / "pids", *failing, limit=limit))
    with pytest.raises(EngineFailure) if failing else nullcontext():
        program.choose(Position.initial())
    if end == "close":
        program.close()
        program.close()
    elif end == "forget":
        del program
    pids = pids_in(tmp_path / "pids")
    assert len(pids) == 2
    wait_until(lambda: all(map(gone, pids)))


@pytest.mark.parametrize("ends", [False, True], ids=["is closed", "ends"])
def test_close_does_not_wait_for_child_in_another_session(monkeypatch, ends):
    monkeypatch.setattr(processes, "OUTPUT_SECONDS", 0.05)
    program = processes.EngineProcess("sh -c 'setsid sleep 300 & echo $!; read line'")
    child = int(program.read_line(processes.Deadline("its number", 60)))
    wait_until(lambda: os.getsid(child) == child)  # until then it belongs to the engine's process group
    try:
        if ends:
            program.send("ends")
            with pytest.raises(EngineFailure, match="genmove"):
                program.read_line(processes.Deadline("genmove", 600))
        program.close("quit")
        assert gone(program._process.pid)
        assert not gone(child)
    finally:
        os.kill(child, signal.SIGKILL)
    wait_until(lambda: program._process.stdout.closed and program._process.stderr.closed)
