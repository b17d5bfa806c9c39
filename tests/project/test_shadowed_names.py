"""Files of a user that are called as our packages are: what does not need ours works, what does says which file it is."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

TRAIN = """
import gymnasium
import reversi_env

def said(act):
    try:
        print(act())
    except (reversi_env.ReversiError, ImportError) as error:
        print(type(error).__name__, error)

def play():
    env = gymnasium.make("Reversi-v0", opponent="six-factor:depth=2")
    observation, info = env.reset(seed=1)
    return "stepped", bool(env.step(info["action_mask"].argmax())[2])

def choose():
    from search.agents.spec import make_agent
    start = reversi_env.Position.initial()
    return make_agent("network:depth=4").choose(start) in start.legal_actions()

print("begun")
said(play)
said(choose)
"""


def run(folder):
    """What the script train.py in *folder* prints, line by line."""
    (folder / "train.py").write_text(TRAIN)
    command = [sys.executable, str(folder / "train.py")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_script_called_train_with_folders_of_data_beside_it(tmp_path):
    """Nothing imports the script: it would begin a second time."""
    for name in ("models", "search", "play"):
        (tmp_path / name).mkdir()
    assert run(tmp_path) == ["begun", "('stepped', False)", "True"]


def test_beside_a_module_called_models_only_the_network_is_missed(tmp_path):
    (tmp_path / "models.py").write_text("print('nobody asked for this one')")
    begun, stepped, network = run(tmp_path)
    assert (begun, stepped) == ("begun", "('stepped', False)")
    hiding = (
        f"ShadowedPackageError '{tmp_path / 'models.py'}' hides this project's package 'models', which is needed here"
    )
    assert network == f"{hiding}: expected another name for it, or a script and a working folder elsewhere"


def test_beside_a_package_called_search_the_reason_is_said(tmp_path):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "__init__.py").touch()
    _, opponent, network = run(tmp_path)
    hiding = f"'{tmp_path / 'search' / '__init__.py'}' hides this project's package 'search', which is needed here"
    assert opponent.startswith(f"SettingsError opponent 'six-factor:depth=2': {hiding}")
    assert network.startswith(("ShadowedPackageError", "ModuleNotFoundError"))  # with and without an editable install


@pytest.mark.slow
def test_the_command_is_not_disturbed_and_as_a_module_it_says_why(tmp_path):
    """`python -m` looks into the working folder first, the console script does not."""
    (tmp_path / "search.py").touch()
    command = [
        Path(sysconfig.get_path("scripts")) / "reversi",
        "analyse",
        "start",
        "--agent",
        "six-factor",
        "--depth",
        "2",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    module = [sys.executable, "-m", "play", *command[1:]]
    done = subprocess.run(module, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"reversi: '{tmp_path / 'search.py'}' hides this project's package 'search'")
    assert done.stderr.count("\n") == 1
