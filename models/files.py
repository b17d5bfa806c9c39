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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.storage.checksummed import HASH_DIGITS, read_header, tensors_hash

FORMAT = 1
_HASH_IN_NAME = re.compile(rf"-([0-9a-f]{{{HASH_DIGITS}}})\.safetensors$")


class WeightsError(ReversiError):
    """A weight file that is not there, not whole, or not for the game that is played."""


def file_content(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """The content of a weight file with these tensors."""
    whole = {"format": FORMAT, "tensors": tensors_hash(tensors), **header}
    return save(dict(tensors), metadata={"network": json.dumps(whole, sort_keys=True)})


def named_by_hash(stem: str, data: bytes) -> str:
    """The name of a weight file with that content."""
    return f"{stem}-{hashlib.sha256(data).hexdigest()[:HASH_DIGITS]}.safetensors"


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
        raise WeightsError(f"weight file {str(path)!r} of format {quoted(header.get('format'))}: expected {FORMAT}")
    missing = {"architecture", "size", "variant", "record"} - set(header)
    if missing:
        raise WeightsError(f"weight file {str(path)!r} does not say its {min(missing)}: expected a header that does")
    if not isinstance(header["record"], dict):
        kind = type(header["record"]).__name__
        raise WeightsError(f"weight file {str(path)!r} has a record of {kind}: expected an object")
    if not named and "tensors" in header and header["tensors"] != tensors_hash(tensors):
        raise WeightsError(f"weight file {str(path)!r} is damaged: its weights are not those that its header says")
    return header, tensors


def check_game(what: str, found: Rules, wanted: Rules) -> None:
    """Refuse what is for another board or variant than the one that is *wanted*."""
    if (found.size, found.variant) != (wanted.size, wanted.variant):
        raise WeightsError(
            f"{what} is for {found.size}x{found.size} {found.variant}: "
            f"expected one for {wanted.size}x{wanted.size} {wanted.variant}"
        )


def check_name(path: Path, data: bytes, what: str) -> bool:
    """Refuse a file whose name has another hash than its content; whether it has one at all."""
    named = _HASH_IN_NAME.search(path.name)
    digits = hashlib.sha256(data).hexdigest()[:HASH_DIGITS]
    if named and named[1] != digits:
        raise WeightsError(f"{what} {str(path)!r} is damaged: its hash is {digits}, expected {named[1]}")
    return named is not None
