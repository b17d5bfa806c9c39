"""Files of a user that are called as our packages are: what does not need ours works, what does says which file it is.

And plug-ins: loaded by the name that is asked for, and none breaks another.
"""

import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from reversi_env import Position, plugins
from search import agents, evaluators
from search.agents import registry

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
    from search.agents.registry import make_agent
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


# --- plug-ins -------------------------------------------------------------------------------------


GOOD = """
from search import agents
from search.agents.players import RandomAgent
agents.register("good", RandomAgent, {"seed": agents.SEED})
"""


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    """Modules of plug-ins, and the entry points that name them beside our own."""

    def plug(**modules):
        monkeypatch.syspath_prepend(tmp_path)
        for name, text in modules.items():
            (tmp_path / f"plugged_{name}.py").write_text(text)
        found = [importlib.metadata.EntryPoint(name, f"plugged_{name}", plugins.GROUP) for name in modules]
        real = importlib.metadata.entry_points

        def beside(**asked):
            return [*found, *real(**asked)] if asked.get("group") == plugins.GROUP else real(**asked)

        monkeypatch.setattr(importlib.metadata, "entry_points", beside)  # numba asks for its own
        plugins._entry_points.cache_clear()

    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    yield plug
    plugins._entry_points.cache_clear()


def test_an_agent_is_loaded_by_its_name_and_no_other_with_it(plugged):
    plugged(good=GOOD, broken="raise RuntimeError('out of order')")
    assert {"good", "broken", "rl", "rl-search", "network"} <= set(agents.names())
    assert "plugged_good" not in sys.modules
    assert agents.make_agent("six-factor")
    assert "plugged_good" not in sys.modules
    assert agents.make_agent("good:seed=3").choose(Position.initial()) in Position.initial().legal_actions()
    message = (
        r"plug-in 'broken' \(plugged_broken\) cannot be loaded, RuntimeError: out of order: expected one that works"
    )
    for _ in range(2):
        with pytest.raises(plugins.PluginError, match=message):
            agents.make_agent("broken")
    with pytest.raises(agents.AgentSpecError, match="agent 'zzz' is unknown: expected one of broken, cell-utility"):
        agents.make_agent("zzz")


def test_an_evaluator_that_cannot_be_loaded_breaks_no_other(plugged):
    plugged(broken="import no_such_library")
    assert "broken" not in evaluators.formulas()
    assert "six-factor" in evaluators.published()
    assert evaluators.get_evaluator("network").name == "network"
    with pytest.raises(plugins.PluginError, match="ModuleNotFoundError: No module named 'no_such_library'"):
        evaluators.get_evaluator("broken")
