"""`Network`: the quantised weights of a network for one game; each kind of network is a subclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from models.files import WeightsError, file_content, named_by_hash
from models.kernels.deep import array_module
from reversi_env import Rules
from reversi_env.storage.atomic import write_atomically

if TYPE_CHECKING:
    import torch
    from torch import Tensor


#: Positions whose features torch computes at a time.
CHUNK = 1 << 17


class ArraySpec(NamedTuple):
    """An array of a weight file. Its integers are fractions: *scale* stands for 1.

    *project* returns an array or tensor of real numbers with values that the search can represent.
    """

    dtype: type
    shape: tuple[int, ...]
    scale: int = 1
    project: Callable[[Any], Any] | None = None

    @property
    def is_integer(self) -> bool:
        return np.dtype(self.dtype).kind != "f"

    @property
    def max_integer(self) -> int:
        """The maximum absolute value of its integers."""
        return int(np.iinfo(self.dtype).max)

    def quantise(self, parameters: np.ndarray) -> np.ndarray:
        """Return parameters (float32) as the nearest numbers of the file's type."""
        if not self.is_integer:
            return self.dequantise(parameters).astype(self.dtype)
        if not np.isfinite(parameters).all():
            raise WeightsError("parameters contain inf or NaN: expected finite values")
        return np.clip(np.rint(parameters * self.scale), -self.max_integer, self.max_integer).astype(self.dtype)

    def dequantise(self, stored: np.ndarray) -> np.ndarray:
        """Return the parameters (float32) of the numbers in a file."""
        numbers: np.ndarray = stored.astype(np.float32) / np.float32(self.scale)
        return self.project(numbers) if self.project else numbers

    def fake_quantise(self, parameters: Any) -> Any:
        """Return parameters, an array or a tensor, as they are after quantisation and dequantisation."""
        if self.project is not None:
            return self.project(parameters)
        if not self.is_integer:
            return parameters
        scaled, library = parameters * self.scale, array_module(parameters)
        library.round(scaled, out=scaled)
        library.clip(scaled, -self.max_integer, self.max_integer, out=scaled)
        scaled /= self.scale
        return scaled


class CompiledNetwork(NamedTuple):
    """A network for the search: an array of one record, and the arrays whose addresses the record contains."""

    record: np.ndarray
    memory: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Network:
    """The quantised weights of a network for one game; ``record``: the JSON record of the training.

    A kind of network is a subclass that declares

    * ``name`` and ``architecture``: its name in options and in weight files;
    * its arrays, as fields of the dataclass and in `arrays`, and in `compiled` the record for the search;
    * the forward pass in torch: `features`, which a fit computes once, and `value`. The parameters have the names and shapes of
      the arrays. torch is imported within these functions, because the search does not need it;
    * its training: `preset`, ``stage_presets`` and ``curriculum`` (`train.fitting.stages`). Kinds with compiled training steps
      for a CPU are in `train.fitting.cpu_backend.COMPILED`.
    """

    name: ClassVar[str]
    architecture: ClassVar[str]
    #: Numbers of empty squares that share a phase, by board size; by default there is one phase.
    spans: ClassVar[dict[int, int]] = {}
    #: Parameters whose first dimension is the phase; those without weight decay; and the maximum absolute values of some.
    per_phase: ClassVar[tuple[str, ...]] = ()
    no_weight_decay: ClassVar[tuple[str, ...]] = ()
    max_magnitude: ClassVar[dict[str, float]] = {}
    #: The order of a bootstrap's stages, and differences from the preset in its later stages.
    curriculum: ClassVar[Literal["joint", "opening"]] = "joint"
    stage_presets: ClassVar[dict[str, dict[str, Any]]] = {}

    rules: Rules
    record: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @classmethod
    def arrays(cls, rules: Rules) -> dict[str, ArraySpec]:
        """The arrays of a weight file for a game."""
        raise NotImplementedError

    @classmethod
    def span(cls, size: int) -> int:
        return cls.spans.get(size, size * size + 1)

    @classmethod
    def phases(cls, size: int) -> int:
        """Return the number of phases; phase *p* begins at ``p * span`` empties."""
        return (size * size - 4) // cls.span(size) + 1

    @classmethod
    def preset(cls, size: int) -> dict[str, Any]:
        """Return the default options of a fit (`train.fitting.options.FitOptions`) for a board size."""
        return {}

    def compiled(self) -> CompiledNetwork:
        raise NotImplementedError

    def search_record(self, dtype: np.dtype) -> np.ndarray:
        """Return an array of one record for the search, with the fields that all kinds have."""
        record = np.zeros(1, dtype)
        record["playable"], record["limit"] = self.rules.playable, self.rules.square_count - 0.5
        return record

    def summary(self) -> str:
        """Return a description of the architecture in one line."""
        return self.architecture

    @classmethod
    def initial(cls, size: int, seed: int) -> dict[str, Tensor]:
        """Return the initial parameters, float32."""
        import torch

        return {name: torch.zeros(array.shape) for name, array in cls.arrays(Rules(size)).items()}

    @classmethod
    def features(cls, size: int, own: Tensor, opp: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``(n, features)`` integers, and the numbers of empty squares, of int64 boards (`models.bitboards`)."""
        raise NotImplementedError

    @classmethod
    def feature_array(
        cls, size: int, own: np.ndarray, opp: np.ndarray, device: torch.device, threads: int
    ) -> np.ndarray | Tensor:
        """Return the `features` of arrays of boards, computed on the device and left there."""
        import torch

        from models.bitboards import board_tensor

        features = torch.empty(0)
        for start in range(0, len(own), CHUNK):
            rows = slice(start, start + CHUNK)
            with torch.no_grad():
                part, _ = cls.features(size, *(board_tensor(side[rows]).to(device) for side in (own, opp)))
            if not start:
                features = torch.empty((len(own), part.shape[1]), dtype=part.dtype, device=device)
            features[rows] = part
        return features

    @classmethod
    def value(cls, parameters: Mapping[str, Tensor], features: Tensor, empties: Tensor, phases: Tensor) -> Tensor:
        """Return values in discs for the side to move; *phases* may differ from those of the empties in training."""
        raise NotImplementedError

    @classmethod
    def by_empties(cls, parameters: Mapping[str, Tensor]) -> Tensor | None:
        """Return the parameters of each number of empty squares, as a view whose first dimension is that number."""
        return None

    @classmethod
    def quantised(
        cls, rules: Rules, parameters: Mapping[str, np.ndarray], record: dict[str, Any] | None = None
    ) -> Self:
        """Return the network with these parameters after quantisation."""
        arrays = {name: array.quantise(parameters[name]) for name, array in cls.arrays(rules).items()}
        return cls(rules=rules, record=record or {}, **arrays)

    def parameters(self) -> dict[str, np.ndarray]:
        return {name: array.dequantise(getattr(self, name)) for name, array in self.arrays(self.rules).items()}

    def __post_init__(self) -> None:
        for name, (dtype, shape, *_) in self.arrays(self.rules).items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != shape:
                raise WeightsError(
                    f"{name} of {array.dtype} and shape {array.shape}: expected {np.dtype(dtype)} of {shape} "
                    f"for the {self.rules.size}x{self.rules.size} board"
                )
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise WeightsError(f"{name} contains inf or NaN: expected finite values")

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays to store by name."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.arrays(self.rules)}

    @classmethod
    def restored(cls, rules: Rules, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays from those of a file."""
        return {name: tensors[name] for name in cls.arrays(rules)}

    def to_bytes(self) -> bytes:
        """Return the content of a weight file."""
        game = {"size": self.rules.size, "variant": self.rules.variant}
        return file_content(self.tensors(), {"architecture": self.architecture, **game, "record": self.record})

    def save_in(self, folder: str | Path) -> Path:
        """Write the weight file into *folder*, which is created if necessary, and return its path."""
        data = self.to_bytes()
        Path(folder).mkdir(parents=True, exist_ok=True)
        path = Path(folder) / named_by_hash(f"{self.rules.size}x{self.rules.size}-{self.rules.variant}", data)
        write_atomically(path, data)
        return path
