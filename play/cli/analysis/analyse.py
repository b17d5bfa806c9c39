"""`reversi analyse`: the engine's opinion of one position."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.cli.options import AgentOption, GameNumber, Json, SearchThreads, StartSize, VariantName
from play.cli.output import picked, print_json, shown_after_ctrl_c
from play.cli.usage import Command

if TYPE_CHECKING:
    from reversi_env import Position
    from search.limits import SearchResult
    from search.players import SearchAgent

BOARD_HELP = (
    "16, 36 or 64 characters X, O, -, row by row; [b]start[/b], or 4, 6, 8 for that board's start; "
    "moves from the start, such as [b]f5d6c3[/b]; or a file with a game, GGF or moves."
)


#: A board whose first square is empty, which looks like an option.
_EMPTY_CORNER = re.compile(r"-[-._XxOo*0BbWw●○\s]{5,}")


class AnalyseCommand(Command):
    """A command that knows a board with an empty first corner from an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        return super().parse_args(ctx, ["." + text[1:] if _EMPTY_CORNER.fullmatch(text) else text for text in args])


def analyse(
    board: Annotated[str, typer.Argument(help=BOARD_HELP)],
    side: Annotated[
        str | None, typer.Argument(help="Side to move on a board: X (black, the default) or O (white).")
    ] = None,
    agent: AgentOption = None,
    time: Annotated[float | None, typer.Option("--time", help="Seconds to think; 1 if no limit is given.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", "-d", help="Plies to search.", min=1, max=60)] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="Nodes to visit.", min=1)] = None,
    multi_pv: Annotated[int, typer.Option("--multi-pv", "-m", help="Number of best moves to value.", min=1)] = 1,
    threads: SearchThreads = 1,
    game: GameNumber = None,
    after: Annotated[
        int | None, typer.Option("--after", help="Of a game: the position after so many moves.", min=0)
    ] = None,
    size: StartSize = None,
    variant: VariantName = "normal",
    as_json: Json = False,
) -> None:
    """Search a position: best move, value in discs for the side to move, expected line.

    Examples: reversi analyse start --depth 8 --multi-pv 4

              reversi analyse f5d6c3

              reversi analyse saved-game.ggf --after 30

    Near the end of a game the value is exact, and says so; before that it may
    be likely, and says how likely. Ctrl-C ends the search early and shows the
    best so far.
    """
    from play.cli.positions import typed_position
    from play.thinker import default_agent

    position = typed_position(board, side, variant, size, after, game)
    player = _searcher(agent or default_agent(position.rules), {"time": time, "depth": depth, "nodes": nodes}, threads)
    found, interrupted = _search(player, position, multi_pv)
    with shown_after_ctrl_c(interrupted, "interrupted, this is the best so far"):
        if as_json:
            moves = {"moves": [picked(entry, "move", "value") for entry in found.moves]} if multi_pv > 1 else {}
            print_json(picked(found, "move", "value", "depth", "exact", "confidence", "pv", "nodes", "seconds") | moves)
        else:
            _print(position, found)


def _searcher(agent: str, limits: dict[str, float | None], threads: int) -> SearchAgent:
    """The agent under the limits given: its own come first, and one second is what is left if there are none."""
    from reversi_env import ReversiError
    from search.agents import AgentSpec
    from search.players import SearchAgent

    spec = AgentSpec.parse(agent)
    spec.check_own()
    if all(limit is None for limit in limits.values()) and not spec.options.keys() & {*limits, "level"}:
        limits["time"] = 1.0
    player = spec.make(**limits, threads=threads)
    if not isinstance(player, SearchAgent):
        raise ReversiError(f"agent {agent!r} does not search: expected an evaluator such as six-factor")
    return player


def _search(player: SearchAgent, position: Position, multi_pv: int) -> tuple[SearchResult, bool]:
    """What the engine finds, and whether Ctrl-C cut it short."""
    from time import perf_counter

    from play.cli.interrupt import interruptible
    from play.first_start import compile_ahead, parts_of

    compile_ahead(
        parts_of([player]), lambda: player.prepare(position.rules)
    )  # here, where Ctrl-C can end a compilation
    began = perf_counter()
    return interruptible(
        lambda: player.search(position, multi_pv=multi_pv),
        player.stop,
        lambda: f"searching, {perf_counter() - began:.0f} s (Ctrl-C shows the best so far)",
    )


def _print(position: Position, found: SearchResult) -> None:
    """The board, the verdict, the expected line and the moves asked for."""
    from reversi_env.errors import count_noun
    from search.limits import certainty

    print(position)
    kind, nodes = certainty(found.confidence, found.depth), count_noun(found.nodes, "node")
    print(f"{found.move or 'game over'}  {found.value:+.2f} discs ({kind})  {nodes}  {found.seconds:.2f} s")
    if found.pv:
        print(" ".join(found.pv))
    for entry in found.moves:
        print(f"    {entry.move}  {entry.value:+.2f}")
