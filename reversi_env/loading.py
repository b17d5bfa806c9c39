"""Loading by name: objects of the higher layers of this project by import path, and agents of other packages by entry point.

The packages of the higher layers have plain names, and Python searches the folder of a script first. A ``models.py`` there, or a
script that is itself called ``train.py``, shadows the package. `load` never runs such a file: it raises a `ShadowedPackageError`
that names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reversi_env.errors import ReversiError, extra_libraries

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Entry points of other packages in this group have the name of an agent or evaluator, and refer to its class or object.
GROUP = "reversi_lab.agents"
#: The layers above this one; each needs those before it.
LAYERS = ("search", "models", "train", "play")
_ROOT = Path(__file__).resolve().parents[1]


class EntryPointError(ReversiError):
    """An entry point that cannot be loaded."""


class ShadowedPackageError(ModuleNotFoundError, ReversiError):
    """A package of this project is needed, but Python finds another file or folder of its name."""

    def __init__(self, package: str, other: Path) -> None:
        super().__init__(
            f"{str(other)!r} shadows this project's package {package!r}: expected no other file or folder of that name where "
            f"Python searches first; rename it, or use another working folder",
            name=package,
        )


def load(path: str) -> Any:
    """Return the object at *path*, ``module:name``, of a higher layer of this project."""
    module, _, name = path.partition(":")
    package = module.partition(".")[0]
    for needed in LAYERS[: LAYERS.index(package) + 1]:
        other = _shadowing_path(needed)
        if other is not None and not other.is_dir():  # an import would run it
            raise ShadowedPackageError(needed, other)
    try:
        with extra_libraries():
            return getattr(import_module(module), name)
    except ImportError as error:
        raise shadowing_error(error) or error from None


def shadowing_error(error: Exception) -> ShadowedPackageError | None:
    """Return the error that explains a failed import if another file or folder shadows a package of this project."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    other = _shadowing_path(package) if isinstance(error, ImportError) and package in LAYERS else None
    return None if other is None else ShadowedPackageError(package, other)


def check_folder(folder: Path) -> None:
    """Raise a `ShadowedPackageError` if a program that searches *folder* first finds other code there."""
    for package in LAYERS:
        spec = PathFinder.find_spec(package, [str(folder)])
        if spec is not None and spec.origin and Path(spec.origin).resolve() != _ROOT / package / "__init__.py":
            raise ShadowedPackageError(package, Path(spec.origin))


def _shadowing_path(package: str) -> Path | None:
    """Return the file, or the folder without code, that Python finds in place of a *package* of this project."""
    own = _ROOT / package / "__init__.py"
    if not own.exists():
        return None
    spec = find_spec(package)
    if spec is None or (spec.origin and Path(spec.origin).resolve() == own):
        return None
    return Path(spec.origin) if spec.origin else Path(next(iter(spec.submodule_search_locations or ())))


@cache
def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow: it reads the metadata of all packages

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def entry_point_names() -> Iterable[str]:
    """Return the names that other packages provide; none of them is loaded."""
    return _entry_points().keys()


def load_entry_point(name: str) -> Any:
    """Load the entry point of that name; None if there is none."""
    if (entry := _entry_points().get(name)) is None:
        return None
    try:
        with extra_libraries():
            return entry.load()
    except ReversiError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise EntryPointError(f"entry point {name!r} ({entry.value}) cannot be loaded: {reason}") from error
