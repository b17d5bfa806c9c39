"""The agent ``teacher``: a residual network (`models.residual`) that plays its best move, or looks ahead with its values.

``teacher:FILE`` looks one ply ahead, ``teacher:FILE,depth=2`` two; with ``depth=0`` it plays by its policy alone. All of them see a
position under the eight symmetries of the board. ``reversi train --teacher`` makes such files;
without one the package's for the game is used, where it has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from models.boards import board_tensor
from models.file_agents import FileAgent, LookingAhead
from models.files import WeightsError
from models.network import FOLDER
from models.residual import (
    ResidualNet,
    SavedResidual,
    ValueOfBoards,
    likely_actions,
    read_residual,
    symmetric_answers,
)
from models.torch_evaluator import TorchEvaluator, one_thread
from reversi_env import Position, Rules
from reversi_env.extras import extra_libraries

with extra_libraries():
    import torch


#: The package's own networks, one for each game: ``zero-SIZExSIZE-VARIANT-HASH.safetensors``, with which both agents play.
SHIPPED = FOLDER / "residual"


class ResidualAgent(FileAgent[SavedResidual]):
    """A player with the network of a file, or with the package's for the game.

    ``makes`` is the command that makes such files, for what it says.
    """

    makes: ClassVar[str]
    read = staticmethod(read_residual)

    def path(self, rules: Rules) -> Path:
        """The file that was given, or the package's for the game."""
        if self._weights is not None:
            return Path(self._weights)
        game = f"{rules.size}x{rules.size}-{rules.variant}"
        found = sorted(SHIPPED.glob(f"*-{game}-*.safetensors"))
        if len(found) != 1:
            raise WeightsError(
                f"{self.kind} for {game.replace('-', ' ')}: the package has no network for it: expected {self.kind}:FILE, "
                f"which `{self.makes}` makes"
            )
        return found[0]


class TeacherAgent(LookingAhead[SavedResidual], ResidualAgent):
    """Plays the moves of the network in the file *weights*, *depth* plies ahead, and exactly from *exact* empty squares on.

    With *seed* equally good moves are drawn by lot.
    """

    kind, makes = "teacher", "reversi train --teacher"

    def __init__(self, weights: str | None = None, *, depth: int = 1, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights, depth=depth, exact=exact, seed=seed)

    def choose(self, position: Position) -> int:
        """The best action."""
        if position.must_pass():
            return position.rules.pass_action
        if self._depth or position.empties <= self._exact:
            return super().choose(position)
        with one_thread():
            return likely_move(self.saved(position.rules).net, position)

    def evaluator(self, rules: Rules) -> TorchEvaluator:
        """The network's values, in the mean over the eight images of a position."""
        return _evaluator(self.saved(rules))


def teacher_evaluator(path: Path) -> TorchEvaluator:
    """The values of the network in a file, each the mean over the eight images of a position; on a GPU if there is one."""
    return _evaluator(read_residual(path), "cuda" if torch.cuda.is_available() else "cpu")


def _evaluator(saved: SavedResidual, device: str = "cpu") -> TorchEvaluator:
    value = ValueOfBoards(saved.net, symmetric=True)
    return TorchEvaluator(value, saved.rules, inputs="boards", device=device, name="teacher")


def likely_move(net: ResidualNet, position: Position) -> int:
    """The legal move with the highest number, in the mean over the eight images of the position."""
    own, opp = (board_tensor(np.array([side], np.uint64)) for side in (position.own, position.opp))
    with torch.inference_mode():
        return int(likely_actions(symmetric_answers(net, position.rules), own, opp, position.rules)[0])
