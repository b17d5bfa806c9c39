"""`reversi cache`: what is kept for the next start, where, and how to be rid of it."""

from __future__ import annotations

from typing import Annotated

import typer

from play.cli.options import Json
from play.cli.output import print_json
from play.cli.usage import Application

app = Application(no_args_is_help=False)

#: What the parts of the cache are.
ABOUT = {
    "kernels": "compiled kernels",
    "solved": "exact scores of positions",
    "experiments": "unfinished experiments",
}


@app.callback(invoke_without_command=True)
def cache(ctx: typer.Context, as_json: Json = False) -> None:
    """Show where compiled kernels and solved positions are kept, and how large that is.

    REVERSI_CACHE_DIR names another place. Kernels of versions that nobody has used for 30 days are removed by themselves.
    """
    if ctx.invoked_subcommand is not None:
        return
    from reversi_env.caches import PARTS, cache_folder, size_of

    found = {part: size_of(cache_folder(part)) for part in PARTS}
    if as_json:
        sizes = {part: {"files": files, "bytes": size} for part, (files, size) in found.items()}
        print_json({"folder": str(cache_folder()), "parts": sizes})
        return
    print(cache_folder())
    for part, (files, size) in found.items():
        print(f"    {part:<12} {size / 2**20:8.1f} MB  {files:>6} files  {ABOUT[part]}")


@app.command()
def clear(
    everything: Annotated[
        bool,
        typer.Option("--all", help="Solved positions and unfinished experiments too, which take longer to make again."),
    ] = False,
) -> None:
    """Remove the compiled kernels of all versions; the next start compiles those that it needs."""
    from reversi_env.caches import PARTS, cache_folder
    from reversi_env.caches import clear as remove

    for part in PARTS if everything else ("kernels",):
        print(f"{cache_folder(part)}: {remove(part) / 2**20:.1f} MB removed")
