"""Weight files: safetensors with a header that says what the weights are, and their hash in the file's name.

The tensors are those of a network as it was trained, quantised to whole numbers. The header is one JSON text under the
key ``network``: format version, architecture, size, variant, and whatever was recorded about the training. A file named
``…-0123456789ab.safetensors`` must have a SHA-256 that begins with those twelve digits.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from models.core.pattern_value import COUNTS
from models.patterns import patterns_of
from reversi_env import ReversiError, Rules
from reversi_env.errors import shown

FORMAT = 1
DIGITS = 12
_HASH_IN_NAME = re.compile(rf"-([0-9a-f]{{{DIGITS}}})\.safetensors$")


class WeightsError(ReversiError):
    """A weight file that is not there, not whole, or not for the game that is played."""


@dataclass(frozen=True)
class PatternWeights:
    """A linear pattern network as whole numbers (`models.core.pattern_value.UNITS` to a disc, int16).

    ``weights``: (phases, tied pattern weights and counts), ``constants``: one for each number of empty squares.
    ``record``: what is known about the training, as JSON has it.
    """

    rules: Rules
    weights: np.ndarray
    constants: np.ndarray
    record: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        patterns = patterns_of(self.rules.size)
        expected = {
            "weights": (patterns.phases, patterns.weights + 2 * COUNTS),
            "constants": (self.rules.square_count + 1,),
        }
        for name, shape in expected.items():
            array = getattr(self, name)
            if array.dtype != np.int16 or array.shape != shape:
                raise WeightsError(
                    f"{name} of {array.dtype} and shape {array.shape}: expected int16 of {shape} "
                    f"for the {self.rules.size}x{self.rules.size} board"
                )

    def expanded(self) -> np.ndarray:
        """The weights as the search wants them: one for every state of every pattern, then the counts."""
        patterns = patterns_of(self.rules.size)
        split = patterns.weights
        return np.concatenate([self.weights[:, :split][:, patterns.tied], self.weights[:, split:]], axis=1)

    def to_bytes(self) -> bytes:
        """The file's content."""
        header = {
            "format": FORMAT,
            "architecture": "linear patterns",
            "size": self.rules.size,
            "variant": self.rules.variant,
            "record": self.record,
        }
        tensors = {"weights": np.ascontiguousarray(self.weights), "constants": np.ascontiguousarray(self.constants)}
        return save(tensors, metadata={"network": json.dumps(header, sort_keys=True)})

    def save_in(self, folder: Path) -> Path:
        """Write the file into *folder* under its own name; where it is."""
        data = self.to_bytes()
        digits = hashlib.sha256(data).hexdigest()[:DIGITS]
        path = folder / f"{self.rules.size}x{self.rules.size}-{self.rules.variant}-{digits}.safetensors"
        write_atomically(path, data)
        return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment it is there as a whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_weights(path: Path) -> PatternWeights:
    """The network in a file, checked against the hash in its name if there is one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(f"weight file {str(path)!r} cannot be read: {error.strerror}") from None
    named = _HASH_IN_NAME.search(path.name)
    digits = hashlib.sha256(data).hexdigest()[:DIGITS]
    if named and named[1] != digits:
        raise WeightsError(f"weight file {str(path)!r} is damaged: its hash is {digits}, expected {named[1]}")
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise WeightsError(f"weight file {str(path)!r} cannot be read ({error}): expected safetensors") from None
    if header.get("format") != FORMAT:
        raise WeightsError(f"weight file {str(path)!r} of format {shown(header.get('format'))}: expected {FORMAT}")
    rules = Rules(header["size"], header["variant"])
    return PatternWeights(rules, tensors["weights"], tensors["constants"], header["record"])


def read_header(data: bytes) -> dict[str, Any]:
    """The JSON header of a weight file's content."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["network"])
