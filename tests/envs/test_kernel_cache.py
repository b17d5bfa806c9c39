"""Every kernel of the environments runs from the on-disk cache in the next process: same games, nothing compiled again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

PLAY_EVERYTHING = """
import hashlib
import numpy as np
from reversi_env import aec
from reversi_env.core import episodes
from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from tests.kernel_report import report

def last_legal(board, mask):
    return mask.shape[-1] - 1 - mask[..., ::-1].argmax(-1)

seen = hashlib.sha256()
for observation in ("planes", "flat"):
    for opponent in (None, "random", "greedy", last_legal, ["random", last_legal]):
        for illegal in ("lose", "raise"):
            options = dict(size=4, opponent=opponent, observation=observation, illegal=illegal, colour="random", empties=2)
            env = ReversiEnv(**options)
            board, info = env.reset(seed=1)
            for _ in range(40):
                board, reward, terminated, _, info = env.step(env.sample_legal())
                seen.update(board.tobytes() + bytes(str(reward), "ascii") + env.action_masks().tobytes())
                if terminated:
                    env.reset()
            for parallel in (False, True):
                envs = ReversiVectorEnv(9, parallel=parallel, autoreset_mode="SAME_STEP", **options)
                envs.reset(seed=1)
                for _ in range(20):
                    boards, rewards, _, _, infos = envs.step(envs.sample_legal())
                    seen.update(boards.tobytes() + rewards.tobytes() + infos["action_mask"].tobytes())
game = aec.env(size=4)
game.reset(seed=1)
for _ in game.agent_iter():
    seen.update(game.state().tobytes())
    game.step(None if game.last()[2] else game.sample_legal())
print(seen.hexdigest())

report(episodes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["of all tests", pytest.param("empty", marks=pytest.mark.long)])
def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path, cache):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    if cache == "empty":
        environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-c", PLAY_EVERYTHING]
    first, second = (
        subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert int(first[1]) > 30
    assert first[2] == "[]", "kernels that this test does not reach"
    if cache == "empty":
        assert first[3] != "[]"
    assert second[0] == first[0]
    assert second[3] == "[]", "kernels that were compiled again"
    assert int(second[4]) > 5  # those that Python calls
