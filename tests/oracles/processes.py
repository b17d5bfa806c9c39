"""Programs in a Python of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.oracles.jobs import PATIENCE

REPOSITORY = Path(__file__).parents[2]


def finished(program, *arguments, folder=REPOSITORY, **environment):
    """Run the text *program*, or a module after ``-m``, with the packages of *folder*; it must end by itself, without an error."""
    code = [] if program == "-m" else ["-c"]
    done = subprocess.run(
        [sys.executable, *code, program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(folder)} | {name: str(value) for name, value in environment.items()},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,  # an empty cache takes minutes to fill
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def output_of(program, *arguments, folder=REPOSITORY, **environment):
    """The lines that such a program writes."""
    return finished(program, *arguments, folder=folder, **environment).stdout.splitlines()
