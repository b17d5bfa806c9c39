"""`RegretCallback`: regret in solved endgames during a training with stable-baselines3.

>>> from train.evaluation.endgames import noisy_endgames
>>> from train.evaluation.options import EndgameOptions
>>> endgames = noisy_endgames(EndgameOptions(size=6))  # doctest: +SKIP
>>> model.learn(1_000_000, callback=RegretCallback(endgames, folder, every=50_000))  # doctest: +SKIP
"""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from reversi_env.errors import check_integer, extra_libraries
from train.evaluation.exact_set import ExactSet, Judgement
from train.evaluation.regret_curve import CURVE, PLOT, RegretCurve

with extra_libraries():
    from stable_baselines3.common.callbacks import BaseCallback

#: Positions in one call of ``predict``.
BATCH = 1024


class RegretCallback(BaseCallback):
    """Measures the regret of the policy's best moves every *every* steps.

    It writes ``regret.csv``, and at the end ``regret.svg``, in *folder*, and logs ``regret/discs``, ``regret/optimal`` and
    ``regret/spoilt``. An existing curve is continued from the model's step. The model's observations are ``planes`` (without extra
    ones), ``dict`` or ``flat``. A model whose ``predict`` takes no action masks may choose an illegal move, which raises a
    `TrainError`.
    """

    def __init__(self, positions: ExactSet, folder: Path, every: int = 50_000, *, verbose: int = 0) -> None:
        super().__init__(verbose)
        check_integer("every", every, 1)
        self.positions, self.folder, self.every = positions, folder, every
        self.curve: RegretCurve  # set when the training begins

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
        self.measure()  # even if this step was measured, since an update followed
        self.curve.figure().save(self.folder / PLOT, optional=True)

    def measure(self) -> Judgement:
        """Judge the present policy, add the result to the curve and return it."""
        observations, masks = self.positions.observations, self.positions.masks
        rows = (slice(start, start + BATCH) for start in range(0, len(masks), BATCH))
        parts = [self._predict(observations[part], masks[part]).reshape(-1) for part in rows]
        judgement = self.positions.judge(np.concatenate(parts))
        self.curve.add(self.num_timesteps, judgement)
        overall = judgement.overall
        for name, value in (("discs", overall.regret), ("optimal", overall.optimal), ("spoilt", overall.spoilt)):
            self.logger.record(f"regret/{name}", value)
        return judgement

    def _predict(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        predict: Any = self.model.predict
        options: dict[str, Any] = {"deterministic": True}
        if "action_masks" in inspect.signature(predict).parameters:
            options["action_masks"] = masks
        space = self.model.observation_space
        if isinstance(space, spaces.Dict):
            return np.asarray(predict({"observation": observations, "action_mask": masks}, **options)[0])
        if len(space.shape or ()) == 1:  # flat
            own, opp = observations[:, 0].astype(np.int8), observations[:, 1].astype(np.int8)
            observations = (own - opp).reshape(len(own), -1)
        return np.asarray(predict(observations, **options)[0])
