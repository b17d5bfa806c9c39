"""`reversi tournament`: ratings of agents with confidence intervals."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from play.cli.measure.exam import print_elo_note
from play.cli.options import (
    NOTHING,
    Json,
    ProcessCount,
    RayAddress,
    chosen_executor,
    make_folder,
    number,
    options_of,
    text,
)
from play.cli.output import RESUME, attributes, output_after_interrupt, print_json, print_table, progress_bar
from train.arena.options import TournamentOptions

if TYPE_CHECKING:
    from train.arena.ratings import Standings
    from train.arena.sequential import Sprt
    from train.arena.storage import GameRecord
    from train.arena.tournament import Tournament

#: Widths in the cross table, in characters: place and name (at most `MAX_NAME`), a score, and its decimal.
NAME_WIDTH, SCORE_WIDTH, DECIMAL_WIDTH, MAX_NAME = 26, 4, 2, 20
TournamentChoice: Any = options_of(TournamentOptions, without=("agents", "sprt"))


def tournament(
    *agents: Annotated[
        str, Parameter(help="Agent specs. all stands for every named agent, published for all published heuristics.")
    ],
    out: Annotated[
        Path | None, text("Output folder (default: a new folder under tournaments/).", "--out", metavar="DIR")
    ] = None,
    chosen: TournamentChoice = NOTHING,
    sprt: Annotated[
        str | None, text("Stop when an SPRT accepts H0 (Elo difference E0) or H1 (E1).", metavar="E0,E1")
    ] = None,
    errors: Annotated[float | None, number("Error rates alpha and beta of the SPRT (default: 0.05).")] = None,
    workers: ProcessCount = None,
    ray: RayAddress = None,
    as_json: Json = False,
) -> None:
    """Run a tournament between agents and compute Elo ratings.

    Example: reversi tournament network six-factor greedy --time 0.05 --games 10

    Each opening is played with both colours. Prints Elo with 95 % intervals and
    the cross table. The folder gets all games (games.jsonl, games.ggf), the
    options and a plot. After an interruption the same command resumes; with
    more --games it adds to the games in the folder.

    An SPRT plays until one hypothesis is accepted, here 0 or 50 Elo:
    reversi tournament six-factor:depth=4 greedy --sprt 0,50 -g 1000

    Agents and their options: reversi match --help. With --ray all machines of a
    cluster play the same games as one machine would.
    """
    from reversi_env import ReversiError

    if errors is not None and sprt is None:
        raise ReversiError(f"--errors {errors:g} without --sprt: expected both, or neither")
    test = None if sprt is None else _read_sprt(sprt, 0.05 if errors is None else errors)
    players = _expanded(list(agents), chosen.get("size", 8), chosen.get("variant", "normal"))
    options = TournamentOptions(players, **chosen, sprt=test)
    folder = out or Path("tournaments") / options.fingerprint()
    make_folder("--out", folder)
    played, interrupted = _play(options, folder, workers, ray)
    so_far = f"interrupted after {len(played.records)} of {options.total} games; {RESUME}"
    with output_after_interrupt(interrupted, so_far):
        if played.records:
            _report(played, folder, as_json)


def _expanded(specs: list[str], size: int, variant: Literal["normal", "reversed"]) -> tuple[str, ...]:
    """Return the specs, with ``all`` and ``published`` replaced by the agents that can play the game."""
    from play.thinker import Thinker
    from reversi_env import ReversiError, Rules
    from search.agents.registry import names
    from search.evaluators.registry import published_names

    groups = {"all": names(), "published": published_names()}
    if not groups.keys() & set(specs):
        return tuple(specs)
    expanded = {name: spec in groups for spec in specs for name in groups.get(spec, (spec,))}
    for name in [name for name, is_of_group in expanded.items() if is_of_group]:
        try:
            Thinker(name).check(Rules(size, variant))
        except ReversiError as error:
            print(f"reversi: {name} is left out: {error}", file=sys.stderr)
            del expanded[name]
    return tuple(expanded)


def _read_sprt(text: str, errors: float) -> Sprt:
    from reversi_env import ReversiError
    from train.arena.sequential import Sprt

    try:
        elo0, elo1 = map(float, text.split(","))
    except ValueError:
        raise ReversiError(f"--sprt {text!r}: expected two Elo differences with a comma, such as 0,50") from None
    return Sprt(elo0, elo1, errors, errors)


def _play(options: TournamentOptions, folder: Path, workers: int | None, ray: str | None) -> tuple[Tournament, bool]:
    """Return the games played to their end, and whether Ctrl-C ended the tournament."""
    from reversi_env.kernels.parallel import core_count
    from train.arena.tournament import read_tournament, run_tournament, threads_of

    workers_here = workers or max(1, core_count() // threads_of(options))
    title = f"{len(options.agents)} agents, {options.size}x{options.size} {options.variant}"
    with progress_bar() as show:

        def on_game(record: GameRecord, done: int) -> None:
            show(title, done, options.total)

        try:
            with chosen_executor(ray, workers if ray else None) as executor:  # without Ray, run_tournament's processes
                return run_tournament(options, folder, executor=executor, workers=workers_here, on_game=on_game), False
        except KeyboardInterrupt:
            return read_tournament(options, folder), True


def _report(played: Tournament, folder: Path, as_json: bool) -> None:
    from reversi_env.errors import count_noun
    from train.arena.ratings import standings
    from train.arena.storage import PLOT
    from train.charts import interval_chart

    table, options = standings(played), played.options
    title = f"{options.size}x{options.size} {options.variant}, {count_noun(len(played.records), 'game')}"
    rows = [(player.name, player.rating.low, player.rating.elo, player.rating.high) for player in table.players]
    chart = interval_chart(title, "Elo (Davidson), mean of all players 0; bars: 95 % intervals", rows)
    chart.save(folder / PLOT, optional=True)
    if as_json:
        print_json(as_dict(played, table, folder))
    else:
        paired = ", every opening from both sides"
        print_tables(played, table, title + (paired if played.complete else f" of {options.total} so far"))
        if played.openings < played.rounds:
            print(f"different openings: {played.openings} for {played.rounds} rounds; games may repeat (use --plies)")
        has_plot = (folder / PLOT).exists()
        files = ", options and plot" if has_plot else ' and options (for a plot: `pip install ".[plots]"`)'
        print(f"games{files}: {folder}")


def as_dict(played: Tournament, table: Standings, folder: Path) -> dict[str, Any]:
    """Return the result under the stable keys of the JSON; players best first."""
    from train.arena.storage import GAMES, PLOT, RECORDS

    result: dict[str, Any] = {
        **attributes(played.options, "size", "variant"),
        "complete": played.complete,
        "games": len(played.records),
        "openings": played.openings,
        "elo_scale": "Davidson",
        "agents": [
            {
                **attributes(player, "name", "games", "wins", "draws", "losses", "score", "discs_per_game"),
                "elo": player.rating.elo if player.rating.is_determined else None,
                "elo_low": player.rating.low,
                "elo_high": player.rating.high,
                "seconds_per_move": player.seconds_per_move,
                "slowest_move": max(player.seconds, default=0.0),
                "overruns": player.overruns,
                "forfeits": [f"{forfeit.kind}: {forfeit.reason}" for forfeit in player.forfeits],
            }
            for player in table.players
        ],
        **attributes(table, "cross_table", "draw_factor"),
        "games_file": str(folder / GAMES),
        "ggf_file": str(folder / RECORDS),
        "plot_file": str(folder / PLOT) if (folder / PLOT).exists() else None,
    }
    if played.options.sprt is not None:
        result["sprt"] = _sprt_dict(played)
    return result


def _sprt_dict(played: Tournament) -> dict[str, Any]:
    sprt = played.options.sprt
    assert sprt is not None
    test = {**attributes(sprt, "elo0", "elo1"), "elo_scale": "logistic", "accepted": played.verdict}
    llr = dict(zip(("llr", "llr_low", "llr_high"), (sprt.llr(played.pairs), *sprt.bounds), strict=True))
    return {**test, **llr, "pairs": played.pairs.tolist(), "elo_is_biased": played.verdict is not None}


def print_tables(played: Tournament, table: Standings, title: str) -> None:
    """Print ratings, cross table, forfeits and the result of the SPRT."""
    from train.arena.ratings import interval_text

    rows = [
        (
            *(place, player.name),
            f"{round(player.rating.elo):+d}" if player.rating.is_determined else "",  # never -0
            interval_text(player.rating.low, player.rating.high),
            f"+{player.wins} ={player.draws} -{player.losses}",
            *(f"{player.score:.1%}", f"{round(player.discs_per_game, 1) + 0.0:+.1f}"),
            *(f"{1000 * player.seconds_per_move:.1f}", player.overruns),
        )
        for place, player in enumerate(table.players, 1)
    ]
    print(title)
    print("Elo: Davidson's model, mean of all agents 0, with 95 % intervals")
    print("ms: mean time of a move, late: moves over the time allowed")
    headings = ("", "agent", "Elo", "95 %", "games", "score", "discs", "ms", "late")
    print_table(headings, rows, words=2, gap=0)
    print_elo_note(row[3:4] for row in rows)
    print("score in % of the row against the column")
    print_cross_table([player.name for player in table.players], table.cross_table)
    for player in table.players:
        for kind, count in Counter(forfeit.kind for forfeit in player.forfeits).items():
            reason = next(forfeit.reason for forfeit in player.forfeits if forfeit.kind == kind)
            print(f"{player.name} lost {count} by forfeit, {kind}: {reason}")
    if played.options.sprt is not None:
        print(_sprt_text(played))


def print_cross_table(names: list[str], scores: list[list[float | None]]) -> None:
    """Print the score of each agent against each other in %, best first, with names and decimals if the terminal is wide enough."""
    from rich.console import Console

    room = Console().width - NAME_WIDTH
    named = room >= SCORE_WIDTH * len(names)
    decimals = 1 if room >= (SCORE_WIDTH + DECIMAL_WIDTH) * len(names) else 0
    rows = [
        (
            place,
            *([name[:MAX_NAME]] if named else []),
            # rounded twice, so that 57.5 and 42.5 add up to 100 also without decimals
            *("·" if score is None else f"{round(100 * score, 6):.{decimals}f}" for score in row),
        )
        for place, (name, row) in enumerate(zip(names, scores, strict=True), 1)
    ]
    headings = ("", *(["agent"] if named else []), *map(str, range(1, len(names) + 1)))
    print_table(headings, rows, words=1 + named, gap=0)


def _sprt_text(played: Tournament) -> str:
    from reversi_env.errors import count_noun

    sprt, state = played.options.sprt, _sprt_dict(played)
    assert sprt is not None
    first, second = played.options.names
    answers = {
        "H0": f"{first} is not stronger than {second} by {sprt.elo1:g} Elo (accepted: {sprt.elo0:g} or less)",
        "H1": f"{first} is stronger than {second} by more than {sprt.elo0:g} Elo (accepted: {sprt.elo1:g} or more)",
        None: f"no answer yet between {sprt.elo0:g} and {sprt.elo1:g} Elo",
    }
    ratio = f"log-likelihood ratio {state['llr']:.2f} in ({state['llr_low']:.2f}, {state['llr_high']:.2f})"
    text = (
        f"SPRT: {answers[played.verdict]} after {count_noun(len(played.records), 'game')}; {ratio}, pairs {state['pairs']}\n"
        "Elo of the SPRT is logistic, 400 log10(score / (1 - score)); if games were drawn, Davidson's Elo is farther from 0"
    )
    biased = (
        "\nElo in the table is biased to the side of the accepted hypothesis, since the test stops at an extreme result"
    )
    return text + (biased if played.verdict else "")
