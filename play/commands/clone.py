"""Folders of a clone that are not installed with the packages, and found by whoever is in it: `studies` and `benchmarks`."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


class CloneError(ValueError):
    """A command that needs a clone of the project; no `ReversiError`, since the help asks for every command and loads no rules."""


def find_in_clone(name: str) -> None:
    """Make the package *name* importable, of the clone that is installed or that one is in. An error says that there is none."""
    if name in sys.modules:
        return
    for clone in (Path(__file__).parents[2], Path.cwd()):
        init = clone / name / "__init__.py"
        if init.is_file() and (clone / "play" / "commands").is_dir():
            break
    else:
        raise CloneError(
            f"no {name} in {str(Path.cwd())!r}: expected to be in a clone of the project, whose folder {name} is not installed"
        )
    spec = spec_from_file_location(name, init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules[name] = package  # nothing else of the folder that one is in can be imported by that
    spec.loader.exec_module(package)
