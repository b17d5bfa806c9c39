"""The agent ``teacher``: a residual network (`models.residual`) that plays its best move, or looks ahead with its values.

``teacher:FILE`` looks one ply ahead, ``teacher:FILE,depth=2`` two; with ``depth=0`` it plays by its policy alone. All of them see a
position under the eight symmetries of the board. ``reversi train --teacher`` makes such files;
without one the package's for the game is used, where it has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from models.boards import board_tensor
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
from models.torch_evaluator import TorchAgent, TorchEvaluator, one_thread
from reversi_env import Position, Rules
from reversi_env.extras import extra_libraries
from reversi_env.sealing import file_hash, read_once
from search.agent import Agent
from search.evaluation import file_name
from search.limits import SearchResult

with extra_libraries():
    import torch


#: The package's own networks, one for each game: ``zero-SIZExSIZE-VARIANT-HASH.safetensors``, with which both agents play.
SHIPPED = FOLDER / "residual"


class ResidualAgent(Agent):
    """A player with the network of a file, or with the package's for the game.

    ``makes`` is the command that makes such files, for what it says.
    """

    name: ClassVar[str]
    makes: ClassVar[str]

    def __init__(self, weights: str | None) -> None:
        self._weights = weights

    def check(self, rules: Rules) -> None:
        """Raise a ReversiError if the network cannot play that game."""
        self.saved(rules)

    prepare = check

    def ingredients(self, rules: Rules) -> dict[str, str]:
        """The file of the network."""
        return {file_name(self.name, self._weights) if self._weights else self.name: file_hash(self.path(rules))}

    def path(self, rules: Rules) -> Path:
        """The file that was given, or the package's for the game."""
        if self._weights is not None:
            return Path(self._weights)
        game = f"{rules.size}x{rules.size}-{rules.variant}"
        found = sorted(SHIPPED.glob(f"*-{game}-*.safetensors"))
        if len(found) != 1:
            raise WeightsError(
                f"{self.name} for {game.replace('-', ' ')}: the package has no network for it: expected {self.name}:FILE, "
                f"which `{self.makes}` makes"
            )
        return found[0]

    def saved(self, rules: Rules) -> SavedResidual:
        """The network, if it is for that game."""
        path = self.path(rules)
        found = read_once(path, read_residual)
        if (found.rules.size, found.rules.variant) != (rules.size, rules.variant):
            raise WeightsError(
                f"{self.name} {str(path)!r} is for {found.rules.size}x{found.rules.size} {found.rules.variant}: "
                f"expected one for {rules.size}x{rules.size} {rules.variant}"
            )
        return found


class TeacherAgent(ResidualAgent):
    """Plays the moves of the network in the file *weights*, *depth* plies ahead, and exactly from *exact* empty squares on.

    With *seed* equally good moves are drawn by lot.
    """

    name, makes = "teacher", "reversi train --teacher"

    def __init__(self, weights: str | None = None, *, depth: int = 1, exact: int = 10, seed: int | None = None) -> None:
        super().__init__(weights)
        self._depth, self._exact, self._seed = depth, exact, seed
        self._searchers: dict[tuple[int, str], TorchAgent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_searchers": {}}

    def choose(self, position: Position) -> int:
        """The best action."""
        if position.must_pass():
            return position.rules.pass_action
        with one_thread():
            if self._depth or position.empties <= self._exact:
                return self._searcher(position.rules).choose(position)
            return likely_move(self.saved(position.rules).net, position)

    def search(self, position: Position) -> SearchResult:
        """All that the search finds out; values in discs."""
        with one_thread():
            return self._searcher(position.rules).search(position)

    def _searcher(self, rules: Rules) -> TorchAgent:
        key = (rules.size, rules.variant)
        if key not in self._searchers:
            evaluator = _evaluator(self.saved(rules))
            self._searchers[key] = TorchAgent(evaluator, max(1, self._depth), exact=self._exact, seed=self._seed)
        return self._searchers[key]


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
