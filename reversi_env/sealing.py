"""Arrays and a JSON header in one safetensors file that knows when it was damaged: for all layers, nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reversi_env.errors import ReversiError

#: Digits of a hash that are shown, or stand in a name.
DIGITS = 12
Content = TypeVar("Content")


class SealError(ReversiError):
    """Content that `sealed` did not make, or that has changed since."""


def sealed(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """The content of a safetensors file with a JSON header that has a SHA-256 of all that is in the file, for `unsealed`."""
    rows = {name: np.asarray(array, order="C") for name, array in tensors.items()}  # safetensors takes no others
    return save(rows, metadata={"network": json.dumps({**header, "sha256": _seal(rows, header)})})


def unsealed(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the tensors of what `sealed` made; a `SealError` that says what is wrong with anything else."""
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SealError(f"{error}") from None
    there = header.pop("sha256", None)
    if there is None:
        raise SealError("it has no SHA-256 of its content, as files of earlier versions")
    here = _seal(tensors, header)
    if here != there:
        raise SealError(f"damaged, its SHA-256 is {here[:DIGITS]} and not {str(there)[:DIGITS]}")
    return header, tensors


def read_header(data: bytes) -> dict[str, Any]:
    """The JSON header of a file's content."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    header = json.loads(metadata.get("policy") or metadata["network"])
    if not isinstance(header, dict):
        raise ValueError(f"a header of {type(header).__name__}")
    return header


def tensors_hash(tensors: Mapping[str, np.ndarray]) -> str:
    """A hash of the tensors' bytes in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()[:DIGITS]


def file_hash(path: Path) -> str:
    """The SHA-256 of a file, which is read again only when it has changed."""
    return read_once(path, _file_hash)


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_once(path: Path, read: Callable[[Path], Content]) -> Content:
    """What *read* makes of a file, which is read again only when it has changed: agents are made anew for every game."""
    try:
        found = path.stat()
    except OSError:
        return read(path)  # which says what is wrong
    content: Content = _read_once(path, read, found.st_mtime_ns, found.st_size)
    return content


@lru_cache(maxsize=32)
def _read_once(path: Path, read: Callable[[Path], Any], changed: int, size: int) -> Any:
    return read(path)


def _seal(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """A hash of the header, and of the tensors with their names, types and shapes."""
    kinds = [[name, tensors[name].dtype.str, list(tensors[name].shape)] for name in sorted(tensors)]
    return hashlib.sha256(json.dumps([header, kinds, tensors_hash(tensors)], sort_keys=True).encode()).hexdigest()
