"""Every kernel of the environments runs from the on-disk cache in the next process: same games, nothing compiled again."""

import pytest

from tests.oracles.processes import second_process_agrees

PLAY_EVERYTHING = """
import hashlib
import numpy as np
from reversi_env import Rules, functional
from reversi_env.envs import pettingzoo as aec
from reversi_env.kernels import episodes, states
from reversi_env.envs import ReversiEnv, ReversiVectorEnv
from tests.oracles.processes import report

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
for size in (4, 8):
    state = functional.init(9, Rules(size), 1, empties=3)
    state = functional.step(functional.symmetry(state, 5), functional.legal(state).argmax(-1))
    state = functional.from_boards(state.own, state.opp, state.rules)
    seen.update(functional.observe(state).tobytes() + functional.score(state).tobytes())
print(seen.hexdigest())

report(episodes, states)
"""


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["of all tests", pytest.param("empty", marks=pytest.mark.long)])
def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path, cache):
    second_process_agrees(PLAY_EVERYTHING, tmp_path, cache=cache, kernels=30)
