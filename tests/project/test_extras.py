"""With the core alone, or without one extra: what works, and the one line that the rest ends with."""

import ast
import json
import os
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reversi_env import ReversiError
from reversi_env.errors import EXTRAS, MissingExtra, extra_libraries, missing_extra_error, require
from tests.conftest import REPOSITORY

#: Runs command lines in turn in a process that finds none of the hidden libraries; their statuses and outputs as JSON.
HIDING = """
import contextlib, io, json, sys
hidden, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))  # which is how Python itself says that there is no such module
from play.cli.app import main
told = []
for command in commands:
    sys.argv, out, err = ["reversi", *command], io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"quit\\n"))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            told.append((ended.code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""

#: For every extra, commands that need it, and the library that they miss first.
NEEDING = {
    "web": [("h11", "serve --port 0"), ("websockets", "connect 127.0.0.1"), ("starlette", "bench server")],
    "learn": [
        ("pyarrow", "label out --count 5"),
        ("torch", "train fit labels --out out"),
        ("torch", "train bootstrap --out out"),
        ("torch", "demo --out out"),
        ("torch", "exam policy.safetensors"),
        ("torch", "train alphazero --out out"),
        ("torch", "match random rl --games 2"),
        ("torch", "match rl-search random --games 2"),
        ("torch", "bench gpu"),
    ],
    "rl": [("sb3_contrib", "train ppo --out out"), ("sb3_contrib", "bench rl")],
    "cluster": [("ray", "label out --count 5 --ray local")],
    "tune": [("cma", "tune ten-weight --optimiser cma --out out"), ("pymoo", "tune ten-weight --out out")],
    "plots": [
        ("matplotlib", "measure regret random --positions 2 --plot x.svg"),
        ("matplotlib", "exam --positions 2 --plot x.svg"),
        ("matplotlib", "review f5d6 --plot x.svg"),
    ],
    "cuda": [("numba_cuda", "label out --count 5 --device cuda")],
}


def run_without(libraries, commands, folder):
    done = subprocess.run(
        [sys.executable, "-c", HIDING, json.dumps([list(libraries), [command.split() for command in commands]])],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check_refused(extra, told):
    """The *told* of an extra's commands is one line each, which names the library and the way to get it."""
    for (library, command), (status, out, err) in zip(NEEDING[extra], told, strict=True):
        what = "device='cuda'" if extra == "cuda" else "this"
        assert (command, status, out, err) == (command, 2, "", f"reversi: {missing_extra_error(library, what)}\n")


@pytest.mark.slow
@pytest.mark.parametrize("extra", NEEDING)
def test_without_an_extra_a_command_says_what_is_missing_and_begins_nothing(extra, tmp_path):
    hidden = [library for library, brought_by in EXTRAS.items() if brought_by == extra]
    check_refused(extra, run_without(hidden, [command for _, command in NEEDING[extra]], tmp_path))
    assert not list(tmp_path.iterdir())


#: What the core is for, by command line, with a word of what it says.
CORE = {
    "--help": "Analyse",
    "perft --size 4 --depth 4": "perft 4x4 depth 4: ",
    "analyse start --agent network --depth 2": "d3",
    "analyse start.obf --depth 0 --agent network": "line 1: ",
    "solve start --size 4": "-10 for black",
    "match greedy six-factor:depth=1 --games 2 --size 4": "six-factor",
    "gtp six-factor:depth=1": "=",
    "nboard six-factor:depth=1": "",
}


def test_with_the_core_alone_its_commands_work_and_the_others_say_what_they_need(tmp_path):
    (tmp_path / "start.obf").write_text("---------------------------OX------XO--------------------------- X;\n")
    extras = [extra for extra in NEEDING if extra != "cuda"]  # where pyarrow is missed first
    others = [command for extra in extras for _, command in NEEDING[extra]]
    told = iter(run_without(EXTRAS, [*CORE, *others], tmp_path))
    for (command, word), (status, out, err) in zip(CORE.items(), told, strict=False):
        assert (command, status) == (command, 0), err
        assert word in out
    for extra in extras:
        check_refused(extra, [next(told) for _ in NEEDING[extra]])
    assert [path.name for path in tmp_path.iterdir()] == ["start.obf"]


#: Every module of ours, imported where only the core is installed; then the environments, the network and its opponents.
LIBRARY = """
import importlib, json, pkgutil, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))
from reversi_env import ReversiError
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
from reversi_env.envs import pettingzoo as aec
from reversi_env.envs import ReversiVectorEnv
env = gymnasium.make("ReversedReversi-v0", opponent="network:depth=2")
info = env.reset(seed=1)[1]
env.step(info["action_mask"].argmax())
envs = ReversiVectorEnv(4, opponent="greedy")
envs.reset(seed=1)
envs.step(envs.sample_legal())
turns = aec.env(size=4)
turns.reset(seed=1)
turns.step(turns.last()[0]["action_mask"].argmax())

def torch_vector_env():
    from reversi_env.envs import TorchVectorEnv

def vec_env():
    from train.rl.vec_env import ReversiVecEnv

for ask in (
    torch_vector_env,
    vec_env,
    lambda: gymnasium.make_vec("TorchReversi-v0", num_envs=2),
    lambda: gymnasium.make("Reversi-v0", opponent="rl"),
):
    try:
        ask()
    except ValueError as error:
        print(error)
"""


def test_with_the_core_alone_the_library_works_and_says_what_the_rest_needs():
    command = [sys.executable, "-c", LIBRARY, json.dumps(list(EXTRAS))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    torch, sb3 = (str(missing_extra_error(library)) for library in ("torch", "stable_baselines3"))
    assert done.stdout.splitlines() == [
        "numba_cuda stable_baselines3 torch",
        torch,
        sb3,
        torch,
        f"opponent 'rl': {torch}",
    ]


# --- the one place where it is said -----------------------------------------------------------------


def test_the_error_is_one_of_ours_and_an_import_error_and_survives_a_trip_to_another_process():
    with (
        pytest.raises(
            MissingExtra, match=r'this needs torch, .*: expected `pip install "\.\[learn\]"` in a clone'
        ) as caught,
        extra_libraries(),
    ):
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.name) == (str(caught.value), "torch")
    assert isinstance(again, ReversiError)
    assert isinstance(again, ImportError)


def test_other_modules_that_are_missing_stay_what_they_are():
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught, extra_libraries():
        import no_such_module  # noqa: F401
    assert not isinstance(caught.value, ReversiError)
    require("numpy")


def test_every_library_is_in_the_extra_that_is_named_for_it():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras, distributions = project["optional-dependencies"], {"pyspiel": "open-spiel", "jax": "pgx"}
    for library, extra in EXTRAS.items():
        wanted = distributions.get(library, library.replace("_", "-"))
        assert any(re.split(r"[>\[]", requirement)[0] == wanted for requirement in extras[extra]), library
    core = {requirement.partition(">=")[0] for requirement in project["dependencies"]}
    assert core == {
        "numpy",
        "numba",
        "gymnasium",
        "pettingzoo",
        "safetensors",
        "pillow",
        "cyclopts",
        "rich",
        "platformdirs",
        "lazy-loader",
    }


def test_every_library_that_is_imported_anywhere_is_of_the_core_or_of_an_extra():
    ours = ("reversi_env", "search", "models", "train", "studies", "play", "benchmarks")
    imported = {
        name.partition(".")[0]
        for package in ours
        for path in (REPOSITORY / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    core = [
        "numpy",
        "numba",
        "llvmlite",
        "gymnasium",
        "pettingzoo",
        "safetensors",
        "PIL",
        "cyclopts",
        "rich",
        "platformdirs",
        "lazy_loader",
    ]
    assert imported - sys.stdlib_module_names <= {*ours, *core, *EXTRAS}


def test_nothing_tells_people_to_install_a_name_that_is_not_on_pypi():
    folders = ("reversi_env", "search", "models", "train", "play", "tests", "docs", "examples", "studies", "benchmarks")
    files = [path for name in folders for path in (REPOSITORY / name).rglob("*.*") if path.suffix in (".py", ".md")]
    wrong = re.compile(r"pip install[^\n]*reversi-lab")
    read = (path for path in (*files, *REPOSITORY.glob("*.md")) if path != Path(__file__))
    assert [str(path) for path in read if wrong.search(path.read_text())] == []


def test_the_server_offers_only_agents_that_can_play_here(monkeypatch):
    pytest.importorskip("msgspec", reason="the server needs msgspec, of the extra web")
    from play.server import catalogue
    from play.server.messages import Refused
    from play.server.options import ServerOptions

    monkeypatch.setattr(catalogue, "is_installed", lambda library: False)
    monkeypatch.setattr(catalogue, "sizes", catalogue.sizes.__wrapped__)
    names = [entry.name for entry in catalogue.entries()]
    assert "network" in names
    assert "rl" not in names
    with pytest.raises(Refused, match="agent 'rl' needs torch, which is not installed"):
        catalogue.limited_agent("rl", 6, ServerOptions())


def test_the_lock_has_a_hash_for_all_that_is_asked_for():
    """Of torch every kind of machine has a build of its own."""
    text = (REPOSITORY / "requirements.lock").read_text("utf-8")
    locked = [entry.split(" ")[0] for entry in re.split(r"\n(?=[a-z])", text)[1:] if "--hash=sha256:" in entry]
    pinned = re.findall(r"^[a-z][^\n]*", (REPOSITORY / "constraints.txt").read_text("utf-8"), re.M)
    assert {each for each in pinned if not each.startswith("torch==")} <= set(locked)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for name in ("web", "learn", "rl", "cluster", "tune", "human", "docs", "dev"):
        wanted += project["optional-dependencies"][name]
    names = {re.match(r"[A-Za-z0-9-]+", each)[0] for each in wanted} - {"torch", "reversi-lab"}
    assert names <= {each.partition("==")[0] for each in locked}


def test_without_a_library_only_what_says_that_it_lacks_it_is_skipped(tmp_path):
    """As where not all of them are there for a Python: `tests.project.without`."""
    lacking = (
        "from reversi_env.errors import missing_extra_error\ndef test_lacking(): raise missing_extra_error('h11')\n"
    )
    (tmp_path / "test_tests.py").write_text(
        lacking + "def test_other(): raise missing_extra_error('torch')\ndef test_good(): pass\n"
    )
    (tmp_path / "test_module.py").write_text("import h11.absent\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.project.without", "--without", "h11"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "1 failed, 1 passed, 2 skipped" in done.stdout
    assert "FAILED test_tests.py::test_other" in done.stdout
