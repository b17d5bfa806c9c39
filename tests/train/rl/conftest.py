"""Fixtures of the PPO tests: torch on one thread, small networks, short training runs."""

from functools import partial

import pytest

from tests.oracles.policies import no_litter, policy_file, tiny_net
from train.evaluation.endgames import noisy_endgames
from train.evaluation.ladder import Ladder
from train.evaluation.options import EndgameOptions
from train.jobs.checkpoints import load_checkpoint, save_checkpoint
from train.jobs.run import CHECKPOINT
from train.rl import policy_run

__all__ = ["no_litter", "policy_file", "tiny_net"]


class Killed(BaseException):
    """Stands for a kill signal."""


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """More threads only slow down small networks."""


@pytest.fixture
def quick_evaluation(monkeypatch, tmp_path):
    """Evaluate with one baseline and a few solved endgames, without plots."""
    monkeypatch.setattr("train.charts.is_installed", lambda library: False)
    monkeypatch.setattr(policy_run, "Ladder", partial(Ladder, baselines=("random",)))
    endgames = noisy_endgames(EndgameOptions(4, positions=5, empties=(3, 5)), tmp_path)
    monkeypatch.setattr(policy_run, "noisy_endgames", lambda options: endgames)


def run_with_kills(run, folder, *, before=False):
    """Repeat a run until it completes; each part is killed after its first checkpoint or *before* its second. Return these."""
    checkpoints = []
    while len(checkpoints) < 10:
        saves = []

        def save(*args, saves=saves):
            saves.append(args)
            if len(saves) == 1:
                save_checkpoint(*args)
            if len(saves) == 1 + before:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(policy_run, "save_checkpoint", save)
            try:
                run()
                break
            except Killed:
                checkpoints.append(load_checkpoint(folder / CHECKPOINT))
    return checkpoints
