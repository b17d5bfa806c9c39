"""Files that jobs name, shipped to machines that do not have them.

Options name weights by path, as in ``network:weights=runs/a.safetensors``. A path is valid on one machine only; therefore the
content is sent with the pool. A worker uses its own file of that name if it has the same content, and otherwise a copy.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from os.path import isfile
from pathlib import Path
from typing import Any

from models.evaluator import FOLDER
from reversi_env import ReversiError, __version__
from reversi_env.storage.atomic import write_atomically
from search.agents.registry import AgentSpecError
from search.agents.spec import AgentSpec

#: The packages whose code runs jobs, their folder, and the suffixes of the files that decide the results.
PACKAGES, ROOT = ("reversi_env", "search", "models", "train"), FOLDER.parents[1]
FINGERPRINTED_SUFFIXES = (".py", ".npy", ".safetensors")


@dataclass(frozen=True)
class ShippedFile:
    """A file: its name as the options have it, its hash and its content."""

    name: str
    sha256: str
    content: bytes


@cache
def build_id(*others: str) -> str:
    """Return the version and a hash of all code, books and weights of the `PACKAGES` and of *others*.

    Only machines of the same build give equal results. Of weight files only the names are hashed, since they contain hashes.
    """
    digest = hashlib.sha256()
    for path in sorted(path for name in (*PACKAGES, *others) for path in (ROOT / name).rglob("*")):
        if path.suffix in FINGERPRINTED_SUFFIXES and path.is_file():  # the lock of an editor may be a dangling link
            name = path.relative_to(ROOT)
            digest.update(name.as_posix().encode())
            if "weights" not in name.parts:
                digest.update(path.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:12]}"


def collect_files(arguments: Iterable[Any]) -> tuple[ShippedFile, ...]:
    """Return the files that text fields of options name; names of agents have no suffix and are not taken for files."""
    files = {}
    for name in (name for argument in arguments for text in _texts(argument) for name in _files(text)):
        if Path(name).suffix and name not in files and isfile(name):  # noqa: PTH113 - Path raises for a text too long for a name
            content = Path(name).read_bytes()
            files[name] = ShippedFile(name, hashlib.sha256(content).hexdigest(), content)
    return tuple(files.values())


def unpack(files: Iterable[ShippedFile], folder: Path | None = None) -> dict[str, str]:
    """Return the local paths of files that this machine lacks; its workers share the copies in *folder*."""
    places = {}
    for file in files:
        if not _has_content(Path(file.name), file):
            copy = (folder or _own_folder()) / f"{file.sha256}{Path(file.name).suffix}"
            if not _has_content(copy, file):
                write_atomically(copy, file.content)
            places[file.name] = str(copy)
    return places


def with_local_paths(argument: Any, places: Mapping[str, str]) -> Any:
    """Return options with the local paths of their files."""
    pairs = {name: (value, _with_local_path(value, places)) for name, value in _fields(argument) if places}
    changed = {name: after for name, (before, after) in pairs.items() if after != before}
    return replace(argument, **changed) if changed else argument


def _files(text: str) -> tuple[str, ...]:
    """Return possible file names: the weights and the book of an agent, or the whole text."""
    try:
        return tuple(AgentSpec.parse(text).files().values()) or (text,)
    except AgentSpecError:
        return (text,)


def _with_local_path(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_local_path(part, places) for part in value)
    if not isinstance(value, str):
        return value
    if value in places or not any(name in places for name in _files(value)):
        return places.get(value, value)
    spec = AgentSpec.parse(value)
    return str(spec.with_(**{key: places[name] for key, name in spec.files().items() if name in places}))


def _fields(argument: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(argument) and not isinstance(argument, type):
        yield from ((field.name, getattr(argument, field.name)) for field in fields(argument))


def _texts(argument: Any) -> Iterator[str]:
    for _, value in _fields(argument):
        yield from (text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str))


def _has_content(path: Path, file: ShippedFile) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    except OSError:
        return False


def _own_folder() -> Path:
    """Return a folder that no other user can write to."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"reversi-lab-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if hasattr(os, "getuid") and (status.st_uid != user or status.st_mode & 0o022 or not folder.is_dir()):
        raise ReversiError(f"{str(folder)!r} can be written by another user: expected your own folder")
    return folder
