"""`reversi match`: two agents, paired openings, a score with its confidence interval."""

from __future__ import annotations

from collections import Counter
from contextlib import closing, suppress
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, integer, options_of
from play.cli.output import attributes, output_after_interrupt, print_json, print_table, progress_bar
from play.interrupt import interruptible
from train.arena.options import TournamentOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reversi_env import Position, Rules
    from train.arena.match import PlayerResults

    Tell = Callable[[PlayerResults], None]

MatchChoice: Any = options_of(
    TournamentOptions, without=("agents", "games", "format", "plies", "balance", "limit", "sprt")
)


def match(
    agent_a: Annotated[str, Parameter(name="A", help="Agent spec, for example greedy.")],
    agent_b: Annotated[str, Parameter(name="B", help="Agent spec, for example random:seed=7.")],
    /,
    *,
    games: Annotated[
        int,
        integer(
            "--games",
            help="Number of games (even, so that each opening is played with both colours).",
            low=2,
            even=True,
        ),
    ] = 200,
    plies: Annotated[
        int | None,
        integer("--plies", help="Opening length in plies (default: 6, 2 on 4x4, a whole line of a file).", high=60),
    ] = None,
    chosen: MatchChoice = NOTHING,
    workers: Annotated[
        int | None,
        integer("--workers", help="Number of worker processes (default: play in this process).", low=1, high=1024),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a match between two agents; each opening is played with both colours.

    Example: reversi match six-factor:depth=6 greedy --games 50

    Agents: random, greedy, greedy-invincible, exact, double-alpha, and every
    evaluator by name: network, six-factor, four-attribute, cell-utility,
    ten-weight, sixteen-weight, position-stability, mobility, discs. human
    has ten levels. rl, rl-search:FILE and zero play networks of reversi train.
    Options follow a colon, as in six-factor:depth=6,seed=1: depth, time, nodes,
    level, exact, threads, table, seed, weights, probcut, book, variety,
    evaluator, temperature, simulations, device (table: docs/reference/agents.md).
    --time, --depth and --nodes are defaults for specs of searching agents.

    Other programs play too: "gtp:gtp-rhino -l 3 -b 0", or
    "nboard[limit=5]:COMMAND LINE"; one that crashes, plays an illegal move or
    exceeds its limit (60 s per move) loses that game.

    With --workers, or with openings other than random, each game gets new
    agents. Any number of processes then plays the same games. Ctrl-C ends the
    match early and shows the games so far.
    """
    from reversi_env import Rules
    from train.arena.match import PlayerResults
    from train.arena.openings import DEFAULT_PLIES

    openings, seed = chosen.get("openings", "random"), chosen.get("seed", 0)
    rules = Rules(chosen.get("size", 8), chosen.get("variant", "normal"))
    limits = {name: chosen[name] for name in ("time", "depth", "nodes") if name in chosen}
    agents, played = (agent_a, agent_b), PlayerResults.of_match(())
    with progress_bar() as show:

        def tell(result: PlayerResults) -> None:
            nonlocal played
            played = result
            show(f"{agent_a} – {agent_b}", result.games, games)

        tell(played)
        if workers is None and openings == "random":
            random_plies = DEFAULT_PLIES[rules.size] if plies is None else plies
            interrupted = _play_here(agents, limits, games, rules, random_plies, seed, tell)
        else:
            options = TournamentOptions(agents, games, plies=plies, **chosen)
            interrupted = _play_apart(options, workers or 1, tell)
    with output_after_interrupt(interrupted, f"interrupted after {played.games} of {games} games"):
        if played.games and as_json:
            print_json({**as_dict(agent_a, agent_b, played), **attributes(rules, "size", "variant"), "seed": seed})
        elif played.games:
            print_result(agent_a, agent_b, rules, played)


def _play_apart(options: TournamentOptions, workers: int, tell: Tell) -> bool:
    """Play the match as a tournament on processes, of which finished pairs of games count; return whether Ctrl-C ended it."""
    from train.arena.match import PlayerResults
    from train.arena.tournament import Tournament, missing_games

    tournament = Tournament(options)
    by_number = tournament.by_number
    try:
        with closing(missing_games(tournament, workers)) as records:
            for record in records:
                tournament.add(record)
                tell(
                    PlayerResults.of_match(by_number[game].game for game in sorted(by_number) if game ^ 1 in by_number)
                )
    except KeyboardInterrupt:
        return True
    return False


class _Ended(Exception):  # noqa: N818 - not an error
    """The match was interrupted between two moves."""


def _play_here(
    specs: tuple[str, str], limits: dict[str, float], games: int, rules: Rules, plies: int, seed: int, tell: Tell
) -> bool:
    """Play the match in this process; return whether Ctrl-C ended it."""
    from reversi_env.options import derive_seed
    from search.agents.base import Agent
    from search.agents.spec import make_agent
    from train.arena.match import play_match

    over = Event()

    class Stoppable(Agent):
        """A player that ends the match at its next move once ``over`` is set."""

        def __init__(self, agent: Agent) -> None:
            self._agent = agent

        def choose(self, position: Position) -> int:
            return self.choose_after(position, ())

        def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
            try:
                return self._agent.choose_after(start, moves, position)
            finally:
                if over.is_set():  # whatever it returned or raised
                    raise _Ended

    def work() -> None:
        with suppress(_Ended):
            play_match(player_a, player_b, games, rules, opening_plies=plies, seed=seed, on_game=tell)

    def stop() -> None:
        over.set()
        for agent in agents:
            agent.stop()

    agents = [make_agent(spec, seed=derive_seed(seed, index), **limits) for index, spec in enumerate(specs)]
    player_a, player_b = map(Stoppable, agents)
    try:
        for agent in agents:
            agent.prepare(rules)  # compiles here, where Ctrl-C can end it
        return interruptible(work, stop)[1]
    finally:
        for agent in agents:
            agent.close()


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

    last = ", the last one from one side" if result.games % 2 else ""
    games = count_noun(result.games, "game")
    print(f"{rules.size}x{rules.size} {rules.variant}, {games}, every opening from both sides{last}")
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
