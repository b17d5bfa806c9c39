"""`Measures`: how good a network is while it learns, by its values in solved positions and by its policy against other players."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from models.residual import ResidualNet, ValueFromBoards
from models.torch_evaluator import TorchEvaluator
from reversi_env.extras import extra_libraries
from train.alphazero.learner import Learner
from train.alphazero.options import SelfPlayOptions
from train.alphazero.players import ZeroPlayer
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import ExactSet
from train.judging.exam import packaged_papers
from train.progress import Progress
from train.rl.ladder import Ladder

with extra_libraries():
    import torch

#: Solved positions in which moves are judged, for each number of empties.
REGRET_POSITIONS = 100


class Measures:
    """What is measured as the options ask; *cache*: where solved positions are kept, by default the user's."""

    def __init__(
        self,
        options: SelfPlayOptions,
        device: torch.device,
        cache: Path | None,
        threads: int | None,
        progress: Progress,
    ) -> None:
        self.options, self.rules, self.device = options, options.rules, device
        self.cache, self.threads, self.progress = cache, threads, progress

    def of(self, learner: Learner) -> dict[str, Any]:
        """All figures of a learner's network; those against players are of its policy alone."""
        found: dict[str, Any] = self.errors(learner.mean)
        if self.options.ladder:
            self.progress("on the ladder", 0, 1)
            found |= self.standing(ZeroPlayer(learner.logits_and_values, self.rules, self.device))
        return found

    def errors(self, net: ResidualNet) -> dict[str, float]:
        """Mean error and bias in discs in the package's solved positions, by empty squares; it has none of 4x4."""
        if self.rules.size == 4:
            return {}
        evaluator = TorchEvaluator(ValueFromBoards(net), self.rules, inputs="boards", device=self.device)
        found = {int(paper.empties[0]): paper.errors(evaluator) for paper in packaged_papers(self.rules)}
        means = {f"error_{empties}": round(errors.mean, 2) for empties, errors in found.items()}
        return means | {f"bias_{empties}": round(errors.bias, 2) for empties, errors in found.items()}

    def standing(self, player: ZeroPlayer) -> dict[str, Any]:
        """Points against each rung, Elo, and what a player gives away in solved endgames, in discs a move."""
        standing, judged = self._ladder.measure(player), self._truth.batch_regret(player).overall
        points = {name: round(results.score, 4) for name, results in standing.scores.items()}
        ratings = {name: value for name, value in standing.as_dict().items() if name != "rungs"}
        figures = {name: None if value is None else round(value, 1) for name, value in ratings.items()}
        return {**figures, "regret": round(judged.regret, 3), "optimal": round(judged.optimal, 4), "points": points}

    @cached_property
    def _ladder(self) -> Ladder:
        return Ladder(self.rules, self.options.ladder, self.options.seed)

    @cached_property
    def _truth(self) -> ExactSet:
        positions = EndgameOptions(self.options.size, self.options.variant, REGRET_POSITIONS)
        return noisy_endgames(positions, self.cache, threads=self.threads, progress=self.progress)
