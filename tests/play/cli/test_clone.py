"""Commands of a clone: found where one is, and nothing of others' folders with the same names is run."""

import shutil
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


@pytest.fixture
def installed(tmp_path):
    """The packages without the clone, and beside them folders of somebody else."""
    for name in ("reversi_env", "search", "models", "train", "play"):
        shutil.copytree(
            REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("*.safetensors", "__pycache__")
        )
    for name in ("benchmarks", "studies"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("print('not ours')")
    return tmp_path


def run(folder, *arguments):
    command = [sys.executable, "-P", "-m", "play", *arguments]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


def test_help_leaves_them_out_and_they_say_what_they_need(installed):
    help_page = run(installed, "--help")
    assert (help_page.returncode, help_page.stderr) == (0, "")
    assert "not ours" not in help_page.stdout
    assert "tournament" in help_page.stdout
    assert "bench" not in help_page.stdout
    for command, name in (("bench", "benchmarks"), ("experiment", "studies"), ("measure", "studies")):
        refused = run(installed, command, "--help")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == (
            f"reversi: no {name} in {str(installed)!r}: expected to be in a clone of the project, "
            f"whose folder {name} is not installed\n"
        )
