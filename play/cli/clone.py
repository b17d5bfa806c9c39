"""Folders of a clone that are not installed with the packages, and found by whoever is in it: `studies` and `benchmarks`."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


class CloneError(ValueError):
    """A command that needs a clone of the project; no `ReversiError`, since the help asks for every command and loads no rules."""


def loaded_from_clone(name: str) -> ModuleType:
    """The module ``name.commands`` of the clone that is installed or that one is in. An error says that there is none.

    Nothing is run of a folder that has the name and is not ours, such as another distribution's beside the installed packages.
    """
    if name in sys.modules:
        return import_module(f"{name}.commands")
    for clone in (Path(__file__).parents[2], Path.cwd()):
        if all((clone / part).is_file() for part in ("pyproject.toml", "play/cli/clone.py", f"{name}/commands.py")):
            break
    else:
        raise CloneError(
            f"no {name} in {str(Path.cwd())!r}: expected to be in a clone of the project, whose folder {name} is not installed"
        )
    init = clone / name / "__init__.py"
    spec = spec_from_file_location(name, init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules[name] = package  # nothing else of the folder that one is in can be imported by that
    spec.loader.exec_module(package)
    return import_module(f"{name}.commands")
