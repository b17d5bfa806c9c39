"""Atomic writes: leftovers of killed processes, and concurrent writers."""

import os
import stat
import threading

import pytest

from reversi_env.storage import atomic as atomic_files
from reversi_env.storage.atomic import append_atomically, atomic_writer, remove_temporary_files, write_atomically
from tests.oracles.jobs import wait_until
from train.jobs.run import Run


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_is_replaced_atomically(tmp_path, monkeypatch):
    path, real, flushed = tmp_path / "file", os.fsync, []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_size) or real(descriptor)
    )
    path.write_bytes(b"old")
    with atomic_writer(path) as stream:
        stream.write(b"new ")
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == [".file.part", "file"]
        stream.write(b"content")
    assert len(b"new content") in flushed  # the new content was flushed before it replaced the file
    assert path.read_bytes() == b"new content"
    assert names(tmp_path) == ["file"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_leftover_part_is_replaced_and_error_keeps_old_file(tmp_path):
    (tmp_path / ".file.part").write_bytes(b"much more than there will be")
    write_atomically(tmp_path / "file", b"old")
    assert names(tmp_path) == ["file"]
    with pytest.raises(ZeroDivisionError), atomic_writer(tmp_path / "file") as stream:
        stream.write(b"new" * (1 // 0))
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_locking_a_folder_removes_unused_parts(tmp_path):
    others = (".hidden", "visible.part", "file")
    for name in (*others, ".left.part"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / ".folder.part").mkdir()
    with atomic_writer(tmp_path / "slow") as stream:
        stream.write(b"first, ")
        with Run(tmp_path):
            assert names(tmp_path) == sorted((*others, ".folder.part", ".slow.part"))
        stream.write(b"second")
    assert (tmp_path / "slow").read_bytes() == b"first, second"


@pytest.mark.skipif(atomic_files.fcntl is None, reason="no locks")
def test_second_writer_waits_for_the_first(tmp_path):
    path, waits = tmp_path / "file", threading.Event()
    real = atomic_files.fcntl.flock

    def flock(descriptor, how):
        if threading.current_thread() is second:
            waits.set()
        real(descriptor, how)

    second = threading.Thread(target=write_atomically, args=(path, b"2" * 10))
    with pytest.MonkeyPatch.context() as patch, atomic_writer(path) as stream:
        patch.setattr(atomic_files.fcntl, "flock", flock)
        stream.write(b"1" * 100)
        second.start()
        wait_until(waits.is_set)
        stream.write(b"1" * 100)
    second.join()
    assert path.read_bytes() == b"2" * 10
    assert names(tmp_path) == ["file"]


def test_symlink_in_place_of_part_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"untouched")
    (tmp_path / ".file.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="file.part"):
        write_atomically(tmp_path / "file", b"content")
    remove_temporary_files(tmp_path)
    assert (tmp_path / "elsewhere").read_bytes() == b"untouched"


def test_line_is_appended_completely_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    append_atomically(path, b"first\n")
    append_atomically(path, b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"
    monkeypatch.setattr(os, "write", lambda descriptor, data: len(data) - 1)
    with pytest.raises(OSError, match="No space left on device: .*lines"):
        append_atomically(path, b"third\n")
