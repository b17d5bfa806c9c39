"""The disk cache of compiled kernels: reuse, corruption, one folder per CPU model, pruning."""

import errno
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reversi_env.compiler import disk_cache as kernel_files
from reversi_env.compiler.disk_cache import MAX_UNUSED_DAYS, KernelFiles, prune
from reversi_env.storage import user_cache as caches
from tests.oracles.processes import finished, output_of

DAY = 24 * 3600
#: A program that calls kernels from Python and from other kernels.
WORK = """
from reversi_env import Position
print(Position.initial().perft(5), Position.initial().legal_moves())
"""
WORK_RESULT = "1396 ['d3', 'c4', 'f5', 'e6']"


def work(cache, **environment):
    """Run WORK with that cache folder; return (output, errors)."""
    process = finished(WORK, REVERSI_CACHE_DIR=cache, **environment)
    return process.stdout.strip(), process.stderr


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("REVERSI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache folder that three processes filled at the same time with the kernels of WORK."""
    folder = tmp_path_factory.mktemp("filled")
    with ThreadPoolExecutor() as pool:
        assert {out for out, _ in pool.map(work, [folder] * 3)} == {WORK_RESULT}
    return folder


def entries(cache):
    return sorted((cache / "kernels").rglob("*.kernel"))


KEY = ("group", "name", "key")
OTHER_KEYS = [("other", "name", "key"), ("group", "other", "key"), ("group", "name", "other")]


def test_entry_is_read_only_by_its_own_key(cache):
    files, other = KernelFiles("here"), OTHER_KEYS[-1]
    files.write(*KEY, b"code")
    assert files.read(*KEY) == b"code"
    for environment, key in (("there", KEY), *(("here", other) for other in OTHER_KEYS)):
        assert KernelFiles(environment).read(*key) is None
    [path] = entries(cache)
    assert path.parent == cache / "kernels" / "here" / "group"
    files.write(*other, b"other code")
    [copied] = set(entries(cache)) - {path}
    shutil.copy(path, copied)
    assert files.read(*other) is None
    assert not copied.exists()
    assert files.read(*KEY) == b"code"


def test_corrupted_entry_is_detected_and_removed(cache):
    files = KernelFiles("here")
    files.write(*KEY, bytes(range(200)))
    [path] = entries(cache)
    whole = path.read_bytes()
    for cut in (0, 1, len(kernel_files.HEADER), len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert files.read(*KEY) is None
        assert not path.exists()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert files.read(*KEY) is None
    path.write_bytes(whole + b"\0")
    assert files.read(*KEY) is None
    path.write_bytes(whole)
    assert files.read(*KEY) == bytes(range(200))


def raise_disk_full(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("system_call", [(os, "replace"), (Path, "mkdir")], ids=["full disk", "read-only"])
def test_unwritable_cache_is_reported_once_and_stays_empty(cache, monkeypatch, capsys, system_call):
    monkeypatch.setattr(*system_call, raise_disk_full)
    files = KernelFiles("here")
    for _ in range(2):
        files.write(*KEY, b"code")
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert str(cache) in message
    assert not [path for path in cache.rglob("*") if path.is_file()]
    assert files.read(*KEY) is None


def write_used(cache, environment, group, days):
    """Write an entry of 1000 bytes that was used *days* ago."""
    KernelFiles(environment).write(group, "name", "key", b"x" * 1000)
    used = time.time() - days * DAY
    os.utime(cache / "kernels" / environment / group, (used, used))


def test_prune_removes_unused_then_least_recently_used_entries(cache, monkeypatch):
    for days, group in ((0, "new"), (MAX_UNUSED_DAYS - 1, "used"), (MAX_UNUSED_DAYS + 1, "old")):
        write_used(cache, "here", group, days)
    write_used(cache, "gone", "old", 2 * MAX_UNUSED_DAYS)
    partial = cache / "kernels" / "here" / "new" / ".name-key.kernel.part"
    partial.write_bytes(b"left by a process that was killed")
    prune(cache / "kernels", time.time())
    assert {path.parent.name for path in entries(cache)} == {"new", "used"}
    assert not (cache / "kernels" / "gone").exists()
    assert not partial.exists()
    write_used(cache, "here", "group", 10)
    monkeypatch.setattr(kernel_files, "MAX_TOTAL_BYTES", 2500)
    prune(cache / "kernels", time.time())
    assert {path.parent.name for path in entries(cache)} == {"new", "group"}
    assert KernelFiles("here").read(*KEY) is not None  # reading an entry updates its time of use
    assert time.time() - (cache / "kernels" / "here" / "group").stat().st_mtime < DAY


def test_cache_folder_follows_environment_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("REVERSI_CACHE_DIR", str(tmp_path))
    assert caches.cache_folder("kernels") == tmp_path / "kernels"
    monkeypatch.setenv("REVERSI_CACHE_DIR", "")
    usual = caches.cache_folder()
    monkeypatch.delenv("REVERSI_CACHE_DIR")
    assert caches.cache_folder() == usual
    assert usual.is_absolute()
    assert "reversi-lab" in usual.parts
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert caches.cache_folder() == tmp_path / "reversi-lab"


def test_cache_command_lists_and_clears(cache, reversi, json_lines):
    KernelFiles("here").write(*KEY, b"x" * 3000)
    (cache / "solved").mkdir()
    (cache / "solved" / "exact.npy").write_bytes(b"y" * 500)
    (cache / "mine.txt").write_text("not of this project")
    [summary] = json_lines("cache")
    assert summary["folder"] == str(cache)
    assert summary["parts"]["kernels"]["files"] == 1
    assert summary["parts"]["kernels"]["bytes"] > 3000
    assert summary["parts"]["solved"] == {"files": 1, "bytes": 500}
    status, out, _ = reversi("cache")
    assert (status, out.splitlines()[0]) == (0, str(cache))
    assert reversi("cache", "clear")[0] == 0
    assert not (cache / "kernels").exists()
    assert (cache / "solved" / "exact.npy").exists()
    assert reversi("cache", "clear", "--all")[0] == 0
    assert [path.name for path in cache.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_concurrent_processes_write_complete_reusable_entries(filled):
    before = entries(filled)
    assert before == sorted(path for path in filled.rglob("*") if path.is_file())  # no parts
    assert work(filled) == (WORK_RESULT, "")
    assert entries(filled) == before


@pytest.mark.slow
def test_each_cpu_model_has_its_own_kernels(filled, tmp_path):
    cache = shutil.copytree(filled, tmp_path / "cache")
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert work(cache, **other) == (WORK_RESULT, "")
    assert len(list((cache / "kernels").iterdir())) == 2
    before = set(entries(cache))
    assert work(cache, **other) == work(cache) == (WORK_RESULT, "")
    assert set(entries(cache)) == before


SCRIPT = """
import warnings
from numba.core import codegen
del codegen.JITCodeLibrary
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from reversi_env import Position
    from reversi_env.compiler import kernel
    print(kernel.building is None, Position.initial().perft(5))
    print(sum("JITCodeLibrary" in str(warning.message) for warning in caught))
"""


@pytest.mark.slow
def test_missing_numba_internal_is_reported_once():
    assert output_of(SCRIPT) == ["True 1396", "1"]
