"""Libraries that only an extra of the package brings: what to say, in one place, where one of them is not installed.

Modules that cannot do without such a library import it so:

    with extra_libraries():
        import torch

What only later needs one asks for it before it begins, with `require`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from reversi_env.errors import ReversiError

#: The smallest extra that brings a library, by the name that it is imported by.
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
    """A library that an extra of this package brings is needed and not installed; ``name`` is the library's."""


def missing(library: str, what: str = "this") -> MissingExtra:
    """The error that says that *what* needs *library*, and how a clone of the project gets it."""
    return MissingExtra(
        f"{what} needs {library.replace('_', '-')}, which is not installed: "
        f'expected `pip install ".[{EXTRAS[library]}]"` in a clone of the project',
        name=library,
    )


def installed(library: str) -> bool:
    """Whether *library* could be imported; it is not."""
    try:
        return find_spec(library) is not None
    except ImportError:
        return False


def require(*libraries: str) -> None:
    """Raise a `MissingExtra` about the first of the *libraries* that is not installed; none is imported."""
    for library in libraries:
        if not installed(library):
            raise missing(library)


@contextmanager
def extra_libraries() -> Iterator[None]:
    """Turn the failed import of a library of an extra into a `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS or isinstance(error, ReversiError):
            raise
        raise missing(library) from None
