"""Value networks: kinds of networks, their forward pass compiled into the search, and trained weights.

* `NETWORKS`: the kinds by name, each a subclass of `Network`; `read_weights`: the network in a weight file.
* `Trainable`: a network as a torch module, to be fitted. Nothing else here needs torch.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from models.networks import NETWORKS, Network, read_weights
    from models.trainable import Trainable

__all__ = ["NETWORKS", "Network", "Trainable", "read_weights"]
_HOMES = {"Trainable": "models.trainable"}
__getattr__, __dir__ = lazy_names(__name__, {name: _HOMES.get(name, "models.networks") for name in __all__})
