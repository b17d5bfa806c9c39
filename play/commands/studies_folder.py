"""The studies, which are beside the packages in a clone of the project and not installed with them."""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path


def find_studies() -> None:
    """Make ``studies`` importable: the folder of a clone that one is in. An error says that there is none."""
    from reversi_env.errors import ReversiError

    if "studies" in sys.modules or find_spec("studies") is not None:
        return
    init = Path.cwd() / "studies" / "__init__.py"
    if not (init.is_file() and (init.parent / "suite.py").is_file()):
        raise ReversiError(
            f"no studies in {str(Path.cwd())!r}: expected to be in a clone of the project, whose folder studies is not installed"
        )
    spec = spec_from_file_location("studies", init, submodule_search_locations=[str(init.parent)])
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules["studies"] = package  # nothing else of the folder that one is in can be imported by that
    spec.loader.exec_module(package)
