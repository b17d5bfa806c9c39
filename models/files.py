"""Weight files: safetensors with a header that says what the weights are, and their hash in the file's name.

The tensors are those of a network as the search uses it. The header is one JSON text under the key ``network``: format
version, architecture, size, variant, the hash of the tensors, and whatever was recorded about the training. A file named
``…-0123456789ab.safetensors`` must have a SHA-256 that begins with those twelve digits; one that was renamed is still
held against the hash of its tensors.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reversi_env import ReversiError
from reversi_env.errors import shown

FORMAT = 1
DIGITS = 12
Content = TypeVar("Content")
_HASH_IN_NAME = re.compile(rf"-([0-9a-f]{{{DIGITS}}})\.safetensors$")


class WeightsError(ReversiError):
    """A weight file that is not there, not whole, or not for the game that is played."""


def file_content(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """The content of a weight file with these tensors."""
    whole = {"format": FORMAT, "tensors": tensors_hash(tensors), **header}
    return save(dict(tensors), metadata={"network": json.dumps(whole, sort_keys=True)})


def named_by_hash(stem: str, data: bytes) -> str:
    """The name of a weight file with that content."""
    return f"{stem}-{hashlib.sha256(data).hexdigest()[:DIGITS]}.safetensors"


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the tensors of a weight file, whole and of this format."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise WeightsError(f"weight file {str(path)!r} cannot be read: {error.strerror}") from None
    named = check_name(Path(path), data, "weight file")
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError(f"weight file {str(path)!r} cannot be read ({error}): expected safetensors") from None
    if header.get("format") != FORMAT:
        raise WeightsError(f"weight file {str(path)!r} of format {shown(header.get('format'))}: expected {FORMAT}")
    missing = {"architecture", "size", "variant", "record"} - set(header)
    if missing:
        raise WeightsError(f"weight file {str(path)!r} does not say its {min(missing)}: expected a header that does")
    if not isinstance(header["record"], dict):
        kind = type(header["record"]).__name__
        raise WeightsError(f"weight file {str(path)!r} has a record of {kind}: expected an object")
    if not named and "tensors" in header and header["tensors"] != tensors_hash(tensors):
        raise WeightsError(f"weight file {str(path)!r} is damaged: its weights are not those that its header says")
    return header, tensors


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


def check_name(path: Path, data: bytes, what: str) -> bool:
    """Refuse a file whose name has another hash than its content; whether it has one at all."""
    named = _HASH_IN_NAME.search(path.name)
    digits = hashlib.sha256(data).hexdigest()[:DIGITS]
    if named and named[1] != digits:
        raise WeightsError(f"{what} {str(path)!r} is damaged: its hash is {digits}, expected {named[1]}")
    return named is not None


def read_header(data: bytes) -> dict[str, Any]:
    """The JSON header of a weight file's content."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["network"])
    if not isinstance(header, dict):
        raise ValueError(f"a header of {type(header).__name__}")
    return header


def tensors_hash(tensors: Mapping[str, np.ndarray]) -> str:
    """What the header says about the tensors: a hash of their bytes in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return digest.hexdigest()[:DIGITS]


def sealed(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """The content of a safetensors file with a JSON header that has a SHA-256 of all that is in the file, for `unsealed`."""
    rows = {name: np.asarray(array, order="C") for name, array in tensors.items()}  # safetensors takes no others
    return save(rows, metadata={"network": json.dumps({**header, "sha256": _seal(rows, header)})})


def unsealed(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the tensors of what `sealed` made; a `WeightsError` that says what is wrong with anything else."""
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise WeightsError(f"{error}") from None
    there = header.pop("sha256", None)
    if there is None:
        raise WeightsError("it has no SHA-256 of its content, as files of earlier versions")
    here = _seal(tensors, header)
    if here != there:
        raise WeightsError(f"damaged, its SHA-256 is {here[:DIGITS]} and not {str(there)[:DIGITS]}")
    return header, tensors


def _seal(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> str:
    """A hash of the header, and of the tensors with their names, types and shapes."""
    kinds = [[name, tensors[name].dtype.str, list(tensors[name].shape)] for name in sorted(tensors)]
    return hashlib.sha256(json.dumps([header, kinds, tensors_hash(tensors)], sort_keys=True).encode()).hexdigest()
