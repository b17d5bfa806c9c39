"""`Run`: one resumable job in one folder; whatever ends it, the same call goes on where it was.

Entering it makes the folder, keeps other processes from writing there, removes what a killed process has left of its files, and
compares the options with those that the folder was begun with::

    with Run(folder, options):
        for step in missing:
            ...
            write_csv(folder / "log.csv", rows)

What a job knows is in files that are whole at any moment: a log is a CSV file that is replaced (`write_csv`) or a file of
JSON lines that grows (`JsonLines`); arrays (`save_arrays`) and states of a training (`save_state`) have checksums. What
commits a step is written last.
"""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np

from reversi_env import __version__
from reversi_env.errors import TrainError, quoted
from reversi_env.options import GameOptions, Options, option_fields
from reversi_env.storage.atomic import append_atomically, lock, remove_temporary_files, write_atomically
from reversi_env.storage.checksummed import ChecksumError, pack_checksummed, unpack_checksummed

#: Where a folder remembers the options of its run, or what it has; and where a training is.
RUN, MANIFEST, CHECKPOINT = "run.json", "manifest.json", "checkpoint.safetensors"
#: What a file of options says that it is.
FORMAT = "reversi-run-1"
AnyOptions = TypeVar("AnyOptions", bound=Options)
AnyGameOptions = TypeVar("AnyGameOptions", bound=GameOptions)


class Run:
    """The folder of a job, while it is written.

    ``file`` remembers the *options* and the *ingredients*: what else decides the results, as hashes of the weights that
    options only name. It is JSON of a *format*. Options in *free* may change,
    those in *growing* may grow. A job that has not *begun*, with nothing to go on from, may have any others; by default one
    has, once it has the file. A folder of another kind of run is refused: each has one of the files named above as its ``file``,
    or none, if what it writes may lie beside anything.
    """

    def __init__(
        self,
        folder: Path,
        options: Options | None = None,
        ingredients: Mapping[str, Any] | None = None,
        *,
        file: str | None = None,
        format: str = FORMAT,
        free: Collection[str] = (),
        growing: Collection[str] = (),
        begun: Callable[[], bool] | None = None,
    ) -> None:
        self.folder, self.options, self.content_hashes = folder, options, dict(ingredients or {})
        self._file = file or (RUN if options is not None else None)
        self._format, self._free, self._growing, self._begun = format, free, growing, begun
        self._lock: int | None = None

    def __enter__(self) -> Self:
        _make(self.folder)
        if os.name == "posix":  # nothing keeps two processes from one folder on Windows
            self._lock = os.open(self.folder, os.O_RDONLY)  # the lock ends with the process
            if not lock(self._lock, wait=False):
                self.__exit__()
                raise TrainError(
                    f"{str(self.folder)!r} is being written by another process: expected it to end first, or another folder"
                )
        try:
            self._check_kind()
            remove_temporary_files(self.folder)
            self.remember()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _path(self) -> Path:
        return self.folder / (self._file or RUN)

    def _check_kind(self) -> None:
        """Refuse a folder in which another kind of run has its files."""
        if self._file is None:
            return
        others = {RUN, MANIFEST, CHECKPOINT} - {self._file}
        if (
            self._path.exists()
        ):  # its own, whatever lies beside; only a checkpoint may be a training's that has options too
            others = {RUN} if self._file == CHECKPOINT else set()
        for other in sorted(others):
            if (self.folder / other).exists():
                raise TrainError(f"{str(self.folder)!r} has {other}, of another kind of run: expected another folder")

    def remember(self) -> None:
        """Write the options into the folder, or refuse to go on with others than those that are there."""
        if self.options is None:
            return
        levels = {"options": self.options.as_dict(), "ingredients": self.content_hashes}
        here: dict[str, Any] = {"format": self._format, "version": __version__, **levels}
        there = read_json(self._path, self._format) if self._path.exists() else None
        begun = there is not None if self._begun is None else self._begun()
        if begun and there is None:
            raise TrainError(f"{str(self.folder)!r} has results but no {self._path.name}: expected an empty folder")
        if there is not None and not begun:
            self._options_of(there)
        if there is not None and begun and self._same(there, here):
            return
        write_atomically(self._path, (json.dumps(here, indent=1) + "\n").encode())

    def _options_of(self, there: dict[str, Any]) -> dict[str, Any]:
        """The options that the file has; those of another kind of run are refused."""
        return _completed(self._path, dict(there.get("options") or {}), type(self.options))  # type: ignore[arg-type]

    def _same(self, there: dict[str, Any], here: dict[str, Any]) -> bool:
        """Whether the file need not be written again; what cannot be gone on from raises."""
        assert self.options is not None
        check_same(self.folder, self._options_of(there), self.options.as_dict(), free=self._free, growing=self._growing)
        check_same(self.folder, self._marks(dict(there.get("ingredients") or {})), self._marks(self.content_hashes))
        return {**there, "version": ""} == {**here, "version": ""}

    def _marks(self, ingredients: dict[str, Any]) -> dict[str, Any]:
        """The ingredients under the names by which `check_same` knows hashes."""
        return ingredients


Progress = Callable[[str, int, int], None]


def silent(doing: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(eq=False)
class Rounds(Generic[AnyGameOptions]):
    """A training for one game that goes on in rounds, in one folder, which remembers the options; others raise a `TrainError`.

    *threads* are its CPU threads, *command* is what its files say made them. *cache*: where solved positions are kept that the
    network is measured in, by default the user's. ``figures`` has those after every round.
    """

    folder: Path
    options: AnyGameOptions
    _: KW_ONLY
    threads: int | None = None
    command: str = ""
    cache: Path | None = None
    progress: Progress = silent
    figures: list[dict[str, Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.rules = self.options.rules


def _make(folder: Path) -> None:
    """Make a folder where one can write, if need be."""
    if folder.exists() and not folder.is_dir():
        raise TrainError(f"{str(folder)!r} is a file: expected a folder, or a name for a new one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TrainError(
            f"folder {str(folder)!r} cannot be made, {reason}: expected a place where you may write"
        ) from None
    if not os.access(folder, os.W_OK):
        raise TrainError(f"folder {str(folder)!r} is read-only: expected a place where you may write")


def check_same(
    begun: Path,
    there: Mapping[str, Any],
    here: Mapping[str, Any],
    *,
    free: Collection[str] = (),
    growing: Collection[str] = (),
) -> None:
    """Refuse to go on with what was *begun* with other options, or other weights, than those *here*.

    A hash, by a name that ends in ``_sha256``, is not shown.
    """
    for name, value in here.items():
        known = there.get(name)
        if name in free or known == value:
            continue
        if name.endswith("_sha256"):
            what = name.removesuffix("_sha256")
            raise TrainError(
                f"{str(begun)!r} was begun with another version of {what}: expected the same, or another folder"
            )
        more = name in growing and isinstance(known, int)
        if not more or value < known:
            expected = f"{known} or more" if more else "the same"
            raise TrainError(
                f"{str(begun)!r} was begun with {name}={quoted(known)}: expected {expected}, not {quoted(value)}, or another "
                "folder"
            )


def as_hashes(named: Mapping[str, str]) -> dict[str, str]:
    """Hashes by what they are of, under the names by which `check_same` knows them as such."""
    return {f"{name}_sha256": value for name, value in named.items()}


def remembered(folder: Path, kind: type[AnyOptions]) -> AnyOptions | None:
    """The options that a folder was begun with; None if nothing was."""
    path = folder / RUN
    if not path.exists():
        return None
    try:
        return kind.from_dict(_completed(path, dict(read_json(path, FORMAT).get("options") or {}), kind))
    except TrainError:
        raise
    except ValueError as error:
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected the options of a run") from None


def _completed(path: Path, found: dict[str, Any], kind: type[Options]) -> dict[str, Any]:
    """Options as a file has them, with those that came later; the file of another kind of run is refused."""
    expected = {one.name for one in option_fields(kind)}  # type: ignore[arg-type]
    if not expected & found.keys():
        raise TrainError(f"{str(path)!r} cannot be read (no options): expected what a run has written")
    for name in found:
        if name not in expected:
            raise TrainError(f"{str(path)!r} has {quoted(name)}, of another kind of run: expected another folder")
    return {**kind.defaults(), **found}


def read_json(path: Path, format: str = "") -> dict[str, Any]:
    """What a file that a run has written says; a `TrainError` if it says nothing, or is of another *format*."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if format and found["format"] != format:
            raise ValueError(f"format {quoted(found['format'])}")
        return dict(found)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        expected = f"a manifest of the format {format}" if format else "what a run has written"
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected {expected}") from None


# --- logs -----------------------------------------------------------------------------------------


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """A table as CSV; its columns are those of all rows unless they are given."""
    text = io.StringIO()
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Replace a file by a table."""
    write_atomically(path, csv_text(rows, columns).encode())


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table; none where there is no file."""
    return list(csv.DictReader(path.read_text("utf-8").splitlines())) if path.exists() else []


class JsonLines:
    """A file that grows by a line of JSON, each written in one go and flushed to the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __bool__(self) -> bool:
        """Whether there is a whole line."""
        return self.path.exists() and b"\n" in self.path.read_bytes()

    def read(self) -> list[Any]:
        """All lines; a last one that was cut off when a process was killed is removed."""
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self.path, whole)
        lines = []
        for number, line in enumerate(data[:whole].splitlines(), 1):
            try:
                lines.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise self.damaged(number, error) from None
        return lines

    def damaged(self, number: int, error: object) -> TrainError:
        """What to raise where line *number*, from 1, is not as it was written."""
        return TrainError(
            f"line {number} of {str(self.path)!r} cannot be read ({error}): expected it as it was written, or without it and "
            "those below"
        )

    def append(self, line: Any) -> None:
        """Add a line, whole or not at all."""
        append_atomically(self.path, (json.dumps(line) + "\n").encode())

    def replace(self, lines: Iterable[Any]) -> None:
        """Put these lines in place of all."""
        write_atomically(self.path, "".join(json.dumps(line) + "\n" for line in lines).encode())


# --- arrays and states ----------------------------------------------------------------------------


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compressed: bool = False) -> None:
    """Write arrays as an npz file."""
    content = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def load_arrays(
    path: Path, names: Sequence[str], remedy: str = "delete it to make it again", *, optional: Sequence[str] = ()
) -> list[Any]:
    """Arrays of an npz file, whose checksums find damage; a `TrainError` with the *remedy* if it has any.

    The *optional* ones come last: None where the file has none.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as saved:
            return [*(saved[name] for name in names), *(saved.get(name) for name in optional)]
    except (OSError, ValueError, LookupError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise _damaged(path, error, remedy) from None


def save_state(path: Path, tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Write where a training is: tensors and what JSON can say, with a checksum of all."""
    write_atomically(path, pack_checksummed(tensors, header))


def load_state(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Header and tensors of `save_state`; None where there is no file, a `TrainError` if it is not as it was written."""
    try:
        return unpack_checksummed(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ChecksumError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception, remedy: str = "delete it to make it again") -> TrainError:
    return TrainError(f"{str(path)!r} cannot be read ({error}): expected it as it was written; {remedy}")
