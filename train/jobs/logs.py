"""Files of a job: tables in CSV, logs in JSON lines, arrays and states with checksums; and how a job reports its progress."""

import csv
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError
from reversi_env.storage.atomic import append_atomically, write_atomically
from reversi_env.storage.checksummed import ChecksumError, pack_checksummed, unpack_checksummed

#: The key of a line's checksum.
CHECKSUM = "crc32"
#: Errors of zipfile and numpy for a damaged archive; a flipped bit may also mark it as encrypted (RuntimeError) or compressed.
ARCHIVE_ERRORS = (OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
#: Called with the name of a task, the number of its units that are done, and their total.
Progress = Callable[[str, int, int], None]


def no_progress(task: str, done: int, total: int) -> None:
    """Report nothing."""


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV, with *columns*, by default those of all rows."""
    text = io.StringIO()
    columns = columns or list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write rows as a CSV file, in place of an existing one."""
    write_atomically(path, csv_text(rows, columns).encode())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, none if it does not exist."""
    return list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []


class JsonLines:
    """A file of JSON lines, each appended by one write and flushed to the disk. Objects and lists end with a CRC-32."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __bool__(self) -> bool:
        return self.path.exists() and b"\n" in self.path.read_bytes()

    def read(self) -> list[Any]:
        """Return all lines. An incomplete last line, from a process that was killed, is removed."""
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        size = data.rfind(b"\n") + 1
        if size < len(data):
            os.truncate(self.path, size)
        lines = []
        for number, line in enumerate(data[:size].splitlines(), 1):
            try:
                lines.append(_without_checksum(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise self.damaged(number, error) from None
        return lines

    def damaged(self, number: int, error: object) -> TrainError:
        """Return the error for the damaged line *number*, counted from 1."""
        return TrainError(
            f"line {number} of {str(self.path)!r} cannot be read ({error}): expected it as it was written; restore it, or "
            "delete it and all lines below"
        )

    def append(self, line: Any) -> None:
        append_atomically(self.path, _with_checksum(line))

    def replace(self, lines: Iterable[Any]) -> None:
        write_atomically(self.path, b"".join(map(_with_checksum, lines)))


def _with_checksum(line: Any) -> bytes:
    line = json.loads(json.dumps(line))  # as it will be read
    if isinstance(line, dict):
        line[CHECKSUM] = _checksum(line)
    elif isinstance(line, list):
        line.append({CHECKSUM: _checksum(line)})
    return (json.dumps(line) + "\n").encode()


def _without_checksum(line: Any) -> Any:
    """Return the content of a line after a check of its checksum, which objects of earlier versions lack."""
    if isinstance(line, list) and line and isinstance(line[-1], dict):
        stored = line.pop().get(CHECKSUM, 0)
    else:
        stored = line.pop(CHECKSUM, None) if isinstance(line, dict) else None
    if stored is not None and stored != _checksum(line):
        raise ValueError("its CRC-32 does not match")
    return line


def _checksum(line: Any) -> int:
    return zlib.crc32(json.dumps(line, sort_keys=True).encode())


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compressed: bool = False) -> None:
    """Write arrays as an npz file."""
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def load_arrays(
    path: Path, names: Sequence[str], remedy: str = "delete it to compute it again", *, optional: Sequence[str] = ()
) -> list[Any]:
    """Return arrays of an npz file, the *optional* ones last, None if absent; a corrupted file raises a `TrainError`."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
            return [*(saved[name] for name in names), *(saved.get(name) for name in optional)]
    except ARCHIVE_ERRORS as error:
        raise _damaged(path, error, remedy) from None


def save_state(path: Path, tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    write_atomically(path, pack_checksummed(tensors, header))


def load_state(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Return header and tensors of `save_state`, None if there is no file; a corrupted file raises a `TrainError`."""
    try:
        return unpack_checksummed(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ChecksumError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception, remedy: str = "delete it to compute it again") -> TrainError:
    return TrainError(f"{str(path)!r} cannot be read ({error}): expected it as it was written; {remedy}")
