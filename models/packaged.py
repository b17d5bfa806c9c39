"""Baselines: the packaged networks of the agents ``zero`` and ``rl`` as fixed functions from observations to logits and values.

>>> import numpy as np
>>> model = baseline("rl-6x6-normal")
>>> boards, masks = np.zeros((5, 2, 6, 6), np.int8), np.ones((5, 37), np.int8)
>>> logits, values = model(boards, masks)
>>> logits.shape, values.shape
((5, 37), (5,))
"""

from copy import deepcopy
from itertools import product
from typing import Any, get_args

import numpy as np

from models.bitboards import boards_of_planes
from models.file_agents import FileAgent
from models.files import WeightsError
from models.policy import PolicyAgent
from models.residual.net import ResidualNet, mask_illegal
from models.zero import ZeroAgent
from reversi_env import ReversiError, Rules
from reversi_env.errors import extra_libraries, quoted
from reversi_env.rules import SIZES, Variant

with extra_libraries():
    import torch
    from torch import Tensor, nn

#: The agents whose packaged networks are baselines.
AGENTS: dict[str, type[FileAgent]] = {"zero": ZeroAgent, "rl": PolicyAgent}


class Baseline(nn.Module):
    """A network as a function of observations and action masks; ``name`` ends with its version, a hash of its weights.

    Call it with numpy arrays or torch tensors, which are moved to the device of the module: ``(…, 2, size, size)`` planes as the
    environments return them, own discs first, and masks ``(…, size² + 1)``. It returns arrays of the same library: logits
    ``(…, size² + 1)`` in float32, -1e9 for illegal actions, and values ``(…)`` from -1 to 1 for the side to move. The value of
    ``zero`` is the expected score over the number of squares, that of ``rl`` an estimate of the reward it was trained for.
    """

    def __init__(self, name: str, rules: Rules, net: ResidualNet) -> None:
        super().__init__()
        self.name, self.rules, self.net = name, rules, net.eval().requires_grad_(False)

    def forward(self, observations: Any, action_mask: Any) -> tuple[Any, Any]:
        size, actions, device = self.rules.size, self.rules.pass_action + 1, self.net.entry.weight.device
        discs, mask = (
            part.to(device) if isinstance(part, Tensor) else torch.from_numpy(np.array(part)).to(device)
            for part in (observations, action_mask)
        )
        if discs.shape[-3:] != (2, size, size) or mask.shape != (*discs.shape[:-3], actions):
            raise ReversiError(
                f"observations of shape {tuple(discs.shape)} and masks of shape {tuple(mask.shape)}: expected "
                f"(…, 2, {size}, {size}) and (…, {actions})"
            )
        logits, values = self.net.of_actions(*boards_of_planes(discs.reshape(-1, 2, size, size)).unbind(1))
        logits = mask_illegal(logits, mask.reshape(-1, actions)).view(mask.shape)
        values = values.clamp(-1, 1).view(mask.shape[:-1])
        return (logits, values) if isinstance(observations, Tensor) else (logits.cpu().numpy(), values.cpu().numpy())


def baselines() -> tuple[str, ...]:
    """Return the names of all baselines with their versions: ``AGENT-SIZExSIZE-VARIANT-VERSION``."""
    names = []
    for agent, size, variant in product(AGENTS, SIZES, get_args(Variant)):
        try:
            version = AGENTS[agent](None).path(Rules(size, variant)).stem.rpartition("-")[2]
        except WeightsError:  # no network for that game
            continue
        names.append(f"{agent}-{size}x{size}-{variant}-{version}")
    return tuple(names)


def baseline(name: str) -> Baseline:
    """Return the baseline of that name on the CPU. A name without a version means that of this release."""
    full = next((each for each in baselines() if name in (each, each.rpartition("-")[0])), None)
    if full is None:
        raise ReversiError(
            f"baseline {quoted(name)}: expected one of {', '.join(baselines())}, or one of them without its version"
        )
    agent, board, variant, _ = full.split("-")
    rules = Rules(int(board[0]), variant)  # type: ignore[arg-type]
    return Baseline(full, rules, deepcopy(AGENTS[agent](None).load(rules).net))
