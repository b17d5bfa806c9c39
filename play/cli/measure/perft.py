"""`reversi perft`: count move sequences, and compare with the known table."""

import json
import sys
from time import perf_counter
from typing import Annotated

from play.cli.options import Json, Size, integer
from play.cli.output import print_json
from reversi_env.storage.packaged import DATA, packaged_bytes


def known_leaves(size: int, depth: int) -> int | None:
    """Return the published count for the standard start; None beyond the table."""
    table = json.loads(packaged_bytes(DATA / "perft.json"))["leaves"][str(size)]
    return table[depth - 1] if 1 <= depth <= len(table) else None


def perft(
    *,
    size: Size = 8,
    depth: Annotated[int, integer("Number of plies.", "--depth", high=60)] = 9,
    as_json: Json = False,
) -> None:
    """Count the move sequences of a given length from the start position (perft).

    Example: reversi perft --size 6 --depth 10

    A pass is a ply. Sequences that end earlier, with the end of the game, are
    not counted. The count is compared with the published table as far as it
    goes. On 8x8 one ply more takes about ten times as long.
    """
    from play.interrupt import abandonable
    from reversi_env import Position, Rules

    position = Position.initial(Rules(size))
    position.perft(min(depth, 1))  # compiles before the measurement
    began = perf_counter()
    leaves = abandonable(lambda: position.perft(depth))
    seconds = perf_counter() - began
    known = known_leaves(size, depth)
    if as_json:
        print_json({"size": size, "depth": depth, "leaves": leaves, "seconds": seconds, "known": known})
    else:
        verdict = ""
        if known is not None:
            verdict = "  (equals the table)" if known == leaves else f"  (the table says {known:,}!)"
        rate = f"{leaves / seconds / 1e6:.0f} million leaves/s" if seconds > 1e-3 else ""
        print(f"perft {size}x{size} depth {depth}: {leaves:,}{verdict}  {seconds:.3f} s  {rate}".rstrip())
    if known not in (None, leaves):
        sys.exit(1)
