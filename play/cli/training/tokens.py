"""`reversi tokens`: games as sequences of tokens, in Parquet files."""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Device, Json, options_of
from play.cli.output import RESUME, exit_on_interrupt, print_json, progress_bar
from train.sequences.options import TokenOptions

Choice: Any = options_of(TokenOptions)


def tokens(
    out: Annotated[Path, Parameter(help="Output folder; created if missing.")],
    /,
    *,
    chosen: Choice = NOTHING,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Write games as sequences of tokens to Parquet files.

    Example: reversi tokens games --games 20000000 --device cuda

    The tokens are those of Othello-GPT: 0 is padding, and 1 to 60 are the
    squares of 8x8 row by row, without the four of the centre. Agents begin with
    --prefix random moves. Each side of a game draws one of them, and evaluators
    sample their moves at the temperature in discs that follows @.

    Run the same command again to resume. OUT/manifest.json lists the files with
    their SHA-256.
    """
    from reversi_env.errors import count_noun
    from train.sequences.files import write_tokens

    options, began = TokenOptions(**chosen), perf_counter()
    with exit_on_interrupt(f"stopped; {RESUME}"), progress_bar() as show:
        shards = write_tokens(options, out, device=device, progress=lambda done: show("games", done, options.games))
    result = {"folder": str(out), "games": options.games, "shards": len(shards), "seconds": perf_counter() - began}
    if as_json:
        print_json(result)
    else:
        print(
            f"{count_noun(options.games, 'game')} in {out}: {count_noun(len(shards), 'file')}, {result['seconds']:.1f} s"
        )
