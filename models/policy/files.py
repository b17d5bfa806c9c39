"""Trained policies in safetensors files, with their game, architecture and record in the header. Reading one runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from models.files import WeightsError, check_name
from models.policy import FOLDER, Architecture
from models.policy.net import PolicyValueNet
from reversi_env import ReversiError, Rules
from reversi_env.errors import extra_libraries, quoted
from reversi_env.storage.checksummed import tensors_hash

with extra_libraries():
    from safetensors.torch import load, save
    from torch import Tensor

FORMAT = 1
#: The key of safetensors' metadata.
METADATA = "policy"
#: The algorithm in the names of the packaged files.
PACKAGED_NAME = "ppo"


@dataclass(frozen=True)
class SavedPolicy:
    """A network with its game; ``record``: the JSON record of its training."""

    rules: Rules
    net: PolicyValueNet
    record: dict[str, Any]

    def description(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "architecture": self.net.architecture.as_dict(),
            "record": self.record,
        }

    def to_bytes(self) -> bytes:
        """Return the content of a safetensors file."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.net.state_dict().items()}
        description = {**self.description(), "tensors": _hash_of(tensors)}
        return save(tensors, metadata={METADATA: json.dumps(description)})


def packaged_policy(rules: Rules) -> Path:
    paths = sorted(FOLDER.glob(f"{PACKAGED_NAME}-{rules.size}x{rules.size}-{rules.variant}-*.safetensors"))
    game = f"{rules.size}x{rules.size} {rules.variant}"
    if not paths:
        raise WeightsError(
            f"rl for {game}: the package has no policy for that game; "
            f"expected one that you train with `reversi train ppo` and give as rl:FILE"
        )
    if len(paths) > 1:
        raise WeightsError(f"{len(paths)} policies for {game} in {str(FOLDER)!r}: expected one")
    return paths[0]


def read_policy(path: Path | str) -> SavedPolicy:
    """Return the policy in a file, which is checked; no code of the file is run."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(f"policy {str(path)!r} cannot be read: {error.strerror}") from None
    check_name(path, data, "policy")
    try:
        return _assemble(*_from_safetensors(data))
    except ReversiError as error:
        raise WeightsError(f"policy {str(path)!r}: {error}") from None
    except (SafetensorError, ValueError, LookupError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise WeightsError(
            f"policy {str(path)!r} cannot be read ({reason}): expected a safetensors file that `reversi train ppo` wrote"
        ) from None


def _from_safetensors(data: bytes) -> tuple[Any, dict[str, Tensor]]:
    tensors = load(data)
    length = int.from_bytes(data[:8], "little")
    description = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][METADATA])
    if isinstance(description, dict) and description.get("tensors", _hash_of(tensors)) != _hash_of(tensors):
        raise WeightsError("damaged, its weights are not those that its header says: expected it as it was written")
    return description, tensors


def _hash_of(tensors: Mapping[str, Tensor]) -> str:
    return tensors_hash({name: tensor.numpy() for name, tensor in tensors.items()})


def _assemble(description: Any, tensors: dict[str, Tensor]) -> SavedPolicy:
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        file_format = description.get("format") if isinstance(description, dict) else description
        raise WeightsError(f"format {quoted(file_format)}: expected {FORMAT}")
    rules = Rules(description["size"], description["variant"])
    architecture = dict(description["architecture"])
    if (kind := architecture.pop("kind", "policy")) != "policy":  # version 0.2 had Q-networks, too
        raise WeightsError(f"architecture of kind {quoted(kind)}: expected policy")
    net = PolicyValueNet(rules.size, Architecture(**architecture))
    net.load_state_dict(tensors)
    record = description["record"]
    if not isinstance(record, dict):
        raise WeightsError(f"a record of {type(record).__name__}: expected an object")
    return SavedPolicy(rules, net.eval(), record)
