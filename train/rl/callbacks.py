"""`RegretCallback`: a learning curve against the truth for any stable-baselines3 training.

>>> from train.evaluation.endgames import noisy_endgames

>>> from train.evaluation.options import EndgameOptions
>>> truth = noisy_endgames(EndgameOptions(size=6))  # doctest: +SKIP
>>> model.learn(1_000_000, callback=RegretCallback(truth, folder, every=50_000))  # doctest: +SKIP
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env.errors import TrainError, extra_libraries
from train.evaluation.exact_set import ExactSet, Judgement
from train.evaluation.regret_curve import RegretCurve

with extra_libraries():
    from stable_baselines3.common.callbacks import BaseCallback

CURVE, PLOT = "regret.csv", "regret.svg"
#: Positions that go through the policy at once.
BATCH = 1024

#: Observations (N, 2, size, size) and legal actions (N, squares + 1) to actions.
Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]


class RegretCallback(BaseCallback):
    """Judges the policy's best moves every so many steps: ``regret.csv`` and, at the end, ``regret.svg`` in *folder*.

    The figures are logged too (``regret/discs``, ``regret/optimal``, ``regret/spoilt``). A curve that is there is gone on with
    from the model's step: a resumed training has the same curve as one that was never interrupted. *policy* chooses the moves in
    place of the model's ``predict``: a model whose ``predict`` takes no action masks may answer an illegal move, which is an error.
    """

    def __init__(
        self, positions: ExactSet, folder: Path, every: int = 50_000, *, policy: Policy | None = None, verbose: int = 0
    ) -> None:
        super().__init__(verbose)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise TrainError(f"every={every!r}: expected a whole number of 1 or more")
        self.positions, self.folder, self.every, self._policy = positions, folder, every, policy
        self.curve: RegretCurve  # from the beginning of the training on

    def _on_training_start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.curve = RegretCurve(self.folder / CURVE, self.positions, resumed_at=self.num_timesteps + 1)
        if not self.num_timesteps or not self.curve.points:
            self.measure()

    def _on_step(self) -> bool:
        if self.num_timesteps - max(self.curve.points) >= self.every:
            self.measure()
        return True

    def _on_training_end(self) -> None:
        self.measure()  # once more if this step is measured already: there was an update since
        self.curve.figure().save(self.folder / PLOT, optional=True)

    def measure(self) -> Judgement:
        """Judge the policy as it is now, and note it."""
        policy, observations, masks = self._policy or self._predicted, self.positions.observations, self.positions.masks
        rows = (slice(start, start + BATCH) for start in range(0, len(masks), BATCH))
        parts = [np.asarray(policy(observations[part], masks[part])).reshape(-1) for part in rows]
        found = self.positions.judge(np.concatenate(parts))
        self.curve.add(self.num_timesteps, found)
        figures = found.overall
        for name, value in (("discs", figures.regret), ("optimal", figures.optimal), ("spoilt", figures.spoilt)):
            self.logger.record(f"regret/{name}", value)
        return found

    def _predicted(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        predict: Any = self.model.predict
        options: dict[str, Any] = {"deterministic": True}
        if "action_masks" in inspect.signature(predict).parameters:
            options["action_masks"] = masks
        return predict(observations, **options)[0]
