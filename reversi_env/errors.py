"""Errors that bad input raises, and errors for optional libraries that are missing.

Each is a `ValueError` whose message names the input and what was expected.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from numbers import Integral


class ReversiError(ValueError):
    """Base of all errors of this package."""


class RulesError(ReversiError):
    """A game that does not exist: unsupported size, variant or start."""


class PositionError(ReversiError):
    """A board that cannot be: overlapping or off-board discs, wrong length, unknown characters."""


class IllegalMoveError(ReversiError):
    """A move that the rules do not allow in the position it was played in."""


class NotationError(ReversiError):
    """Text or bytes that do not follow the format they were read as."""


class TrainError(ReversiError):
    """Invalid options, data that do not fit them, or a folder that belongs to another run."""


def quoted(value: object, limit: int = 60) -> str:
    """Return *value* as it appears in an error message: quoted, on one line, and shortened to *limit* characters."""
    text = " ".join(repr(value).split("\n"))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def count_noun(number: int, thing: str, things: str = "") -> str:
    """Return a count with its noun, such as "3 games"; *things* is the plural where an "s" is not enough.

    >>> count_noun(1, "game"), count_noun(1200, "game"), count_noun(0, "ply", "plies")
    ('1 game', '1,200 games', '0 plies')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean …?)" with the nearest known name for an error message, or "" if none is near."""
    from difflib import get_close_matches  # loaded only for errors

    close = get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_integer(
    name: str, value: object, low: int, high: int | None = None, error: type[ReversiError] = TrainError
) -> None:
    """Raise an *error* unless *value* is an integer, Python's or numpy's, from *low* to *high*."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or not low <= value <= (value if high is None else high):  # type: ignore[operator]
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise error(f"{name}={quoted(value)}: expected an integer {bounds}")


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


class MissingExtra(ModuleNotFoundError, ReversiError):  # noqa: N818 - named after what is missing
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
