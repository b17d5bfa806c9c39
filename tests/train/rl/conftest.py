"""Torch on one thread, in every test; small networks and trainings."""

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
    """As sudden as a signal."""


@pytest.fixture(autouse=True)
def _one_thread(one_torch_thread):
    """Small networks only lose by more."""


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A ladder of one baseline, a few solved endgames, and nothing drawn."""
    monkeypatch.setattr("train.charts.is_installed", lambda library: False)
    monkeypatch.setattr(policy_run, "Ladder", partial(Ladder, baselines=("random",)))
    endgames = noisy_endgames(EndgameOptions(4, positions=5, empties=(3, 5)), tmp_path)
    monkeypatch.setattr(policy_run, "noisy_endgames", lambda options: endgames)


def killed_until_it_ends(run, folder, *, before=False):
    """Run until it ends; each part is killed right after its first checkpoint, or *before* its second. Return the checkpoints."""
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
