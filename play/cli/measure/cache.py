"""`reversi cache`: the location and size of the caches, and how to clear them."""

from typing import Annotated, Literal

from cyclopts import Parameter

from play.cli.options import Json, flag
from play.cli.output import print_json

#: The content of the parts of the cache.
ABOUT = {
    "kernels": "compiled kernels",
    "solved": "exact scores of positions",
}


def cache(
    action: Annotated[Literal["clear"] | None, Parameter(help="clear deletes the compiled kernels.")] = None,
    /,
    *,
    everything: Annotated[
        bool,
        flag("With clear: also delete solved positions, which take long to recompute.", "--all"),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the location and size of the caches, or clear them.

    Example: reversi cache clear

    REVERSI_CACHE_DIR sets another location. Kernels that were not used for 30
    days are removed automatically; deleted ones are compiled again when needed.
    """
    from reversi_env.errors import ReversiError
    from reversi_env.storage.user_cache import PARTS, cache_folder, clear, size_of

    if action == "clear":
        for part in PARTS if everything else ("kernels",):
            print(f"{cache_folder(part)}: {clear(part) / 2**20:.1f} MB removed")
        return
    if everything:
        raise ReversiError("--all: expected it with clear")
    usage = {part: size_of(cache_folder(part)) for part in PARTS}
    if as_json:
        sizes = {part: {"files": files, "bytes": size} for part, (files, size) in usage.items()}
        print_json({"folder": str(cache_folder()), "parts": sizes})
        return
    print(cache_folder())
    for part, (files, size) in usage.items():
        print(f"    {part:<12} {size / 2**20:8.1f} MB  {files:>6} files  {ABOUT[part]}")
