"""`reversi winrate`: the win rate of an agent, with an interval that holds at every number of games."""

from typing import Annotated, Any

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, ProcessCount, integer, number, options_of
from play.cli.output import attributes, output_after_interrupt, print_json, progress_bar
from train.arena.options import TournamentOptions

WinRateChoice: Any = options_of(
    TournamentOptions, without=("agents", "games", "format", "openings", "plies", "balance", "limit", "sprt")
)


def winrate(
    agent: Annotated[str, Parameter(help="Agent spec.")],
    opponent: Annotated[str, Parameter(help="Opponent spec.")] = "random",
    /,
    *,
    margin: Annotated[float, number("Half-width of the confidence interval at which to stop.")] = 0.02,
    confidence: Annotated[float, number("Confidence level of the interval.")] = 0.95,
    games: Annotated[int, integer("Maximum number of games (even).", "--games", low=2, even=True)] = 100_000,
    plies: Annotated[
        int | None, integer("Opening length in plies (default: 6, on 4x4 2).", "--plies", low=0, high=60)
    ] = None,
    chosen: WinRateChoice = NOTHING,
    workers: ProcessCount = None,
    as_json: Json = False,
) -> None:
    """Estimate the win rate of an agent to a given precision (a draw counts half).

    Example: reversi winrate ten-weight:depth=1 --variant reversed --margin 0.03

    Games are played until the interval is narrow enough. The interval allows for
    this stopping rule: it holds at every number of games at once
    (docs/reference/tournaments.md).
    """
    from reversi_env.kernels.parallel import core_count
    from train.arena.tournament import WinRate, estimate_win_rate

    options = TournamentOptions((agent, opponent), games, plies=plies, **chosen)
    rate_so_far, interrupted = WinRate(), False

    def on_pair(rate: WinRate) -> None:
        nonlocal rate_so_far
        rate_so_far = rate
        low, high = rate.interval
        show(f"{agent} – {opponent}", rate.games, None, f"{rate.rate:.4f} ({low:.4f}–{high:.4f})")

    with progress_bar() as show:
        try:
            estimate_win_rate(
                options, margin=margin, confidence=confidence, workers=workers or core_count(), on_pair=on_pair
            )
        except KeyboardInterrupt:
            interrupted = True
    with output_after_interrupt(interrupted, f"interrupted after {rate_so_far.games} games"):
        if rate_so_far.games and as_json:
            game = attributes(options, "size", "variant", "seed")
            print_json({"agent": agent, "opponent": opponent, **game, "confidence": confidence, **vars(rate_so_far)})
        elif rate_so_far.games:
            low, high = rate_so_far.interval  # multiples of 1 / STEPS: two decimals of a per cent are exact
            interval = f"{low:.2%} to {high:.2%} with {confidence:.0%} confidence"
            ending = "" if rate_so_far.converged else f"; not yet known to within {margin:g}"
            print(f"{agent} wins {rate_so_far.rate:.2%} against {opponent} ({interval})")
            print(f"{rate_so_far.games} games, every opening from both sides{ending}")
