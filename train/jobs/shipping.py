"""Files that jobs name, and how they reach machines that do not have them.

Options name weights by path, as in ``network:weights=runs/a.safetensors``. A path means something on one machine only; so the bytes
travel with the pool, once a machine. A worker uses its own file of that name if it is the same to the byte, and otherwise a copy.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
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

#: The packages whose code does jobs, where they lie, and how the files end that decide what comes out.
PACKAGES, ROOT = ("reversi_env", "search", "models", "train"), FOLDER.parents[1]
DECIDING = (".py", ".npy", ".safetensors")


@dataclass(frozen=True)
class Parcel:
    """A file: its name as the options have it, its bytes and their hash."""

    name: str
    sha256: str
    content: bytes


@cache
def build(*others: str) -> str:
    """What must be the same everywhere for results to be: the version, and all code, books and weights of the `PACKAGES`.

    *others* are further packages beside them. Of weights the names will do, which have hashes in them.
    """
    digest = hashlib.sha256()
    for path in sorted(path for name in (*PACKAGES, *others) for path in (ROOT / name).rglob("*")):
        if path.suffix in DECIDING and path.is_file():  # an editor's lock is a link to nowhere
            name = path.relative_to(ROOT)
            digest.update(name.as_posix().encode())
            if "weights" not in name.parts:
                digest.update(path.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:12]}"


def commit(*others: str) -> str | None:
    """Hash of the checkout's commit, with ``-dirty`` if code of the `PACKAGES` or of *others* was changed; None elsewhere."""
    head = _git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    return f"{head}-dirty" if head and _git("status", "--porcelain", "--", *PACKAGES, *others) else head


def _git(*words: str) -> str | None:
    try:
        asked = ["git", "-C", str(ROOT), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def parcels(arguments: Iterable[Any]) -> tuple[Parcel, ...]:
    """The files that the text fields of options name. Names of agents have no dot, so that no file can be taken for one."""
    found = {}
    for name in (name for argument in arguments for text in _texts(argument) for name in _files(text)):
        if Path(name).suffix and name not in found and isfile(name):  # noqa: PTH113 - a Path is upset by a text too long for a name
            content = Path(name).read_bytes()
            found[name] = Parcel(name, hashlib.sha256(content).hexdigest(), content)
    return tuple(found.values())


def unpacked(sent: Iterable[Parcel], folder: Path | None = None) -> dict[str, str]:
    """Where this machine has what is not here under its own name; copies are made in *folder*, and shared by its workers."""
    places = {}
    for parcel in sent:
        if not _is(Path(parcel.name), parcel):
            copy = (folder or _own_folder()) / f"{parcel.sha256}{Path(parcel.name).suffix}"
            if not _is(copy, parcel):
                write_atomically(copy, parcel.content)
            places[parcel.name] = str(copy)
    return places


def relocated(argument: Any, places: Mapping[str, str]) -> Any:
    """Options with other names for their files."""
    moved = {name: _moved(value, places) for name, value in _fields(argument) if places}
    changed = {name: value for name, value in moved.items() if value != getattr(argument, name)}
    return replace(argument, **changed) if changed else argument


def _files(text: str) -> tuple[str, ...]:
    """What may be a file: the weights and the book of an agent, or the whole text."""
    try:
        return tuple(AgentSpec.parse(text).files().values()) or (text,)
    except AgentSpecError:
        return (text,)


def _moved(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_moved(part, places) for part in value)
    if not isinstance(value, str):
        return value
    if value in places:
        return places[value]
    if not any(name in places for name in _files(value)):
        return value
    spec = AgentSpec.parse(value)
    return str(spec.with_(**{key: places[name] for key, name in spec.files().items() if name in places}))


def _fields(argument: Any) -> Iterator[tuple[str, Any]]:
    """The fields of options, by name; of anything else none."""
    if is_dataclass(argument) and not isinstance(argument, type):
        yield from ((field.name, getattr(argument, field.name)) for field in fields(argument))


def _texts(argument: Any) -> Iterator[str]:
    for _, value in _fields(argument):
        yield from (text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str))


def _is(path: Path, parcel: Parcel) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == parcel.sha256
    except OSError:
        return False


def _own_folder() -> Path:
    """A folder that nobody else can write to."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"reversi-lab-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    known = folder.lstat()
    if hasattr(os, "getuid") and (known.st_uid != user or known.st_mode & 0o022 or not folder.is_dir()):
        raise ReversiError(f"{str(folder)!r} is another user's: expected a folder of one's own for shipped files")
    return folder
