"""`TeacherRun`: a teacher's whole training in one folder (`SelfPlayRun`), judged by how far from the truth its values are."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from models.boards import board_tensor
from models.tree_search import TreeSearch
from reversi_env.extras import extra_libraries
from train.judging.exam import packaged_endgames
from train.labels.labellers import exact_scores
from train.teacher.figures import errors_figure
from train.teacher.games import play, search_of
from train.teacher.options import TeacherOptions
from train.teacher.playing import Positions
from train.teacher.self_play import SelfPlayRun

with extra_libraries():
    import torch

PLOT = "errors.svg"


class TeacherRun(SelfPlayRun[TeacherOptions]):
    """One run in one folder."""

    kind, policy_weight = "teacher", 0.05

    def _games(self, number: int) -> Positions:
        solve = partial(exact_scores, rules=self.rules, device=self.device.type, threads=self.threads)
        return play(self._search if number else None, solve, self.options, self._seed(number, 0), self.device)

    @cached_property
    def _search(self) -> TreeSearch:
        return search_of(self.learner.answers, self.options, self.device)

    def _exam(self, where: dict[str, int]) -> dict[str, Any]:
        """Mean error and bias in the package's solved positions, by empty squares."""
        if self.rules.size == 4:  # solved from the start: there are no positions
            return {}
        truth = packaged_endgames(self.rules)
        boards = (board_tensor(side).to(self.device) for side in (truth.own, truth.opp))
        with torch.no_grad():
            off = self.learner.values(*boards).cpu().numpy() - truth.scores
        empties = np.unique(truth.empties).tolist()
        errors = {f"error_{e}": round(float(np.abs(off[truth.empties == e]).mean()), 2) for e in empties}
        biases = {f"bias_{e}": round(float(off[truth.empties == e].mean()), 2) for e in empties}
        return errors | biases

    def _draw(self) -> None:
        """Error and bias over the generations, where there is matplotlib."""
        if self.rules.size != 4:  # no figures to draw
            game = f"{self.rules.size}x{self.rules.size} {self.rules.variant}"
            errors_figure(self.figures, game).save(self.folder / PLOT, optional=True)
