"""Shared by all tests: hypothesis draws the same examples every time, and where the large public files are.

The project works without those files: FFO test positions and the WTHOR database.
"""

import gc
import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]

# Read by OpenMP when torch is loaded, here and in what the tests start: its threads wait asleep. By default they spin, and where
# processes share the cores that is most of what torch does.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("deterministic")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup or a shell's &: the tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Tests have no examples in their docstrings, and looking for them takes seconds in every process."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


def pytest_collection_finish():
    """What has been imported by now stays to the end: the garbage collector need not go through it again and again."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def sb3_logs(tmp_path_factory):
    """A model of stable-baselines3 that is given no logger makes a folder for one: here, not in the system's temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder named by REVERSI_DATA, by default ../shared/data; tests that need it are skipped without it."""
    folder = Path(os.environ.get("REVERSI_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no external data in {folder}: set REVERSI_DATA to a folder with ffo/*.obf and wthor/*.wtb")
    return folder


@pytest.fixture
def one_torch_thread():
    """Small tensors are fastest on one thread, above all where test processes share the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def reversi(monkeypatch, capsys):
    """Run the command line in this process: (exit status, standard output, standard error)."""

    from play.cli import app as cli

    def run(*arguments, stdin=""):
        monkeypatch.setattr(sys, "argv", ["reversi", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def json_lines(reversi):
    """Run the command line with ``--json`` in this process: an object for each line of its standard output."""

    def run(*arguments, status=0, stdin=""):
        code, out, _ = reversi(*arguments, "--json", stdin=stdin)
        assert code == status
        return [json.loads(line) for line in out.splitlines()]

    return run
