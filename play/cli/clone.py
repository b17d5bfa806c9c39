"""`experiment`, `measure` and `bench`: commands of the folders `studies` and `benchmarks`, which only a clone has."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

#: The folder that has each command.
FOLDERS = {"bench": "benchmarks", "experiment": "studies", "measure": "studies"}


class CloneError(ValueError):
    """A command that needs a clone of the project."""


def __getattr__(name: str) -> Any:
    if name not in FOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(loaded_from_clone(FOLDERS[name]), name)


def has_clone() -> bool:
    """Return whether the project's folders are here."""
    return all(name in sys.modules or _clone_with(name) for name in set(FOLDERS.values()))


def loaded_from_clone(name: str) -> ModuleType:
    """The module ``name.commands`` of the clone that is installed, or of the current folder; a `CloneError` if there is none.

    Nothing is run of a folder that has the name and is not ours, such as another distribution's beside the installed packages.
    """
    if name in sys.modules:
        return import_module(f"{name}.commands")
    clone = _clone_with(name)
    if clone is None:
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


def _clone_with(name: str) -> Path | None:
    parts = ("pyproject.toml", "play/cli/clone.py", f"{name}/commands.py")
    for clone in (Path(__file__).parents[2], Path.cwd()):
        if all((clone / part).is_file() for part in parts):
            return clone
    return None
