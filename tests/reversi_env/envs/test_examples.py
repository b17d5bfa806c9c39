"""The examples run unchanged, from any folder, and print the expected output."""

import importlib.util
import re
import runpy
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
SCORED = r"random +[\d.]+%[\s\S]*\nElo above random: [\s\S]*\nregret: [\d.]+ discs per move"
#: Arguments, and a pattern of the output, by file.
EXPECTED = {
    "random_rollout.py": ([], r"game over.*\nreward: (-1\.0|0\.0|1\.0)\s*$"),
    "pettingzoo_loop.py": (
        [],
        r"player_[01] gets (-1\.0|-?0\.0|1\.0)\nplayer_[01] gets (-1\.0|-?0\.0|1\.0)\n[\s\S]*game over",
    ),
    "vector_loop.py": ([], r"^\d+ games, [\d.]+ million plies/s\s*$"),
    "train_board_policy.py": (
        ["4096"],
        r"200 games against random: score [\d.]+%\n200 games against greedy: score [\d.]+%\s*$",
    ),
    "train_maskable_ppo.py": (["64"], SCORED),
    "distance_from_perfect.py": (
        ["64", "4", "8"],
        r"perfect moves\n +0 +\d+\.\d  [\s\S]*\n +16384 .*%\n[\s\S]*result kept: .*\nfrom the start: \d+ discs",
    ),
    "cleanrl_ppo.py": (["4096"], rf"^[\d,]+ steps/s, 256 games on (cpu|cuda:0)\n[\s\S]*{SCORED}"),
    "pettingzoo_maskable_ppo.py": (["256"], SCORED),
    "torchrl_ppo.py": (["2048"], SCORED),
    "tianshou_multi_agent.py": (["300"], SCORED),
    "rllib_ppo.py": (["1"], SCORED),
    "minari_dataset.py": (
        ["3", "test-v0"],
        r"^3 episodes, \d+ steps: minari\.load_dataset\('reversi6x6/test-v0'\)\s*$",
    ),
    "tree_search.py": (["4"], r"^4 simulations per move: [\d.]+% of the points in 64 games against random moves\s*$"),
}
#: Modules that the examples for other libraries need, with those that RLlib imports but does not install.
NEEDED = {
    "minari_dataset.py": ["minari", "jax", "h5py"],
    "torchrl_ppo.py": ["torchrl"],
    "tianshou_multi_agent.py": ["tianshou"],
    "rllib_ppo.py": ["tree", "lz4", "ray"],
}
QUICK = ("random_rollout.py", "pettingzoo_loop.py", "vector_loop.py")


def test_every_example_has_an_expectation():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in EXPECTED]
)
def test_example_prints_expected_output(name, tmp_path, tmp_path_factory, monkeypatch, capsys, one_torch_thread):
    """Examples run in this process, because the import of torch takes seconds. Their own warnings are errors."""
    for module in NEEDED.get(name, ()):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no {module}")
    arguments, expected = EXPECTED[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("minari")))
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", module="__main__")
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    out = capsys.readouterr().out
    assert re.search(expected, out), out
    assert list(tmp_path.iterdir()) == []


def test_jax_code_of_the_guide_runs():
    pytest.importorskip("jax", reason="JAX is not installed")
    page = (EXAMPLES.parent / "docs" / "guide" / "clients.md").read_text("utf-8").partition("## JAX")[2]
    names = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    assert names["rewards"].shape == (256,)
    assert type(names["masks"]).__module__.startswith("jax")
