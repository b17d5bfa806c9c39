"""The package without extras: core commands work, others name the extra. Files that shadow packages are reported."""

import json
import pickle
import re
import subprocess
import sys
import tomllib

import pytest

from reversi_env import ReversiError
from reversi_env.errors import EXTRAS, MissingExtra, extra_libraries, missing_extra_error, require
from tests.conftest import REPOSITORY
from tests.oracles.processes import output_of

#: Runs command lines in a process without the hidden libraries; prints their statuses and outputs as JSON.
RUN_WITHOUT = """
import contextlib, io, json, sys
hidden, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))  # an import of None raises ModuleNotFoundError
from play.cli.app import main
results = []
for command in commands:
    sys.argv, out, err = ["reversi", *command], io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"quit\\n"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            results.append((ended.code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""

#: For every extra, commands that need it.
COMMANDS_OF_EXTRAS = {
    "web": ["serve --port 0", "connect 127.0.0.1", "bench server"],
    "learn": [
        "label out --count 5",
        "train fit labels --out out",
        "train bootstrap --out out",
        "demo --out out",
        "exam policy.safetensors",
        "train alphazero --out out",
        "train ppo --out out",
        "match random rl --games 2",
        "match rl-search random --games 2",
        "bench gpu",
    ],
    "rl": ["bench rl"],
    "cluster": ["label out --count 5 --ray local"],
    "tune": ["tune ten-weight --optimiser cma --out out", "tune ten-weight --out out"],
    "plots": [
        "measure regret random --positions 2 --plot x.svg",
        "exam --positions 2 --plot x.svg",
        "review f5d6 --plot x.svg",
    ],
}


def run_without(libraries, commands, folder):
    arguments = json.dumps([list(libraries), [command.split() for command in commands]])
    return json.loads(output_of(RUN_WITHOUT, arguments, folder=folder, PYTHONPATH=REPOSITORY)[-1])


def check_refused(extra, results):
    """Check that each command of an extra prints one line that names a library of the extra and how to install it."""
    lines = {
        f"reversi: {missing_extra_error(library, what)}\n"
        for library, brought_by in EXTRAS.items()
        if brought_by == extra
        for what in ("this", "device='cuda'")
    }
    for command, (status, out, err) in zip(COMMANDS_OF_EXTRAS[extra], results, strict=True):
        assert (command, status, out) == (command, 2, "")
        assert err in lines


#: Command lines that need only the core, with a word of their output.
CORE = {
    "--help": "Analyse",
    "perft --size 4 --depth 4": "perft 4x4 depth 4: ",
    "analyse start --agent network --depth 2": "d3",
    "analyse start.obf --depth 0 --agent network": "line 1: ",
    "solve start --size 4": "line 1: -10",
    "match greedy six-factor:depth=1 --games 2 --size 4": "six-factor",
    "gtp six-factor:depth=1": "=",
    "nboard six-factor:depth=1": "",
}


@pytest.mark.slow
def test_without_extras_core_commands_work_and_others_name_them(tmp_path):
    (tmp_path / "start.obf").write_text("---------------------------OX------XO--------------------------- X;\n")
    others = [command for extra in COMMANDS_OF_EXTRAS for command in COMMANDS_OF_EXTRAS[extra]]
    results = iter(run_without(EXTRAS, [*CORE, *others], tmp_path))
    for (command, expected), (status, out, err) in zip(CORE.items(), results, strict=False):
        assert (command, status) == (command, 0), err
        assert expected in out
    for extra in COMMANDS_OF_EXTRAS:
        check_refused(extra, [next(results) for _ in COMMANDS_OF_EXTRAS[extra]])
    assert [path.name for path in tmp_path.iterdir()] == ["start.obf"]


#: Imports every module without the extras; then uses environments and opponents.
LIBRARY = """
import importlib, json, pkgutil, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
from reversi_env.errors import MissingExtra
missed = set()
for package in map(importlib.import_module, ("reversi_env", "search", "models", "train")):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except MissingExtra as error:
            missed.add(error.name)
print(*sorted(missed))

import gymnasium
from reversi_env.envs import ReversiVectorEnv, pettingzoo
env = gymnasium.make("ReversedReversi-v0", opponent="network:depth=2")
info = env.reset(seed=1)[1]
env.step(info["action_mask"].argmax())
envs = ReversiVectorEnv(4, opponent="greedy")
envs.reset(seed=1)
envs.step(envs.sample_legal())
turns = pettingzoo.env(size=4)
turns.reset(seed=1)
turns.step(turns.last()[0]["action_mask"].argmax())

def torch_vector_env():
    from reversi_env.envs import TorchVectorEnv

def vec_env():
    from train.rl.vec_env import ReversiVecEnv

for make in (
    torch_vector_env,
    vec_env,
    lambda: gymnasium.make_vec("TorchReversi-v0", num_envs=2),
    lambda: gymnasium.make("Reversi-v0", opponent="rl"),
):
    try:
        make()
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
def test_without_extras_the_library_works_and_names_them():
    torch, sb3 = (str(missing_extra_error(library)) for library in ("torch", "stable_baselines3"))
    errors = [torch, sb3, torch, f"opponent 'rl': {torch}"]
    assert output_of(LIBRARY, json.dumps(list(EXTRAS))) == ["stable_baselines3 torch", *errors]


def test_missing_extra_is_an_import_error_and_can_be_pickled():
    with pytest.raises(MissingExtra, match=r"torch.*\[learn\]") as caught, extra_libraries():
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.name) == (str(caught.value), "torch")
    assert isinstance(again, ReversiError)
    assert isinstance(again, ImportError)


def test_other_missing_modules_raise_the_usual_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught, extra_libraries():
        import no_such_module  # noqa: F401
    assert not isinstance(caught.value, ReversiError)
    require("numpy")


def test_libraries_are_in_their_extras():
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    distributions = {"pyspiel": "open-spiel", "jax": "pgx"}
    for library, extra in EXTRAS.items():
        distribution = distributions.get(library, library.replace("_", "-"))
        assert any(re.split(r"[>\[]", requirement)[0] == distribution for requirement in extras[extra]), library


def test_the_server_offers_only_installed_agents(monkeypatch):
    pytest.importorskip("msgspec", reason="the server needs msgspec, of the extra web")
    from play.server import catalogue
    from play.server.messages import Refused
    from play.server.options import ServerOptions

    monkeypatch.setattr(catalogue, "is_installed", lambda library: False)
    monkeypatch.setattr(catalogue, "sizes", catalogue.sizes.__wrapped__)
    names = [entry.name for entry in catalogue.entries()]
    assert "network" in names
    assert "rl" not in names
    with pytest.raises(Refused, match="torch"):
        catalogue.limited_agent("rl", 6, ServerOptions())


TRAIN = """
import gymnasium
import reversi_env
env = gymnasium.make("Reversi-v0", opponent="six-factor:depth=2")
observation, info = env.reset(seed=1)
print("stepped", bool(env.step(info["action_mask"].argmax())[2]))
"""


def run_script(folder, *command):
    command = command or (folder / "train.py",)
    return subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True)


def test_a_script_named_train_runs_next_to_data_folders(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for name in ("models", "search", "play"):
        (tmp_path / name).mkdir()
    assert run_script(tmp_path).stdout == "stepped False\n"


def test_an_opponent_names_the_shadowing_package(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "search").mkdir()
    shadowing = tmp_path / "search" / "__init__.py"
    shadowing.write_text("print('imported')")
    done = run_script(tmp_path)
    error = done.stderr.splitlines()[-1]
    assert "SettingsError" in error
    assert str(shadowing) in error
    assert "imported" not in done.stdout


@pytest.mark.slow
def test_python_m_names_the_shadowing_file(tmp_path):
    (tmp_path / "search.py").touch()
    done = run_script(tmp_path, "-m", "play", "analyse", "start", "--agent", "six-factor", "--depth", "2")
    assert done.returncode == 2
    assert str(tmp_path / "search.py") in done.stderr
    assert done.stderr.count("\n") == 1
