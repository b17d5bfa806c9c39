"""The packages' facades: every name of a stub exists in its module, and none is imported before it is used."""

import os
import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("package", ["reversi_env", "reversi_env.envs", "search", "models", "train", "train.labels"])
def test_every_exported_name_exists(package):
    module = import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("eager", [False, True])
def test_facades_import_nothing_heavy_unless_asked_to(eager):
    if eager:
        pytest.importorskip("torch", reason="all names of the facades need torch, of the extra learn")
    script = "import sys, reversi_env, search, models; print('numpy' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "EAGER_IMPORT"}
    environment |= {"EAGER_IMPORT": "1"} if eager else {}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{eager}\n"
