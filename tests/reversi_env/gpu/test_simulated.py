"""The GPU's kernels, on a GPU or on numba's CUDA simulator, do what the CPU's do: every tensor after every step, whole games."""

from importlib.util import find_spec
from itertools import product

import pytest

from tests.oracles.cuda import NUMBA_SIMULATES
from tests.oracles.processes import output_of

OPPONENTS = ("none", "random", "greedy")

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda"), reason="numba-cuda is not installed")


def episodes_ended(*games):
    """Play the games (as `tests.oracles.cuda` takes them); ended episodes of each."""
    lines = output_of("-m", "tests.oracles.cuda", "games", *games, **NUMBA_SIMULATES)
    assert len(lines) == len(games)
    return [int(line.split()[-1]) for line in lines]


@pytest.mark.slow
def test_whole_games_of_every_kind():
    """4x4 to the end, against every opponent; the larger boards in two layouts. (The slow tests leave nothing out.)"""
    small = ["4,normal,none,planes,13", "4,reversed,random,planes,8"]
    small.append("4,normal,greedy,half,8,reward=shaped,discount=0.9,illegal=random")
    others = ["6,normal,none,half,3", "8,normal,random,packed,3"]
    ended = episodes_ended(*small, *others)
    assert min(ended[: len(small)]) > 0


@pytest.mark.slow
def test_the_other_layouts_and_opponents():
    """What the quick test leaves out, and whole games of a larger board; all in one process, whose start takes seconds."""
    layouts = ((4, "packed"), (6, "planes"), (6, "packed"), (8, "half"))
    games = [f"{size},normal,none,{layout},4,reward=discs" for size, layout in layouts]
    games.append("8,reversed,greedy,planes,3")
    whole = [*whole_games(4, [("reversed", "none"), ("normal", "random"), ("reversed", "greedy")])]
    whole += whole_games(6, [("reversed", "none"), ("normal", "greedy")])
    assert min(episodes_ended(*whole, *games)[: len(whole)]) > 0


def whole_games(size, kinds):
    plies = {4: 14, 6: 34, 8: 62}[size]
    steps = {"none": plies, "random": plies // 2 + 1, "greedy": plies // 2 + 1}
    return [f"{size},{variant},{opponent},planes,{steps[opponent]}" for variant, opponent in kinds]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("size", [4, 6, 8])
def test_whole_games_of_every_size_variant_and_opponent(size):
    assert min(episodes_ended(*whole_games(size, product(("normal", "reversed"), OPPONENTS)))) > 0
