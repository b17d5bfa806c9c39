"""Weight files: safetensors with a header that describes the network, and their hash in the file's name.

The header is one JSON text under the key ``network``: format version, architecture, size, variant, hash of the tensors, and
record of the training. A file named ``…-0123456789ab.safetensors`` must have a SHA-256 that begins with these twelve digits. A
renamed file is checked by the SHA-256 in its header; older files have only a hash of the tensors there.
"""

import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.storage.checksummed import HASH_DIGITS, pack_checksummed, read_header, tensors_hash, unpack_checksummed

FORMAT = 1
_HASH_IN_NAME = re.compile(rf"-([0-9a-f]{{{HASH_DIGITS}}})\.safetensors$")


class WeightsError(ReversiError):
    """A weight file that is missing, damaged, or for another game."""


def file_content(tensors: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> bytes:
    """Return the content of a weight file with these tensors."""
    return pack_checksummed(tensors, {"format": FORMAT, **header})


def named_by_hash(stem: str, data: bytes) -> str:
    """Return the name of a weight file with that content."""
    return f"{stem}-{hashlib.sha256(data).hexdigest()[:HASH_DIGITS]}.safetensors"


def packaged_file(folder: Path, prefix: str, rules: Rules, training: str) -> Path:
    """Return the file ``PREFIXSIZExSIZE-VARIANT-HASH.safetensors`` of *folder*; *training* is the command that makes one."""
    game = f"{rules.size}x{rules.size} {rules.variant}"
    paths = list(folder.glob(f"{prefix}{game.replace(' ', '-')}-*.safetensors"))
    if not paths:
        raise WeightsError(f"the package has no network for {game}: expected the weight file of a `{training}`")
    if len(paths) > 1:
        raise WeightsError(f"{len(paths)} weight files for {game} in {str(folder)!r}: expected one")
    if not _HASH_IN_NAME.search(paths[0].name):
        raise WeightsError(f"weight file {str(paths[0])!r} of the package: expected a name that ends with its hash")
    return paths[0]


def read_file(path: Path | str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the tensors of a weight file of any network, after a check of its hashes."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(
            f"weight file {str(path)!r} cannot be read, {str(error.strerror).lower()}: expected a file of trained weights"
        ) from None
    named, digits = _HASH_IN_NAME.search(path.name), hashlib.sha256(data).hexdigest()[:HASH_DIGITS]
    if named and named[1] != digits:
        raise WeightsError(f"weight file {str(path)!r} is damaged: its hash is {digits}, expected {named[1]}")
    try:
        is_checked = "sha256" in read_header(data)
        header, tensors = unpack_checksummed(data) if is_checked else (read_header(data), load(data))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"weight file {str(path)!r} cannot be read ({error}): expected an undamaged safetensors file"
        raise WeightsError(reason) from None
    if header.get("format") != FORMAT:
        raise WeightsError(f"weight file {str(path)!r} of format {quoted(header.get('format'))}: expected {FORMAT}")
    missing = {"architecture", "size", "variant", "record"} - set(header)
    if missing:
        raise WeightsError(f"weight file {str(path)!r} has no {min(missing)} in its header: expected a complete header")
    if not isinstance(header["record"], dict):
        kind = type(header["record"]).__name__
        raise WeightsError(f"weight file {str(path)!r} has a record of {kind}: expected an object")
    if not named and "tensors" in header and header["tensors"] != tensors_hash(tensors):
        raise WeightsError(f"weight file {str(path)!r} is damaged: its tensors do not have the hash of its header")
    if not named and not is_checked:
        text = f"weight file {str(path)!r} has no SHA-256 of its header: expected a newer file, or its original name"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return header, tensors


def check_game(what: str, actual: Rules, expected: Rules) -> None:
    """Raise a `WeightsError` if *what* is for another board or variant than expected."""
    if (actual.size, actual.variant) != (expected.size, expected.variant):
        raise WeightsError(
            f"{what} is for {actual.size}x{actual.size} {actual.variant}: "
            f"expected one for {expected.size}x{expected.size} {expected.variant}"
        )
