"""The kinds of networks by name, and their weight files.

A kind of network is one class in one file of this folder (`models.patterns.network.Network`), and its forward pass in the search a
kernel in `models.kernels`. Only training needs torch (`models.patterns.trainable`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from models.files import WeightsError, read_file
from models.patterns.deep import DeepPatternNet
from models.patterns.linear import PatternNet
from models.patterns.network import Network
from reversi_env import ReversiError, Rules
from reversi_env.errors import quoted

#: One weight per pattern; one vector per pattern and a small head.
NETWORKS: dict[str, type[Network]] = {kind.name: kind for kind in (PatternNet, DeepPatternNet)}


def checked_network(name: str) -> str:
    if name not in NETWORKS:
        raise WeightsError(f"network {quoted(name)}: expected one of {', '.join(NETWORKS)}")
    return name


def read_weights(path: Path) -> Network:
    """Return the network in a weight file, after a check of its hashes."""
    header, tensors = read_file(path)
    kinds = {kind.architecture: kind for kind in NETWORKS.values()}
    kind = kinds.get(str(header["architecture"]))
    if kind is None:
        raise WeightsError(
            f"weight file {str(path)!r} of architecture {quoted(header['architecture'])}: "
            f"expected one of {', '.join(kinds)}"
        )
    try:
        rules = Rules(header["size"], header["variant"])
        return kind(rules=rules, record=header["record"], **kind.restored(rules, tensors))
    except KeyError as error:
        raise WeightsError(
            f"weight file {str(path)!r} has no tensor {error}: expected those of {kind.architecture}"
        ) from None
    except ReversiError as error:
        raise WeightsError(f"weight file {str(path)!r}: {error}") from None


def annotate(path: Path, folder: Path | None = None, **facts: Any) -> Path:
    """Write the weights of a file again, with *facts* added to its record, and return the new path.

    The new file is written to *folder*, by default that of the old one; its hash and therefore its name differ. Facts are results
    that were measured after the training, such as ``exam=`` and ``matches=`` (a mapping from opponents to results).
    """
    weights = read_weights(path)
    return replace(weights, record=weights.record | facts).save_in(folder or path.parent)
