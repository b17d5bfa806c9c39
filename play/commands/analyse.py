"""`reversi analyse`: the engine's opinion of one position."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from play.commands.options import Json, VariantName, VariantOption, print_json


def analyse(
    board: Annotated[str, typer.Argument(help="16, 36 or 64 characters X, O, -, row by row; or [b]start[/b].")],
    side: Annotated[str, typer.Argument(help="Side to move: X (black) or O (white).")] = "X",
    agent: Annotated[str, typer.Option("--agent", "-a", help="Evaluator to search with.")] = "six-factor",
    time: Annotated[float | None, typer.Option("--time", help="Seconds; 1 if no limit is given.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", "-d", help="Plies.", min=1)] = None,
    multi_pv: Annotated[int, typer.Option("--multi-pv", "-m", help="Number of best moves to value.", min=1)] = 1,
    threads: Annotated[int, typer.Option("--threads", "-t", min=1)] = 1,
    variant: VariantName = VariantOption.normal,
    as_json: Json = False,
) -> None:
    """Search a position: best move, value in discs for the side to move, expected line."""
    from play.commands.inputs import typed_position
    from reversi_env import ReversiError
    from search.agents import SearchAgent, make, parse_spec

    position = typed_position(board, side, variant.value)
    _, options = parse_spec(agent)
    if time is None and depth is None and not options.keys() & {"time", "depth", "nodes", "level"}:
        time = 1.0
    player = make(agent, time=time, depth=depth, threads=threads)
    if not isinstance(player, SearchAgent):
        raise ReversiError(f"agent {agent!r} does not search: expected an evaluator such as six-factor")
    found = player.search(position, multi_pv=multi_pv)
    result: dict[str, Any] = {
        "move": found.move,
        "value": found.value,
        "depth": found.depth,
        "exact": found.exact,
        "pv": list(found.pv),
        "nodes": found.nodes,
        "seconds": found.seconds,
    }
    if multi_pv > 1:
        result["moves"] = [{"move": entry.move, "value": entry.value} for entry in found.moves]
    if as_json:
        print_json(result)
        return
    print(position)
    kind = "exact" if found.exact else f"depth {found.depth}"
    print(
        f"{found.move or 'game over'}  {found.value:+.2f} discs ({kind})  {found.nodes:,} nodes  {found.seconds:.2f} s"
    )
    print(" ".join(found.pv))
    for entry in found.moves:
        print(f"    {entry.move}  {entry.value:+.2f}")
