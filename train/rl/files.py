"""Trained policies in files: safetensors, or the zip that stable-baselines3 saves with a description of ours beside it.

Neither kind can run code when it is read. ``BaseAlgorithm.load`` of stable-baselines3 unpickles what it finds under ``data``; here
only the tensors are read (`torch.load` with ``weights_only``) and put into a network that our own description names.
"""

from __future__ import annotations

import json
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from models.files import WeightsError, check_name
from reversi_env import ReversiError, Rules
from reversi_env.checksummed import tensors_hash
from reversi_env.errors import quoted
from reversi_env.extras import extra_libraries
from train.rl import FOLDER
from train.rl.network import PolicyValueNet
from train.rl.options import Architecture

with extra_libraries():
    import torch
    from safetensors.torch import load, save
    from torch import Tensor

FORMAT = 1
#: Our member of a zip file, and the key of safetensors' metadata.
DESCRIPTION, METADATA = "reversi.json", "policy"
#: The member with the tensors, and the prefix of the names of the network's own.
TENSORS, PREFIX = "policy.pth", "net."
#: The algorithm in the names of the packaged files.
SHIPPED = "ppo"


@dataclass(frozen=True)
class SavedPolicy:
    """A network with its game; ``record``: what is known about the training, as JSON has it."""

    rules: Rules
    net: PolicyValueNet
    record: dict[str, Any]

    def description(self) -> dict[str, Any]:
        """What a file says about itself."""
        return {
            "format": FORMAT,
            "size": self.rules.size,
            "variant": self.rules.variant,
            "architecture": self.net.architecture.as_dict(),
            "record": self.record,
        }

    def to_bytes(self) -> bytes:
        """The content of a safetensors file."""
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.net.state_dict().items()}
        description = {**self.description(), "tensors": _hash_of(tensors)}
        # in its order, which figures have in a log too
        return save(tensors, metadata={METADATA: json.dumps(description)})


def with_description(archive: bytes, description: Mapping[str, Any]) -> bytes:
    """The zip that stable-baselines3 saved, with our description in it."""
    content = BytesIO(archive)
    with zipfile.ZipFile(content, "a") as members:
        members.writestr(DESCRIPTION, json.dumps(description, sort_keys=True))
    return content.getvalue()


def shipped(rules: Rules) -> Path:
    """Return the packaged policy of a game."""
    found = sorted(FOLDER.glob(f"{SHIPPED}-{rules.size}x{rules.size}-{rules.variant}-*.safetensors"))
    game = f"{rules.size}x{rules.size} {rules.variant}"
    if not found:
        raise WeightsError(
            f"rl for {game}: the package has no policy for that game; "
            f"expected one that you train with `reversi rl` and give as rl:FILE"
        )
    if len(found) > 1:
        raise WeightsError(f"{len(found)} policies for {game} in {str(FOLDER)!r}: expected one")
    return found[0]


def read_policy(path: Path | str) -> SavedPolicy:
    """The policy in a file, whole and of this format; never runs code of the file's."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(f"policy {str(path)!r} cannot be read: {error.strerror}") from None
    check_name(path, data, "policy")
    try:
        description, tensors = _from_zip(data) if zipfile.is_zipfile(BytesIO(data)) else _from_safetensors(data)
        return _assembled(description, tensors)
    except ReversiError as error:
        raise WeightsError(f"policy {str(path)!r}: {error}") from None
    except (
        *(SafetensorError, zipfile.BadZipFile, pickle.UnpicklingError),
        *(ValueError, LookupError, TypeError, RuntimeError, EOFError, NotImplementedError),
    ) as error:
        reason = " ".join(str(error).split())[:160]
        raise WeightsError(
            f"policy {str(path)!r} cannot be read ({reason}): expected a zip or safetensors file that `reversi rl` wrote"
        ) from None


def _from_zip(data: bytes) -> tuple[Any, dict[str, Tensor]]:
    with zipfile.ZipFile(BytesIO(data)) as members:
        names = members.namelist()
        for name in (DESCRIPTION, TENSORS):
            if name not in names:
                raise WeightsError(f"no {name} in it: expected a zip file that `reversi rl` wrote")
        _check_stored(members)
        description, content = json.loads(members.read(DESCRIPTION)), BytesIO(members.read(TENSORS))
        if zipfile.is_zipfile(content):  # as torch writes them
            _check_stored(zipfile.ZipFile(content))
        content.seek(0)
        with warnings.catch_warnings(action="ignore"):  # about a file that is none of ours, and then it is refused
            tensors = torch.load(content, map_location="cpu", weights_only=True)
    return description, {name.removeprefix(PREFIX): value for name, value in tensors.items() if name.startswith(PREFIX)}


def _check_stored(members: zipfile.ZipFile) -> None:
    """Refuse what unpacks to more than it is: neither library compresses."""
    for member in members.infolist():
        if member.compress_type != zipfile.ZIP_STORED:
            raise WeightsError(
                f"its {quoted(member.filename)} is compressed: expected a zip file that `reversi rl` wrote"
            )


def _from_safetensors(data: bytes) -> tuple[Any, dict[str, Tensor]]:
    tensors = load(data)
    length = int.from_bytes(data[:8], "little")
    description = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][METADATA])
    if isinstance(description, dict) and description.get("tensors", _hash_of(tensors)) != _hash_of(tensors):
        raise WeightsError("damaged, its weights are not those that its header says: expected it as it was written")
    return description, tensors


def _hash_of(tensors: Mapping[str, Tensor]) -> str:
    return tensors_hash({name: tensor.numpy() for name, tensor in tensors.items()})


def _assembled(description: Any, tensors: dict[str, Tensor]) -> SavedPolicy:
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        found = description.get("format") if isinstance(description, dict) else description
        raise WeightsError(f"format {quoted(found)}: expected {FORMAT}")
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
