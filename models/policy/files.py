"""Trained policies in safetensors files, with their game, architecture and record in the header. Reading one runs no code."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.files import WeightsError, file_content, packaged_file, read_file
from models.policy import FOLDER, Architecture
from models.policy.net import PolicyValueNet
from reversi_env import ReversiError, Rules
from reversi_env.errors import extra_libraries, quoted

with extra_libraries():
    import torch

#: The algorithm in the names of the packaged files.
PACKAGED_NAME = "ppo"


@dataclass(frozen=True)
class SavedPolicy:
    """A network with its game; ``record``: the JSON record of its training."""

    rules: Rules
    net: PolicyValueNet
    record: dict[str, Any]

    def to_bytes(self) -> bytes:
        tensors = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in self.net.state_dict().items()}
        game = {"size": self.rules.size, "variant": self.rules.variant}
        return file_content(tensors, {**game, "architecture": self.net.architecture.as_dict(), "record": self.record})


def packaged_policy(rules: Rules) -> Path:
    return packaged_file(FOLDER, f"{PACKAGED_NAME}-", rules, "reversi train ppo")


def read_policy(path: Path | str) -> SavedPolicy:
    """Return the policy in a file, which is checked; no code of the file is run."""
    header, tensors = read_file(path)
    try:
        rules, architecture = Rules(header["size"], header["variant"]), dict(header["architecture"])
        if (kind := architecture.pop("kind", "policy")) != "policy":  # version 0.2 had Q-networks, too
            raise WeightsError(f"architecture of kind {quoted(kind)}: expected policy")
        net = PolicyValueNet(rules.size, Architecture(**architecture))
        net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    except (ReversiError, ValueError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise WeightsError(
            f"policy {str(path)!r} cannot be read ({reason}): expected one of `reversi train ppo`"
        ) from None
    return SavedPolicy(rules, net.eval(), header["record"])
