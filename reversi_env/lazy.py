"""Front doors that cost nothing to open: names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for *package*, whose names are defined in the modules that *homes* gives them.

    ``module:name`` is where a name is another one at home.

    For people who read the code and for type checkers the package imports the same names below ``if TYPE_CHECKING``.
    """

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, original = homes[name].partition(":")
        value = getattr(import_module(module), original or name)
        setattr(sys.modules[package], name, value)  # found at once from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return found, names
