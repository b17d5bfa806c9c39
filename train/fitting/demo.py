"""The whole pipeline at small scale, on 6x6 in a few minutes: solve endgames, train stage by stage back to the opening, play.

The steps are those of `train.fitting.bootstrap`. The network then plays every published heuristic at the same depth, and its
static values are compared with theirs on positions outside the training set.
"""

from dataclasses import dataclass
from pathlib import Path

from reversi_env import Rules
from search import agents, evaluators
from search.evaluators.base import file_name
from train.arena.match import PlayerResults, play_match
from train.charts import Figure, line_chart
from train.evaluation.exact_set import ExactSet
from train.fitting.bootstrap import Bootstrap
from train.fitting.options import FitOptions
from train.fitting.stages import GAMES, BootstrapOptions, Stage
from train.jobs.logs import Progress, no_progress
from train.labels import LabelOptions
from train.labels.sampling import sample_block

RULES = Rules(6)
DEPTH = 4
#: Range of empties of the test positions, their number per number of empties, and a seed that no training game has.
EXAM_EMPTIES, EXAM_POSITIONS, EXAM_SEED = (2, 10), 300, 987_654_321


def stages(scale: float = 1.0) -> tuple[Stage, ...]:
    """Return stages: solved endgames up to ten empties, then three steps back of four plies each."""
    games, fit = GAMES | {"play_depth": 1}, FitOptions(epochs=10)

    def stage(low: int, high: int, count: int, depth: int = 0) -> Stage:
        return Stage(low, high, max(50 * (high - low + 1), int(scale * count)), depth, fit=fit, games=games)

    return (stage(1, 10, 100_000), *(stage(low, low + 3, 40_000, 4) for low in (11, 15, 19)))


@dataclass(frozen=True)
class DemoResult:
    """The weights, errors in discs by evaluator and number of empties, and matches by opponent."""

    weights: Path
    errors: dict[str, dict[int, float]]
    matches: dict[str, PlayerResults]


def run(folder: Path, *, scale: float = 1.0, games: int = 40, progress: Progress = no_progress) -> DemoResult:
    """Train in *folder* or resume there, then measure and play; *scale* multiplies the numbers of positions."""
    options = BootstrapOptions(RULES.size, RULES.variant, stages=stages(scale))
    weights = Bootstrap(folder, options, progress=progress).run()
    network = file_name("network", weights)
    opponents = evaluators.published_names()

    progress("playing: comparing static values", 0, 1)
    errors = static_errors([network, *opponents])
    matches = {}
    for opponent in opponents:

        def on_game(result: PlayerResults, opponent: str = opponent) -> None:
            progress(f"playing: against {opponent}", result.games, games)

        progress(f"playing: against {opponent}", 0, games)
        learned, heuristic = agents.make_agent(network, depth=DEPTH), agents.make_agent(opponent, depth=DEPTH)
        matches[opponent] = play_match(learned, heuristic, games, RULES, opening_plies=4, on_game=on_game)
    return DemoResult(weights, errors, matches)


def static_errors(names: list[str]) -> dict[str, dict[int, float]]:
    """Return the mean absolute error in discs of each evaluator's static values, by number of empties; heuristics are rescaled."""
    low, high = EXAM_EMPTIES
    count = EXAM_POSITIONS * (high - low + 1)
    options = LabelOptions(size=RULES.size, count=count, empties=EXAM_EMPTIES, seed=EXAM_SEED, play_depth=1)
    exact_set, result = ExactSet.scored(*sample_block(options, 0), RULES), {}
    for evaluator in map(evaluators.get_evaluator, names):
        errors = exact_set.errors(evaluator).absolute
        result[evaluator.family] = {e: float(errors[exact_set.empties == e].mean()) for e in range(low, high + 1)}
    return result


def chart(result: DemoResult) -> Figure:
    """Return a chart of the errors, the network's first."""
    empties = sorted(next(iter(result.errors.values())))
    series = {name: [errors[e] for e in empties] for name, errors in result.errors.items()}
    return line_chart(
        "Static value against perfect play, 6x6", "empty squares", "mean absolute error, discs", empties, series
    )
