"""Ctrl-C: a command stops soon, prints partial results, and ends with the status that shells expect."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from play import interrupt as interrupting
from play.__main__ import INTERRUPTED as ENTRY_STATUS
from play.cli import app as cli
from play.interrupt import INTERRUPTED, interruptible
from reversi_env import Position
from tests.conftest import REPOSITORY
from tests.oracles.jobs import ANALYSIS, PATIENCE, children_of
from tests.play.terminal.process import Terminal


@pytest.fixture
def start():
    """Start a command whose standard error is a terminal; the fixture ends it after the test."""
    opened = []

    def start(*arguments):
        opened.append(Terminal(*arguments, streams=("stderr",), environment={"COLUMNS": "200"}))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def interrupt(job, pattern):
    """Press Ctrl-C when the terminal shows *pattern*, and wait for the end; return the rest of standard output."""
    job.until(pattern)
    job.process.send_signal(signal.SIGINT)
    assert job.end() == INTERRUPTED, job.text
    assert "Traceback" not in job.text
    return job.process.stdout.read()


@pytest.mark.slow
def test_ctrl_c_ends_an_endless_solve(start):
    """Kernels do not check signals, so without a handler the process would run until the problem is solved."""
    job = start("solve", "-", "--json", "--table", 1, "--threads", 2)
    job.process.stdin.write(f"OX--OXX-OOX--XXX O;\n{Position.initial().to_text()} X;\n")
    job.process.stdin.flush()
    assert json.loads(job.process.stdout.readline())["score"] == 6  # printed before the second line is solved
    assert interrupt(job, "line 2, 60 empties, value in .* million nodes") == ""
    assert "reversi: interrupted in line 2, value between -64 and +64" in job.text


@pytest.mark.slow
def test_ctrl_c_ends_an_analysis_with_the_best_result(start):
    job = start("analyse", "start", "--depth", 40, "--json")
    result = json.loads(interrupt(job, "searching, .* s"))
    assert result.keys() == ANALYSIS
    assert result["move"] in Position.initial().legal_moves()
    assert 1 <= result["depth"] < 40
    assert "reversi: interrupted, this is the best so far" in job.text


def test_ctrl_c_ends_a_match_with_the_finished_games(start):
    job = start("match", "greedy", "random", "--size", 4, "--games", 10**7, "--json")
    result = json.loads(interrupt(job, r"\d\d+/10000000"))
    assert 1 <= result["games"] < 10**7
    assert result["wins"] + result["draws"] + result["losses"] == result["games"]
    assert f"reversi: interrupted after {result['games']} of 10000000 games" in job.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("perft --depth 30", ""),
        ("experiment breadth --games 1000000000", "reversi: interrupted"),
        ("match six-factor:depth=40,table=1 random --games 2", "reversi: interrupted after 0 of 2 games"),
    ],
)
def test_ctrl_c_ends_an_endless_kernel(command, message, reversi, start):
    assert reversi("experiment", "breadth", "--size", 4, "--games", 100)[0] == 0  # compiles its kernel
    job = start(*command.split())
    if not Path(f"/proc/{job.process.pid}/stat").exists():
        pytest.skip("needs /proc")
    deadline = time.monotonic() + PATIENCE
    while processor_seconds(job.process) < 4:  # more than the start needs
        assert time.monotonic() < deadline
        job.more(0.05)
    assert interrupt(job, "") == ""
    assert message in job.text


def processor_seconds(job):
    """Return the processor time of a process and its children."""
    stats = [Path(f"/proc/{pid}/stat").read_text() for pid in (job.pid, *children_of(job.pid))]
    ticks = [int(field) for stat in stats for field in stat.rpartition(")")[2].split()[11:13]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def fast_polling(monkeypatch):
    """Poll at once, and in the main thread, which receives Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("needs the main thread, which receives signals")
    monkeypatch.setattr(interrupting, "POLL_SECONDS", 0.001)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the signal handler was not restored"
    signal.signal(signal.SIGINT, before)


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)
    return "pressed"


@pytest.mark.usefixtures("fast_polling")
def test_stop_requests_repeat_until_the_work_ends():
    stopped, requests = threading.Event(), []

    def stop():
        requests.append(len(requests))
        if len(requests) == 3:
            stopped.set()

    assert interruptible(lambda: stopped.wait(PATIENCE), stop, press_ctrl_c) == (True, True)
    assert len(requests) >= 3


@pytest.mark.usefixtures("fast_polling")
def test_interruptible_work_returns_raises_or_is_stopped():
    assert interruptible(lambda: 7, lambda: None) == (7, False)
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: None, lambda: "")
    for look, error in (
        (lambda: press_ctrl_c() + press_ctrl_c(), KeyboardInterrupt),
        (lambda: 1 // 0, ZeroDivisionError),
    ):
        stopped = threading.Event()
        with pytest.raises(error):
            interruptible(lambda stopped=stopped: stopped.wait(PATIENCE), stopped.set, look)
        assert stopped.is_set()


@pytest.mark.usefixtures("fast_polling")
def test_ignored_ctrl_c_stays_ignored():
    """SIGINT is ignored under nohup and in the background of scripts."""
    looks = []

    def look():
        looks.append(press_ctrl_c())
        return ""

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = interruptible(
            lambda: [time.sleep(0.001) for _ in iter(lambda: len(looks) < 3, False)], lambda: None, look
        )
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert done[1] is False


#: Runs a command after *preparation*, which makes Ctrl-C arrive at a certain moment.
PROGRAM = """
import atexit, signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)
{preparation}
sys.argv = ["reversi", "perft", "--size", "4", "--depth", "2"]
from {entry} import main
main()
"""
#: Ctrl-C arrives when a module is imported.
AT_IMPORT = """
class Interrupting:
    def find_spec(name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
"""
#: Ctrl-C arrives at exit, after the command has ended.
AT_EXIT = """
def ended():
    raise {ending}

atexit.register(signal.raise_signal, signal.SIGINT)
sys.modules["play.cli.app"] = types.ModuleType("play.cli.app")
sys.modules["play.cli.app"].main = ended
"""


@pytest.mark.parametrize(
    ("preparation", "status"),
    [
        *((AT_IMPORT.format(module=m), INTERRUPTED) for m in ("play.cli.app", "cyclopts", "play.cli.measure.perft")),
        (AT_EXIT.format(ending="KeyboardInterrupt"), INTERRUPTED),
        (AT_EXIT.format(ending="SystemExit(0)"), 0),
    ],
)
def test_ctrl_c_at_start_or_exit_prints_no_traceback(preparation, status):
    script = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]["reversi"]
    entry, _, function = script.partition(":")
    assert function == "main"
    program = PROGRAM.format(preparation=preparation, entry=entry)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY)
    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")
    assert ENTRY_STATUS == INTERRUPTED == 130


def test_ctrl_c_in_a_destructor_is_not_lost(monkeypatch):
    """Python only reports an interrupt in a destructor; the command must end nevertheless."""

    class Swallowing:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
            unreachable.append("the interrupt came after the destructor")

    def command(arguments):
        Swallowing()
        threading.Event().wait(60)
        unreachable.append("the interrupt was lost")

    unreachable = []
    monkeypatch.setattr(cli, "application", lambda arguments: command)
    with pytest.raises(KeyboardInterrupt):
        cli.main()
    assert not unreachable
