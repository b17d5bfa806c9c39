"""Plug-ins, found by entry points and loaded when they are asked for by name; and packages of ours that other files hide.

The package's other layers have plain names, and Python looks into the folder of a script first: a ``models.py`` beside it, or
a script that is itself called ``train.py``, is found in place of ours. Nothing here runs such a file by mistake. What does not
need the hidden package works, and what does gets a `ShadowedPackageError` that says which file it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reversi_env.errors import ReversiError
from reversi_env.extras import extra_libraries

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The layers above this one, each of which needs those before it.
LAYERS = ("search", "models", "train", "play")
_HOME = Path(__file__).resolve().parents[1]


class PluginError(ReversiError):
    """A plug-in that cannot be loaded."""


class ShadowedPackageError(ModuleNotFoundError, PluginError):
    """A package of ours is needed, and Python finds a file or folder of somebody else's by its name."""


@cache
def _registered(group: str) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # reads what is installed, which takes a while

    return {entry.name: entry for entry in entry_points(group=group)}


def names(group: str) -> Iterable[str]:
    """The names that plug-ins of *group* provide; none of them is loaded."""
    return _registered(group).keys()


def load_named(group: str, name: str) -> None:
    """Load the plug-in of *group* that provides *name*, which registers it; nothing happens if there is none."""
    if name in _registered(group):
        load(_registered(group)[name])


def load(entry: EntryPoint) -> Any:
    """What *entry* points to; a `PluginError` or `MissingExtra` says why that cannot be had."""
    package = entry.module.partition(".")[0]
    for needed in LAYERS[: LAYERS.index(package) + 1] if package in LAYERS else ():
        if (code := _in_place_of(needed)) is not None and not code.is_dir():  # found, and about to be run
            raise _hidden(needed, code)
    try:
        with extra_libraries():
            return entry.load()
    except ReversiError:
        raise
    except Exception as error:
        raise explained(error) or PluginError(
            f"plug-in {entry.name!r} ({entry.value}) cannot be loaded, {type(error).__name__}: {error}: "
            f"expected one that works, or none"
        ) from error


def explained(error: Exception) -> ShadowedPackageError | None:
    """The reason for a failed import, if it is that something hides the package of ours that was asked for."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    other = _in_place_of(package) if isinstance(error, ImportError) and package in LAYERS else None
    return None if other is None else _hidden(package, other)


def _hidden(package: str, other: Path) -> ShadowedPackageError:
    return ShadowedPackageError(
        f"{str(other)!r} hides this project's package {package!r}, which is needed here: expected another name for it, "
        f"or a script and a working folder elsewhere",
        name=package,
    )


def _in_place_of(package: str) -> Path | None:
    """The file that Python finds for a *package* of ours, or the folder without code, if it is not ours; nothing is imported."""
    ours = _HOME / package / "__init__.py"
    if not ours.exists():
        return None
    try:
        spec = find_spec(package)
    except ValueError:  # put into sys.modules by hand
        return None
    if spec is None or (spec.origin and Path(spec.origin).resolve() == ours):
        return None
    return Path(spec.origin) if spec.origin else Path(next(iter(spec.submodule_search_locations or ())))


def check_folder(folder: Path) -> None:
    """Raise a `ShadowedPackageError` if a program that looks into *folder* first finds other code there."""
    for package in LAYERS:
        spec = PathFinder.find_spec(package, [str(folder)])
        if spec is not None and spec.origin and Path(spec.origin).resolve() != _HOME / package / "__init__.py":
            raise _hidden(package, Path(spec.origin))


class _Explaining:
    """Asked last for what nobody else has found: a module of ours whose package is somebody else's."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """None, or the reason why *name* was not found."""
        package, _, rest = name.partition(".")
        if rest and package in LAYERS and (other := _in_place_of(package)) is not None:
            place = _HOME.joinpath(*name.split("."))
            if place.is_dir() or place.with_suffix(".py").exists():
                raise _hidden(package, other)


def explain_failed_imports() -> None:
    """Let an import such as ``search.agents`` beside somebody's own package ``search`` fail with the reason."""
    sys.meta_path.append(_Explaining)
