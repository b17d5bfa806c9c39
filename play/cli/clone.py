"""`experiment`, `measure` and `bench`: commands of the folders `studies` and `benchmarks`, which only a clone has."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from reversi_env.errors import ReversiError

#: The folder that has each command.
FOLDERS = {"bench": "benchmarks", "experiment": "studies", "measure": "studies"}


def __getattr__(name: str) -> Any:
    """Return the command *name* of the clone that is installed, or of the current folder."""
    if name not in FOLDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    folder = FOLDERS[name]
    if folder not in sys.modules:
        _import_folder(folder)
    return getattr(import_module(f"{folder}.commands"), name)


def has_clone() -> bool:
    """Return whether the folders of these commands exist."""
    return all(name in sys.modules or _clone_with(name) for name in set(FOLDERS.values()))


def _import_folder(name: str) -> None:
    """Import a package of the clone by its path, so that a folder of another project with that name never runs."""
    clone = _clone_with(name)
    if clone is None:
        raise ReversiError(
            f"no {name} in {str(Path.cwd())!r}: expected to be in a clone of the project, whose folder {name} is not installed"
        )
    init = clone / name / "__init__.py"
    spec = spec_from_file_location(name, init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


def _clone_with(name: str) -> Path | None:
    parts = ("pyproject.toml", "play/cli/clone.py", f"{name}/commands.py")
    clones = (Path(__file__).parents[2], Path.cwd())
    return next((clone for clone in clones if all((clone / part).is_file() for part in parts)), None)
