"""Optional libraries, each installed by an extra of the package, and the error if one is missing.

Modules that need such a library import it like this:

    with extra_libraries():
        import torch

Code that needs a library later checks for it first with `require`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from reversi_env.errors import ReversiError

#: The smallest extra that installs a library, by import name.
EXTRAS = {
    "cma": "tune",
    "envpool": "bench",
    "h11": "web",
    "jax": "bench",
    "matplotlib": "plots",
    "msgspec": "web",
    "numba_cuda": "cuda",
    "pgx": "bench",
    "mctx": "bench",
    "pyarrow": "learn",
    "pygame": "human",
    "pymoo": "tune",
    "pyspiel": "bench",
    "ray": "cluster",
    "sb3_contrib": "rl",
    "stable_baselines3": "rl",
    "starlette": "web",
    "tensorboard": "rl",
    "torch": "learn",
    "triton": "cuda",  # torch's builds for CUDA bring it
    "uvicorn": "web",
    "websockets": "web",
}


class MissingExtra(ModuleNotFoundError, ReversiError):  # noqa: N818 - it is what is missing
    """A library of an extra is needed but not installed; ``name`` is its import name."""


def missing_extra_error(library: str, what: str = "this") -> MissingExtra:
    """Return the error that *what* needs *library*, with the command that installs it."""
    return MissingExtra(
        f"{what} needs {library.replace('_', '-')}, which is not installed: "
        f'expected `pip install ".[{EXTRAS[library]}]"` in a clone of the project',
        name=library,
    )


def is_installed(library: str) -> bool:
    """Return whether *library* can be imported, without importing it."""
    try:
        return find_spec(library) is not None
    except ImportError:
        return False


def require(*libraries: str) -> None:
    """Raise a `MissingExtra` for the first of the *libraries* that is not installed. None is imported."""
    for library in libraries:
        if not is_installed(library):
            raise missing_extra_error(library)


@contextmanager
def extra_libraries() -> Iterator[None]:
    """Convert the failed import of an extra's library into a `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS or isinstance(error, ReversiError):
            raise
        raise missing_extra_error(library) from None
