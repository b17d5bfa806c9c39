"""`reversi match`: two agents, paired openings, a score with its confidence interval."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, integer, options_of
from play.cli.output import attributes, output_after_interrupt, print_json, print_table, progress_bar
from train.arena.options import TournamentOptions

if TYPE_CHECKING:
    from reversi_env import Rules
    from train.arena.match import PlayerResults

MatchChoice: Any = options_of(TournamentOptions, without=("agents", "games", "format", "balance", "limit", "sprt"))


def match(
    agent_a: Annotated[str, Parameter(name="A", help="Agent spec, for example greedy.")],
    agent_b: Annotated[str, Parameter(name="B", help="Agent spec, for example random:seed=7.")],
    /,
    *,
    games: Annotated[int, integer("Number of games (even: two per opening).", "--games", low=2, even=True)] = 200,
    chosen: MatchChoice = NOTHING,
    workers: Annotated[int, integer("Number of worker processes.", "--workers", low=1, high=1024)] = 1,
    as_json: Json = False,
) -> None:
    """Play a match between two agents; each opening is played with both colours.

    Example: reversi match six-factor:depth=6 greedy --games 50

    Agents: random, greedy (most flips), exact (random moves until the solver can
    finish the game), perfect (4x4 and 6x6), greedy-invincible (from a student
    report), and alpha-beta search with an evaluator, by the name of the
    evaluator: network, six-factor, four-attribute, cell-utility,
    ten-weight, sixteen-weight, position-stability, mobility, discs. human
    has ten levels. The agents rl, rl-search:FILE and
    zero use networks that reversi train has made.
    Options follow a colon, as in six-factor:depth=6,seed=1: depth, time, nodes,
    level, exact (empties to solve from), threads, table (MiB), seed, weights,
    probcut, book, variety, evaluator, temperature, simulations, device
    (docs/reference/agents.md in the sources).
    --time, --depth and --nodes are defaults for specs of searching agents.

    Other programs play too: "gtp:gtp-rhino -l 3 -b 0", or
    "nboard[limit=5]:COMMAND LINE"; one that crashes, plays an illegal move or
    exceeds its limit (60 s per move) loses that game.

    Agents are created again for each game, so the games do not depend on the number
    of workers. Ctrl-C ends the match early and shows the games so far.
    """
    from train.arena.match import PlayerResults
    from train.arena.tournament import Tournament, missing_games

    tournament = Tournament(TournamentOptions((agent_a, agent_b), games, **chosen))
    rules, seed, interrupted = tournament.options.rules, tournament.options.seed, False
    try:
        with progress_bar() as show, closing(missing_games(tournament, workers)) as records:
            show(f"{agent_a} – {agent_b}", 0, games)
            for record in records:
                tournament.add(record)
                show(f"{agent_a} – {agent_b}", len(tournament.by_number), games)
    except KeyboardInterrupt:
        interrupted = True
    by_number = tournament.by_number
    played = PlayerResults.of_match(by_number[game].game for game in sorted(by_number) if game ^ 1 in by_number)
    with output_after_interrupt(interrupted, f"interrupted after {played.games} of {games} games"):
        if played.games and as_json:
            print_json({**as_dict(agent_a, agent_b, played), **attributes(rules, "size", "variant"), "seed": seed})
        elif played.games:
            print_result(agent_a, agent_b, rules, played)


def as_dict(agent_a: str, agent_b: str, result: PlayerResults) -> dict[str, Any]:
    """Return the result under the stable keys of the JSON; wins are those of A."""
    sides = {"a": result, "b": result.opponent}
    return {
        "a": agent_a,
        "b": agent_b,
        **attributes(result, "games", "wins", "draws", "losses", "score"),
        "interval": result.interval(),
        "discs_per_game": result.discs_per_game,
        **{f"seconds_per_move_{name}": side.seconds_per_move for name, side in sides.items()},
        **{f"forfeits_{name}": [forfeit.reason for forfeit in side.forfeits] for name, side in sides.items()},
    }


def print_result(agent_a: str, agent_b: str, rules: Rules, result: PlayerResults) -> None:
    from reversi_env.errors import count_noun

    print(f"{rules.size}x{rules.size} {rules.variant}, {count_noun(result.games, 'game')}, every opening twice")
    sides = ((agent_a, result), (agent_b, result.opponent))
    rows = [
        (
            *(name, side.wins, side.draws, side.losses, f"{side.score:.1%}"),
            "{:.1%}–{:.1%}".format(*side.interval()),
            f"{round(side.discs_per_game, 1) + 0.0:+.1f}",  # never -0.0
            f"{1000 * side.seconds_per_move:.2f}",
        )
        for name, side in sides
    ]
    headings = ("agent", "won", "drawn", "lost", "score", "95 % interval", "discs", "ms/move")
    print_table(headings, rows, gap=1)
    for name, side in sides:
        for reason, count in Counter(forfeit.reason for forfeit in side.forfeits).items():
            print(f"{name} lost {count} by forfeit: {reason}")
