"""Fixtures and settings of all tests: hypothesis without randomness, the command line, and the external data files.

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

# OpenMP reads this when torch is loaded, here and in child processes. By default its idle threads spin, which wastes most of
# the CPU time when processes share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"  # colours of messages that nobody reads take time
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("deterministic")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup or a shell's &: the tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Skip doctests: tests have none, and the search for them takes seconds in every process."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


def pytest_collection_finish():
    """Let the garbage collector run rarely and skip imported modules."""
    gc.freeze()  # imported modules stay in memory until the end
    gc.set_threshold(50_000, 20, 20)  # numba's compiler makes many objects


@pytest.fixture(scope="session", autouse=True)
def sb3_logs(tmp_path_factory):
    """Send the log folders of stable-baselines3 to pytest's temporary folder, not to the system's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SB3_LOGDIR", str(tmp_path_factory.mktemp("sb3")))
        yield


@pytest.fixture(scope="session")
def external_data() -> Path:
    """Return the folder in REVERSI_DATA (default: ../shared/data); skip the test if it does not exist."""
    folder = Path(os.environ.get("REVERSI_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no external data in {folder}: set REVERSI_DATA to a folder with ffo/*.obf and wthor/*.wtb")
    return folder


@pytest.fixture
def one_torch_thread():
    """Run torch on one thread, which is fastest for small tensors and shared cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def reversi(monkeypatch, capsys):
    """Run the command line in this process; return (exit status, standard output, standard error)."""

    from play.cli import app as cli

    def run(*arguments, stdin=""):
        monkeypatch.setattr(sys, "argv", ["reversi", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        captured = capsys.readouterr()
        return exit_info.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def json_lines(reversi):
    """Run the command line with ``--json`` in this process; return one object per line of its standard output."""

    def run(*arguments, status=0, stdin=""):
        code, out, _ = reversi(*arguments, "--json", stdin=stdin)
        assert code == status
        return [json.loads(line) for line in out.splitlines()]

    return run
