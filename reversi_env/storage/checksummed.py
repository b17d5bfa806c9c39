"""A safetensors container with a JSON header and a SHA-256 checksum of the whole content. Nothing is ever unpickled."""

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

#: Digits of a hash in messages and in file names.
HASH_DIGITS = 12
Content = TypeVar("Content")


class ChecksumError(ReversiError):
    """Content without a checksum, or with one that does not match."""


def pack_checksummed(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """Return the content of a safetensors file with a JSON header that holds a SHA-256 of header and tensors."""
    header = json.loads(json.dumps(header))  # in the form in which it will be read
    rows = {name: np.asarray(array, order="C") for name, array in tensors.items()}  # safetensors takes no others
    return save(rows, metadata={"network": json.dumps({**header, "sha256": _checksum(rows, header)})})


def unpack_checksummed(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and tensors of a file made by `pack_checksummed`. Raise a `ChecksumError` for any other content."""
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ChecksumError(f"{error}") from None
    stored = header.pop("sha256", None)
    if stored is None:
        raise ChecksumError("it has no SHA-256 of its content, like files of earlier versions")
    computed = _checksum(tensors, header)
    if computed != stored:
        raise ChecksumError(f"damaged, its SHA-256 is {computed[:HASH_DIGITS]} and not {str(stored)[:HASH_DIGITS]}")
    return header, tensors


def read_header(data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["network"])
    if not isinstance(header, dict):
        raise ValueError(f"a header of {type(header).__name__}")
    return header


def tensors_hash(tensors: Mapping[str, np.ndarray]) -> str:
    """Return a hash of the tensors' bytes in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()[:HASH_DIGITS]


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, cached until the file changes."""
    return read_cached(path, _file_hash)


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_cached(path: Path, read: Callable[[Path], Content]) -> Content:
    """Return ``read(path)``, cached until the file changes, because agents are created for each game."""
    try:
        status = path.stat()
    except OSError:
        return read(path)  # this raises the right error
    content: Content = _read_cached(path, read, status.st_mtime_ns, status.st_size)
    return content


@lru_cache(maxsize=32)
def _read_cached(path: Path, read: Callable[[Path], Any], changed: int, size: int) -> Any:
    return read(path)


def _checksum(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """Return a hash of the header and of the tensors with their names, dtypes and shapes."""
    kinds = [[name, tensors[name].dtype.str, list(tensors[name].shape)] for name in sorted(tensors)]
    return hashlib.sha256(json.dumps([header, kinds, tensors_hash(tensors)], sort_keys=True).encode()).hexdigest()
