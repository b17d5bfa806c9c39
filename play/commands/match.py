"""`reversi match`: two agents, paired openings, a score with its confidence interval."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Seed, Size, VariantName, VariantOption, print_json

if TYPE_CHECKING:
    from train.match import MatchResult


def match(
    agent_a: Annotated[str, typer.Argument(metavar="A", help="Agent spec, for example [b]greedy[/b].")],
    agent_b: Annotated[str, typer.Argument(metavar="B", help="Agent spec, for example [b]random:seed=7[/b].")],
    games: Annotated[int, typer.Option("--games", "-g", help="Number of games; even, for both colours.", min=2)] = 200,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    openings: Annotated[int, typer.Option("--openings", "-k", help="Random plies before each game.", min=0)] = 6,
    time: Annotated[float | None, typer.Option("--time", help="Seconds a move for searching agents.")] = None,
    depth: Annotated[int | None, typer.Option("--depth", "-d", help="Plies for searching agents.", min=1)] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Play agent A against agent B, every opening from both sides.

    Agents: random, greedy, greedy-invincible, exact, double-alpha, and every evaluator by name (six-factor, …). Options
    follow a colon, as in [b]six-factor:depth=6[/b]; --time and --depth hold for agents that leave them open.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from reversi_env import Rules
    from search import agents
    from train.match import play_match

    limits = {"time": time, "depth": depth}
    players = [agents.make(spec, seed=seed + index, **limits) for index, spec in enumerate((agent_a, agent_b))]
    rules = Rules(size, variant.value)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(f"{agent_a} – {agent_b}", total=games)
        result = play_match(
            players[0],
            players[1],
            games,
            rules,
            opening_plies=openings,
            seed=seed,
            on_game=lambda _: progress.advance(task),
        )
    if as_json:
        print_json(as_dict(agent_a, agent_b, result))
    else:
        print_table(agent_a, agent_b, rules, result)


def as_dict(agent_a: str, agent_b: str, result: MatchResult) -> dict[str, Any]:
    """The result under the command line's stable keys; wins are A's."""
    low, high = result.interval()
    return {
        "a": agent_a,
        "b": agent_b,
        "games": len(result.games),
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "score": result.score,
        "score_low": low,
        "score_high": high,
        "discs_per_game": result.discs_per_game,
        "seconds_per_move_a": result.seconds_per_move("a"),
        "seconds_per_move_b": result.seconds_per_move("b"),
    }


def print_table(agent_a: str, agent_b: str, rules: Any, result: MatchResult) -> None:
    """The result as a table for people."""
    from rich.console import Console
    from rich.table import Table

    low, high = result.interval()
    title = f"{rules.size}x{rules.size} {rules.variant}, {len(result.games)} games, every opening from both sides"
    table = Table(title=title, title_justify="left")
    table.add_column("agent", overflow="fold")
    for heading in ("won", "drawn", "lost", "score", "95 % interval", "discs", "ms/move"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = (
        (agent_a, result.wins, result.losses, result.score, low, high, result.discs_per_game, "a"),
        (agent_b, result.losses, result.wins, 1 - result.score, 1 - high, 1 - low, -result.discs_per_game, "b"),
    )
    for name, wins, losses, score, bottom, top, discs, player in rows:
        table.add_row(
            name,
            str(wins),
            str(result.draws),
            str(losses),
            f"{score:.1%}",
            f"{bottom:.1%}–{top:.1%}",
            f"{discs:+.1f}",
            f"{1000 * result.seconds_per_move(player):.2f}",
        )
    Console().print(table)
