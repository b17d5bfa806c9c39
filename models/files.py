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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from models.compiled import Compiled, CompiledDeepNet, CompiledDenseNet, CompiledPatternNet
from models.core.deep_value import EMPTIES, HEAD, WIDTH, phases_of
from models.core.dense_value import HIDDEN, INPUTS
from models.core.pattern_value import COUNTS
from models.core.patterns import patterns_of
from reversi_env import ReversiError, Rules
from reversi_env.errors import shown
from reversi_env.writing import write_atomically

FORMAT = 1
DIGITS = 12
_HASH_IN_NAME = re.compile(rf"-([0-9a-f]{{{DIGITS}}})\.safetensors$")


class WeightsError(ReversiError):
    """A weight file that is not there, not whole, or not for the game that is played."""


@dataclass(frozen=True)
class Weights:
    """The weights of a network for one game; ``record``: what is known about the training, as JSON has it."""

    architecture: ClassVar[str]
    rules: Rules
    record: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name, as they are stored."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.shapes(self.rules)}

    @staticmethod
    def shapes(rules: Rules) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array for a game."""
        raise NotImplementedError

    @classmethod
    def restored(cls, rules: Rules, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays from those stored."""
        return {name: tensors[name] for name in cls.shapes(rules)}

    def compiled(self) -> Compiled:
        """The network as the search wants it."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for name, (dtype, shape) in self.shapes(self.rules).items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != shape:
                raise WeightsError(
                    f"{name} of {array.dtype} and shape {array.shape}: expected {np.dtype(dtype)} of {shape} "
                    f"for the {self.rules.size}x{self.rules.size} board"
                )
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise WeightsError(f"{name} holds infinities or not-a-number: expected finite weights")

    def to_bytes(self) -> bytes:
        """The file's content."""
        tensors = self.tensors()
        header = {
            "format": FORMAT,
            "architecture": self.architecture,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "tensors": tensors_hash(tensors),
            "record": self.record,
        }
        return save(tensors, metadata={"network": json.dumps(header, sort_keys=True)})

    def save_in(self, folder: Path) -> Path:
        """Write the file into *folder* under its own name; where it is."""
        data = self.to_bytes()
        digits = hashlib.sha256(data).hexdigest()[:DIGITS]
        path = folder / f"{self.rules.size}x{self.rules.size}-{self.rules.variant}-{digits}.safetensors"
        write_atomically(path, data)
        return path


@dataclass(frozen=True)
class PatternWeights(Weights):
    """A linear pattern network as whole numbers (`models.core.pattern_value.UNITS` to a disc, int16).

    ``weights``: (phases, tied pattern weights and counts), ``constants``: one for each number of empty squares.
    """

    architecture: ClassVar[str] = "linear patterns"
    weights: np.ndarray
    constants: np.ndarray

    @staticmethod
    def shapes(rules: Rules) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array for a game."""
        patterns = patterns_of(rules.size)
        return {
            "weights": (np.int16, (patterns.phases, patterns.weights + 2 * COUNTS)),
            "constants": (np.int16, (rules.square_count + 1,)),
        }

    def expanded(self) -> np.ndarray:
        """The weights as the search wants them: one for every state of every pattern, then the counts."""
        return _untied(self.weights, self.rules.size)

    def compiled(self) -> CompiledPatternNet:
        """The network as the search wants it."""
        return CompiledPatternNet(self.rules, self.expanded(), self.constants)


@dataclass(frozen=True)
class DeepWeights(Weights):
    """A `models.deep_net.DeepPatternNet`: rows of whole numbers (`models.core.deep_value.ONE` to 1, int8) and heads (float32).

    ``rows``: (phases, tied pattern rows, counts and numbers of empty squares, width), ``heads``: (phases, numbers).
    A training that does not reach the first moves leaves their phases as the last that it reached: a file has that one once.
    """

    architecture: ClassVar[str] = "deep patterns"
    rows: np.ndarray
    heads: np.ndarray

    @staticmethod
    def shapes(rules: Rules) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array for a game."""
        phases, patterns = phases_of(rules.size), patterns_of(rules.size)
        row = patterns.weights + 2 * COUNTS + EMPTIES
        return {"rows": (np.int8, (phases, row, WIDTH)), "heads": (np.float32, (phases, HEAD))}

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name without the phases that repeat the one before, up to the last."""
        phases = len(self.rows)
        while phases > 1 and all((array[phases - 1] == array[phases - 2]).all() for array in (self.rows, self.heads)):
            phases -= 1
        return {name: array[:phases] for name, array in super().tensors().items()}

    @classmethod
    def restored(cls, rules: Rules, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays from those stored: the last phase is that of the first moves too."""
        arrays, phases = super().restored(rules, tensors), phases_of(rules.size)
        stored = {array.shape[0] if array.ndim else 0 for array in arrays.values()}
        if len(stored) > 1 or not 0 < min(stored) < phases:
            return arrays  # all are there, or they are not as they should be
        each = np.minimum(np.arange(phases), min(stored) - 1)
        return {name: array[each] for name, array in arrays.items()}

    def expanded(self) -> np.ndarray:
        """The rows as the search wants them: one for every state of every pattern, then the others."""
        return _untied(self.rows, self.rules.size)

    def compiled(self) -> CompiledDeepNet:
        """The network as the search wants it."""
        return CompiledDeepNet(self.rules, self.expanded(), self.heads)


@dataclass(frozen=True)
class DenseWeights(Weights):
    """A `models.dense_net.DenseNet` in single precision: the names are those of the module's parameters."""

    architecture: ClassVar[str] = "dense"
    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray

    @staticmethod
    def shapes(rules: Rules) -> dict[str, tuple[type, tuple[int, ...]]]:
        """Type and shape of every array for a game."""
        sizes = {"first": (INPUTS, HIDDEN), "first_bias": (HIDDEN,), "second": (HIDDEN,), "second_bias": (1,)}
        return {name: (np.float32, shape) for name, shape in sizes.items()}

    def compiled(self) -> CompiledDenseNet:
        """The network as the search wants it."""
        return CompiledDenseNet(self.rules, self.first, self.first_bias, self.second, self.second_bias)


def _untied(tied: np.ndarray, size: int) -> np.ndarray:
    """Rows of every phase, those of patterns first, with one for every state of a pattern where states shared one."""
    patterns = patterns_of(size)
    return np.take(tied, np.r_[patterns.tied, patterns.weights : tied.shape[1]], axis=1)


_ARCHITECTURES: dict[str, type[Weights]] = {
    kind.architecture: kind for kind in (PatternWeights, DeepWeights, DenseWeights)
}


def read_weights(path: Path) -> Any:
    """The network in a file, `PatternWeights`, `DeepWeights` or `DenseWeights`, checked against the hashes that there are."""
    header, tensors = read_file(path)
    kind = _ARCHITECTURES.get(header["architecture"])
    if kind is None:
        raise WeightsError(
            f"weight file {str(path)!r} of architecture {shown(header['architecture'])}: "
            f"expected one of {', '.join(_ARCHITECTURES)}"
        )
    try:
        rules = Rules(header["size"], header["variant"])
        return kind(rules=rules, record=header["record"], **kind.restored(rules, tensors))
    except KeyError as error:
        raise WeightsError(
            f"weight file {str(path)!r} has no tensor {error}: expected those of {kind.__name__}"
        ) from None
    except ReversiError as error:
        raise WeightsError(f"weight file {str(path)!r}: {error}") from None


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the tensors of a weight file, whole and of this format."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise WeightsError(f"weight file {str(path)!r} cannot be read: {error.strerror}") from None
    named = check_name(Path(path), data, "weight file")
    try:
        tensors, header = load(data), read_header(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
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
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
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
