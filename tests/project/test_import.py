"""What `import reversi_env` costs and pulls in, and which packages are installed."""

import resource
import subprocess
import sys
import tomllib

from tests.conftest import REPOSITORY

LIBRARIES = "import gymnasium, numba"
PROBE = """
import sys
import reversi_env
heavy = {"torch", "stable_baselines3", "PIL", "pygame", "matplotlib", "search", "models", "train", "play"}
print(sorted(heavy & set(sys.modules)))
"""

#: The environments are there whoever is imported first, and nobody is imported for it.
EITHER_ORDER = """
import importlib.util
import sys
import reversi_env
print(sorted({"gymnasium", "pettingzoo"} & set(sys.modules)))
importlib.util.find_spec("gymnasium")  # as TorchRL asks whether there is one
import gymnasium, pettingzoo
from pettingzoo.env_registry import registration
print(gymnasium.make("ReversedReversi-v0", size=4).unwrapped.rules.variant, "Reversi-v0" in registration.aec_registry)
print(type(gymnasium.__loader__).__name__, type(gymnasium.__spec__.loader).__name__)
from reversi_env import functional
print(functional.legal(functional.init(2)).shape, "torch" in sys.modules)
"""


def processor_seconds(code):
    """What a new process takes to run *code*, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result.stdout.strip()


def test_the_import_is_light():
    """Below one second of processor time with a warm cache, and no torch.

    A machine that is too slow or too busy for that has 1.7 times what the two libraries alone take there, measured in turn.
    """
    for _ in range(4):
        seconds, heavy = processor_seconds(PROBE)
        assert heavy == "[]"
        if seconds < 1.0 or seconds < 1.7 * processor_seconds(LIBRARIES)[0]:
            return
    raise AssertionError(f"importing reversi_env took {seconds:.2f} s of processor time")


def test_environments_are_registered_when_their_library_comes_later():
    lines = processor_seconds(EITHER_ORDER)[1].splitlines()
    assert lines == ["[]", "reversed True", "SourceFileLoader SourceFileLoader", "(2, 65) False"]


def test_the_wheel_has_every_package_and_no_studies():
    named = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    layers = ("reversi_env", "search", "models", "train", "play")
    found = [
        path.parent.relative_to(REPOSITORY) for layer in layers for path in (REPOSITORY / layer).rglob("__init__.py")
    ]
    assert sorted(named) == sorted(".".join(folder.parts) for folder in found)
