"""`Run`: a resumable job in a folder. After any interruption the same call resumes the job.

Entering a run makes the folder, locks it against other processes, removes temporary files of a killed process, and compares
the options with those that the folder was started with::

    with Run(folder, options):
        for step in missing:
            ...
            write_csv(folder / "log.csv", rows)

All files of a job are complete at any moment (`train.jobs.logs`): a log is a CSV file that is replaced (`write_csv`) or a file
of JSON lines that grows (`JsonLines`); arrays (`save_arrays`) and training states (`save_state`) have checksums. The file that
commits a step is written last.
"""

import json
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any, Self, TypeVar

from reversi_env import __version__
from reversi_env.errors import TrainError, quoted
from reversi_env.options import Options, option_fields
from reversi_env.storage.atomic import lock, remove_temporary_files, write_atomically
from train.jobs.shipping import build_id

#: The files of a folder with the options of its run, with its contents, and with the state of a training.
RUN, MANIFEST, CHECKPOINT = "run.json", "manifest.json", "checkpoint.safetensors"
#: The format of a file of options.
FORMAT = "reversi-run-1"
AnyOptions = TypeVar("AnyOptions", bound=Options)


class Run:
    """The folder of a job, while it is written.

    ``file``, JSON of a *format*, stores the *options*, the *content_hashes* (such as those of weights that the options only name)
    and the builds of the code that has run. Options in *changeable* may change, those in *extendable* may grow. A job that has not
    *begun* has nothing to resume and may have any other options; by default a job has begun if the file exists. A folder of
    another kind of run is refused: each kind has one of the files named above as its ``file``, or none if its folder may have
    other files.
    """

    def __init__(
        self,
        folder: Path,
        options: Options | None = None,
        content_hashes: Mapping[str, Any] | None = None,
        *,
        file: str | None = None,
        format: str = FORMAT,
        changeable: Collection[str] = (),
        extendable: Collection[str] = (),
        begun: Callable[[], bool] | None = None,
    ) -> None:
        self.folder, self.options, self.content_hashes = folder, options, dict(content_hashes or {})
        self._file = file or (RUN if options is not None else None)
        self._path = folder / (self._file or RUN)
        self._format, self._changeable, self._extendable = format, changeable, extendable
        self._begun = begun or self._path.exists
        self._lock: int | None = None

    def __enter__(self) -> Self:
        _make_folder(self.folder)
        if os.name == "posix":  # Windows opens no folders
            self._lock = os.open(self.folder, os.O_RDONLY)  # the lock ends with the process
        is_locked = None if self._lock is None else lock(self._lock, wait=False)
        if is_locked is None:
            text = f"{str(self.folder)!r} is on a file system without locks: expected no other process to write there"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        try:
            if is_locked is False:
                raise TrainError(
                    f"{str(self.folder)!r} is being written by another process: expected it to end first, or another folder"
                )
            self._check_kind()
            remove_temporary_files(self.folder)
            self.store_or_check_options()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: object = None, error: BaseException | None = None, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            text = f"{os.strerror(error.errno)}: expected free space; the same command then resumes"
            raise OSError(error.errno, text, error.filename) from None

    def _check_kind(self) -> None:
        """Refuse a folder in which another kind of run has its files."""
        if self._file is None:
            return
        others = {RUN, MANIFEST, CHECKPOINT} - {self._file}
        if self._path.exists():  # but a checkpoint may belong to another kind of run, which has options
            others = {RUN} if self._file == CHECKPOINT else set()
        for other in sorted(others):
            if (self.folder / other).exists():
                raise TrainError(f"{str(self.folder)!r} has {other}, of another kind of run: expected another folder")

    def store_or_check_options(self) -> None:
        """Write the options into the folder, or raise if a run with the stored options cannot be resumed with these."""
        if self.options is None:
            return
        options = self.options.as_dict()
        content = {
            "format": self._format,
            "version": __version__,
            "options": options,
            "ingredients": self.content_hashes,
        }
        stored = read_json(self._path, self._format) if self._path.exists() else None
        code = list((stored or {}).get("code", []))
        content["code"] = code if build_id() in code else [*code, build_id()]
        begun = self._begun()
        if begun and stored is None:
            raise TrainError(f"{str(self.folder)!r} has results but no {self._path.name}: expected an empty folder")
        if stored is not None:
            before = _stored_options(self._path, stored, type(self.options))
            if begun:
                check_resumable(self.folder, before, options, changeable=self._changeable, extendable=self._extendable)
                hashes = dict(stored.get("ingredients") or {})
                check_resumable(self.folder, self._as_hashes(hashes), self._as_hashes(self.content_hashes))
                if {**stored, "version": ""} == {**content, "version": ""}:
                    return
        write_atomically(self._path, (json.dumps(content, indent=1) + "\n").encode())

    def _as_hashes(self, content_hashes: dict[str, Any]) -> dict[str, Any]:
        """Return the content hashes under the names by which `check_resumable` recognises hashes."""
        return content_hashes


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise TrainError(f"{str(folder)!r} is a file: expected a folder, or a name for a new one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TrainError(
            f"folder {str(folder)!r} cannot be created, {reason}: expected a place where you may write"
        ) from None
    if not os.access(folder, os.W_OK):
        raise TrainError(f"folder {str(folder)!r} is read-only: expected a place where you may write")


def check_resumable(
    path: Path,
    stored: Mapping[str, Any],
    current: Mapping[str, Any],
    *,
    changeable: Collection[str] = (),
    extendable: Collection[str] = (),
) -> None:
    """Raise if the *stored* options or hashes of *path* differ from the *current* ones.

    The values of hashes, whose names end in ``_sha256``, are not part of the message.
    """
    for name, value in current.items():
        before = stored.get(name)
        if name in changeable or before == value:
            continue
        if name.endswith("_sha256"):
            file = name.removesuffix("_sha256")
            raise TrainError(
                f"{str(path)!r} was started with a different version of {file}: expected the same version, or another folder"
            )
        may_grow = name in extendable and isinstance(before, int)
        if not may_grow or value < before:
            expected = f"{before} or more" if may_grow else "the same value"
            raise TrainError(
                f"{str(path)!r} was started with {name}={quoted(before)}: expected {expected}, not {quoted(value)}, or "
                "another folder"
            )


def as_hashes(named: Mapping[str, str]) -> dict[str, str]:
    """Return hashes under the names by which `check_resumable` recognises them."""
    return {f"{name}_sha256": value for name, value in named.items()}


def stored_options(folder: Path, kind: type[AnyOptions]) -> AnyOptions | None:
    """Return the options that a folder was started with, or None for a new folder."""
    path = folder / RUN
    if not path.exists():
        return None
    try:
        return kind.from_dict(_stored_options(path, read_json(path, FORMAT), kind))
    except TrainError:
        raise
    except ValueError as error:
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected the options of a run") from None


def _stored_options(path: Path, content: dict[str, Any], kind: type[Options]) -> dict[str, Any]:
    """Return the options of a file, with defaults for options added later; the file of another kind of run is refused."""
    stored = dict(content.get("options") or {})
    names = {field.name for field in option_fields(kind)}  # type: ignore[arg-type]
    if not names & stored.keys():
        raise TrainError(f"{str(path)!r} cannot be read (no options): expected a file that a run has written")
    for name in stored:
        if name not in names:
            raise TrainError(f"{str(path)!r} has {quoted(name)}, of another kind of run: expected another folder")
    return {**kind.defaults(), **stored}


def read_json(path: Path, format: str) -> dict[str, Any]:
    """Return the content of a run's JSON file; one that cannot be read, or is of another *format*, raises a `TrainError`."""
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["format"] != format:
            raise ValueError(f"format {quoted(content['format'])}")
        return dict(content)
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected JSON of the format {format}") from None
