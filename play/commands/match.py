"""`reversi match`: two agents, paired openings, a score with its confidence interval."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Seed, Size, VariantName, VariantOption, checked_seconds, print_json
from play.commands.specs import complete_spec, spec_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reversi_env import Position, Rules
    from search.agent import Agent
    from train.games.match import MatchResult

#: Characters of a line for a player's name, so that all columns fit into 80.
NAME_WIDTH = 22


def match(
    agent_a: Annotated[
        str, typer.Argument(metavar="A", help="Agent spec, for example [b]greedy[/b].", autocompletion=complete_spec)
    ],
    agent_b: Annotated[
        str,
        typer.Argument(metavar="B", help="Agent spec, for example [b]random:seed=7[/b].", autocompletion=complete_spec),
    ],
    games: Annotated[int, typer.Option("--games", "-g", help="Number of games; even, for both colours.", min=2)] = 200,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    plies: Annotated[
        int, typer.Option("--plies", "--openings", "-k", help="Random plies before each game.", min=0, max=60)
    ] = 6,
    time: Annotated[float | None, typer.Option("--time", help="Seconds a move, for searching agents.")] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", "-d", help="Plies to search, for searching agents.", min=1, max=60)
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="Nodes a move, for searching agents.", min=1)] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    r"""Play agent A against agent B, every opening from both sides.

    Example: reversi match six-factor:depth=6 greedy --games 50

    Agents: random, greedy, greedy-invincible, exact, double-alpha, and every
    evaluator by name: network, six-factor, four-attribute, cell-utility,
    ten-weight, sixteen-weight, position-stability, mobility, discs; rl and
    rl-search:FILE are policies of [b]reversi rl[/b]. Options follow a colon, as in
    [b]six-factor:depth=6,seed=1[/b]: depth, time, nodes, level, exact, threads, table,
    seed, weights, probcut, temperature (docs/arena.md has a table); --time,
    --depth and --nodes hold for searching agents that leave them open.

    Other programs play too: [b]"gtp:gtp-rhino -l 3 -b 0"[/b], or
    [b]"nboard\[limit=5]:COMMAND LINE"[/b]; one that crashes, plays an illegal
    move or takes longer than its limit (60 s a move) loses that game.

    Ctrl-C ends the match early and shows the games played so far.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env import Rules
    from search import agents

    checked_seconds(time)
    limits = {"time": time, "depth": depth, "nodes": nodes}
    players = [agents.make(spec, seed=seed + index, **limits) for index, spec in enumerate((agent_a, agent_b))]
    rules = Rules(size, variant.value)
    try:
        result, interrupted = _play(players, f"{agent_a} – {agent_b}", games, rules, plies, seed)
    finally:
        for player in players:
            player.close()
    if interrupted:
        print(f"reversi: interrupted after {result.games} of {games} games", file=sys.stderr)
    if result.games and as_json:
        print_json(as_dict(agent_a, agent_b, result))
    elif result.games:
        print_table(agent_a, agent_b, rules, result)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


class _Ended(Exception):  # noqa: N818 - nothing is wrong
    """The match was interrupted between two moves."""


def _stoppable(agent: Agent) -> Agent:
    """A player that thinks no more once it was told to stop, so that the match ends."""
    from search.agent import Agent
    from search.external import EngineFailure

    class Stoppable(Agent):
        stopped = False

        def choose(self, position: Position) -> int:
            return self.choose_after(position, ())

        def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
            if self.stopped:
                raise _Ended
            try:
                return agent.choose_after(start, moves, position)
            except EngineFailure:
                if self.stopped:  # it was we who ended it
                    raise _Ended from None
                raise

        def stop(self) -> None:
            self.stopped = True
            agent.stop()

    return Stoppable()


def _play(
    agents: list[Agent], title: str, games: int, rules: Rules, openings: int, seed: int
) -> tuple[MatchResult, bool]:
    """The games that were played to their end, with a progress bar, and whether Ctrl-C cut the match short."""
    from play.commands.interruptible import interruptible
    from train.games.match import MatchResult, play_match

    for agent in agents:
        agent.prepare(rules)  # compiles here, where Ctrl-C can end it
    players = player_a, player_b = [_stoppable(agent) for agent in agents]
    played = MatchResult.of([])

    def on_game(result: MatchResult) -> None:
        nonlocal played
        played = result
        advance()

    def work() -> None:
        with suppress(_Ended):
            play_match(player_a, player_b, games, rules, opening_plies=openings, seed=seed, on_game=on_game)

    def stop() -> None:
        for player in players:
            player.stop()

    with _progress(title, games) as advance:
        _, interrupted = interruptible(work, stop)
    return played, interrupted


@contextmanager
def _progress(title: str, games: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error, advanced by the function given; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=games)
        yield lambda: progress.advance(task)


def as_dict(agent_a: str, agent_b: str, result: MatchResult) -> dict[str, Any]:
    """The result under the command line's stable keys; wins are A's."""
    low, high = result.interval()
    return {
        "a": agent_a,
        "b": agent_b,
        "games": result.games,
        "wins": result.wins,
        "draws": result.draws,
        "losses": result.losses,
        "score": result.score,
        "score_low": low,
        "score_high": high,
        "discs_per_game": result.discs_per_game,
        "seconds_per_move_a": result.seconds_per_move("a"),
        "seconds_per_move_b": result.seconds_per_move("b"),
        "forfeits_a": result.forfeits("a"),
        "forfeits_b": result.forfeits("b"),
    }


def print_table(agent_a: str, agent_b: str, rules: Any, result: MatchResult) -> None:
    """The result as a table for people."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    low, high = result.interval()
    last = ", the last one from one side" if result.games % 2 else ""
    print(f"{rules.size}x{rules.size} {rules.variant}, {result.games} games, every opening from both sides{last}")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("agent", overflow="fold")
    for heading in ("won", "drawn", "lost", "score", "95 % interval", "discs", "ms/move"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = (
        (agent_a, result.wins, result.losses, result.score, low, high, result.discs_per_game, "a"),
        (agent_b, result.losses, result.wins, 1 - result.score, 1 - high, 1 - low, -result.discs_per_game, "b"),
    )
    for name, wins, losses, score, bottom, top, discs, player in rows:
        table.add_row(
            escape(spec_lines(name, NAME_WIDTH)),
            str(wins),
            str(result.draws),
            str(losses),
            f"{score:.1%}",
            f"{bottom:.1%}–{top:.1%}",
            f"{round(discs, 1) + 0.0:+.1f}",  # never -0.0
            f"{1000 * result.seconds_per_move(player):.2f}",
        )
    Console().print(table)
    for name, player in ((agent_a, "a"), (agent_b, "b")):
        for reason, count in Counter(result.forfeits(player)).items():
            print(f"{name} lost {count} by forfeit: {reason}")
