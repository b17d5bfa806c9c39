"""Every CPU kernel of the tensor environment runs from the on-disk cache in the next process."""

import pytest

from tests.oracles.processes import second_process_agrees

PLAY_EVERYTHING = """
import hashlib
import numpy as np
from reversi_env.kernels import autoreset as rollout
from reversi_env.envs import TorchVectorEnv
from tests.oracles.processes import report

seen = hashlib.sha256()
for parallel in (False, True):
    for opponent in (None, "greedy"):
        envs = TorchVectorEnv(9, device="cpu", size=4, opponent=opponent, parallel=parallel)
        envs.reset(seed=1)
        for step in range(20):
            observations, rewards, *_ = envs.random_step() if step % 2 else envs.step([step % 16] * 9)
            boards, turned = envs.children()
            seen.update(observations.numpy().tobytes() + rewards.numpy().tobytes() + boards.numpy().tobytes())
states = envs.get_state()
words = np.zeros((rollout.WORDS, 9), np.uint64)
rollout.states_to_words(states, words)
back = np.zeros_like(states)
rollout.words_to_states(words, envs.settings.game(), int(states["kind"][0]), back)
others = set(states.dtype.names) - {"potential", "game"}  # which the environment knows
assert all((back[name] == states[name]).all() for name in others)
one = np.uint64(1)
for squares in (64, 36, 16):
    rollout.mask_rows(np.uint64(rollout.compact(one, squares)), one, squares)
    rollout.plane_rows(one, one, squares)
rollout.spread_to_bytes(one), rollout.spread_to_float16(one)
game = envs.settings.game()
rollout.set_game(game[0], one, 1.0, 64, 1, 0, 0, 0)
rollout.set_start(game[0], one, one, 0, 0, -1, 0)
print(seen.hexdigest())

report(rollout)
"""


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["of all tests", pytest.param("empty", marks=pytest.mark.long)])
def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path, cache):
    second_process_agrees(PLAY_EVERYTHING, tmp_path, cache=cache, kernels=15)
