"""Options that several subcommands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer


class VariantOption(StrEnum):
    """Which side wins: the one with more discs, or the one with fewer."""

    normal = "normal"
    reversed = "reversed"


Size = Annotated[int, typer.Option("--size", "-n", help="Board size: 4, 6 or 8.")]
VariantName = Annotated[VariantOption, typer.Option("--variant", "-v", help="Most discs win, or fewest do.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same result.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]


def print_json(result: dict[str, Any]) -> None:
    """Write *result* as one line of JSON on standard output."""
    print(json.dumps(result), flush=True)
