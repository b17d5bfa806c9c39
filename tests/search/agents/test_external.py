"""Other programs as players: whole games by GTP and NBoard, every way to fail, and nothing left running."""

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
#: Seconds that a program may take over a move where it is to fail by taking longer. Everywhere else it has all the time it needs.
SHORT = 0.3


def spec(protocol, *arguments, **options):
    listed = ",".join(f"{key}={value}" for key, value in options.items())
    return f"{protocol}{f'[{listed}]' if listed else ''}:{sys.executable} {FAKE} {protocol} {' '.join(map(str, arguments))}"


@pytest.fixture
def made():
    """Make agents that are closed in the end."""
    players = []

    def make_one(*arguments, **options):
        players.append(make_agent(*arguments, **options))
        return players[-1]

    yield make_one
    for player in players:
        player.close()


class FirstMove(Agent):
    """What the fake engine plays, in this process."""

    def choose(self, position):
        return position.legal_actions()[0]


@pytest.fixture
def patient_at_the_end(monkeypatch):
    """A program that has ended is waited for until its status and its last words are there."""
    monkeypatch.setattr(processes, "QUIT_SECONDS", 60)


def gone(pid):
    """Whether no such process runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("protocol", "arguments"), [("gtp", ()), ("gtp", ("--passes", "implicit")), ("nboard", ())], ids=str
)
def test_whole_games_are_those_of_the_same_player_in_this_process(made, protocol, arguments):
    program, passes = made(spec(protocol, *arguments)), 0
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


def test_nboard_plays_on_from_any_position_and_gtp_does_not(made):
    position = Position.from_text("OX--OXX-OOX--XXX", turn=WHITE)
    opening = Opening(position)
    game = play_game({WHITE: made(spec("nboard")), BLACK: FirstMove()}, opening)
    assert game.moves == play_game({WHITE: FirstMove(), BLACK: FirstMove()}, opening).moves
    refused = play_game({WHITE: made(spec("gtp")), BLACK: FirstMove()}, opening)
    assert (refused.forfeit.kind, refused.discs) == ("refused", 16)


def test_a_program_chooses_from_positions_alone_as_long_as_they_follow_each_other(made):
    program, others, passes = made(spec("gtp", "--passes", "implicit")), np.random.default_rng(5), 0
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
    strange = Position.initial().play_all(["f5", "d6", "c3"])
    with pytest.raises(ReversiError, match="plays whole games"):
        program.choose(strange)
    assert made(spec("nboard")).choose(strange) == strange.legal_actions()[0]


@pytest.mark.usefixtures("patient_at_the_end")
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
        ("gtp", "drip", "timeout", "gave no answer to"),  # empty lines for ever
        ("gtp", "refuse", "refused", "I would rather not"),
        ("gtp", "resign", "resigned", "resigned"),
    ],
)
def test_a_program_that_fails_loses_the_game_and_is_started_again_for_the_next(
    made, tmp_path, protocol, how, kind, words
):
    limit, after = (SHORT, 0) if kind == "timeout" else (60, 3)
    program = made(spec(protocol, "--fail", how, "--after", after, "--once", tmp_path / "failed", limit=limit))
    opening = random_opening(Rules(6), 2, np.random.default_rng(0))
    game = play_game({WHITE: program, BLACK: FirstMove()}, opening)
    assert (game.forfeit.colour, game.forfeit.kind, game.discs) == (WHITE, kind, 36)
    assert words in game.forfeit.reason
    assert ("Segmentation fault, or so" in game.forfeit.reason) == (how == "crash")  # its last words
    assert str(FAKE) in game.forfeit.reason or "…" in game.forfeit.reason
    assert len(game.moves) == 2 * after + 1  # white's, and black's before them
    program.limit = 60
    again = play_game({WHITE: program, BLACK: FirstMove()}, opening)
    assert again.forfeit is None
    assert again.moves == play_game({WHITE: FirstMove(), BLACK: FirstMove()}, opening).moves


def test_a_program_that_runs_wild_is_ended_before_it_fills_the_memory(made, monkeypatch):
    monkeypatch.setattr(processes, "MAX_UNREAD", 500)
    program = made(spec("nboard", "--fail", "flood"))
    with pytest.raises(EngineFailure, match="500") as failure:
        program.choose(Position.initial())
    assert failure.value.kind == "crash"


@pytest.mark.skipif(os.name != "posix", reason="a shell")
def test_a_program_that_runs_wild_between_two_moves_loses_at_the_next_one_and_can_be_started_again(monkeypatch):
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
def test_progress_that_is_drawn_in_its_place_is_read_over():
    program = processes.EngineProcess('sh -c \'yes thinking | head -n 20000 | tr "\\n" "\\r"; echo; echo d3\'')
    lines = iter(lambda: program.read_line(processes.Deadline("go", 60)), "d3")
    assert sum(len(line) for line in lines) > 2 * processes.MAX_LINE_BYTES
    program.close()


@pytest.mark.usefixtures("patient_at_the_end")
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
def test_a_program_that_is_not_there_or_does_not_greet_is_refused_at_once(made, monkeypatch, command, words):
    monkeypatch.setattr(GtpAgent, "timeout", SHORT if "sleep" in command else GtpAgent.timeout)
    with pytest.raises(EngineFailure, match=words):
        made(f"gtp:{command}").prepare(Rules())


def test_specs():
    program = make_agent("gtp[time=0.25,limit=5]:engine -a 1,2 --key=value 'two words': x")
    assert isinstance(program, GtpAgent)
    assert program.command == "engine -a 1,2 --key=value 'two words': x"
    assert (program.time, program.limit) == (0.25, 5)
    program = pickle.loads(pickle.dumps(make_agent("nboard:engine", time=0.5, depth=11, nodes=7, seed=3, limit=2.0)))
    assert isinstance(program, NBoardAgent)
    assert (program.command, program.time, program.limit, program.depth) == ("engine", 0.5, 2.0, 11)
    assert make_agent("gtp[time=2]:engine", time=0.5).time == 2
    with pytest.raises(AgentSpecError, match="gtp"):
        AgentSpec.parse("gtp:engine").check_own()


def test_a_file_that_cannot_run_is_named(tmp_path):
    path = tmp_path / "binary"
    path.write_bytes(bytes(8))
    path.chmod(0o755)
    with pytest.raises(EngineFailure, match=str(path)[:40]):
        processes.EngineProcess(str(path))


def test_times_are_told_in_whole_seconds_for_moves_of_one_game():
    times = {1: "0 1 1", 0.1: "0 1 10", 2.5: "0 5 2", 0.33: "0 1 3", 0.001: "0 1 30"}
    assert {seconds: _time_settings(seconds, Rules()) for seconds in times} == times
    assert _time_settings(0.1, Rules(4)) == "0 1 6"


def pids_in(path):
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(word) for word in path.read_text().split()]


@pytest.mark.parametrize("end", ["close", "fail", "forget"])
def test_a_program_and_what_it_has_started_end_with_its_agent(tmp_path, end):
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
def test_a_child_in_another_session_is_not_waited_for(monkeypatch, ends):
    monkeypatch.setattr(processes, "OUTPUT_SECONDS", 0.05)
    program = processes.EngineProcess("sh -c 'setsid sleep 300 & echo $!; read line'")
    child = int(program.read_line(processes.Deadline("its number", 60)))
    wait_until(lambda: os.getsid(child) == child)  # until then it is of the program's own group
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
