"""Weights tuned against exact scores: how much nearer every published heuristic comes, on positions it was not tuned on."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

from reversi_env.options import derive_seed
from studies.figures import DOTS, Panel, Series, figure
from studies.options import LabelTuningOptions
from studies.sections import Block, Cell, Results, Row, game_name, report, table
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import LabelError
from train.tuning.optimisers import OPTIMISERS
from train.tuning.options import TuneOptions
from train.tuning.run import tune
from train.tuning.space import PUBLISHED


def measure(options: LabelTuningOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Return errors before and after, on held-out positions, of every published heuristic by both optimisers and several seeds."""
    objective = LabelError(options.size, options.variant, options.positions, options.empties, options.seed)
    progress("solving positions", 0, 1)
    objective.truth()
    steps, done, formulas = len(PUBLISHED) * len(OPTIMISERS) * options.seeds, 0, []
    for formula in PUBLISHED:
        entry: dict[str, Any] = {"formula": formula, "weights": 0}
        for method in OPTIMISERS:
            runs = []
            for seed in (derive_seed(options.seed, number) % (1 << 32) for number in range(options.seeds)):
                progress(f"tuning {formula}, {method}", done, steps)
                chosen = TuneOptions(formula, None, method, options.generations, options.population, seed)
                tuned = tune(chosen, objective)
                runs.append(
                    {"seed": seed, "error": tuned.loss, "error_on_others": tuned.check, "seconds": tuned.seconds}
                )
                entry["published_on_others"] = tuned.published_check
                done += 1
            entry[method] = runs
        formulas.append(entry)
    return options.measured(positions=options.positions, empties=list(options.empties), formulas=formulas)


@report("tuning")
def section(results: Results) -> Iterator[Block]:
    """Tuning against exact scores."""
    columns: dict[str, Cell] = {
        "formula": "{formula}",
        "published": "{published_on_others:.2f}",
        "genetic": partial(_range, "genetic"),
        "CMA-ES": partial(_range, "cma"),
        "best against published": lambda entry: f"{100 * (_best(entry) / entry['published_on_others'] - 1):+.0f} %",
    }
    for one in results:
        low, high = one["empties"]
        title = f"{game_name(one)}: {one['positions']:,} positions with {low}–{high} empty squares"
        yield table(title, one["formulas"], columns)
    caption = "Error on positions not used for tuning, with the published and with tuned weights; a dot for each run."
    yield figure("tuning", caption, [_panel(one) for one in results], 2.8)


def _errors(method: str, entry: Row) -> list[float]:
    return sorted(run["error_on_others"] for run in entry[method])


def _range(method: str, entry: Row) -> str:
    errors = _errors(method, entry)
    return f"{errors[0]:.2f}" if len(errors) == 1 else f"{errors[0]:.2f} – {errors[-1]:.2f}"


def _best(entry: Row) -> float:
    return min(_errors(method, entry)[0] for method in OPTIMISERS)


def _panel(one: Row) -> Panel:
    names, published = ([entry[key] for entry in one["formulas"]] for key in ("formula", "published_on_others"))
    series = [Series("published", published, range(len(names)), style=DOTS)]
    for method, label in (("genetic", "genetic"), ("cma", "CMA-ES")):
        errors = [_errors(method, entry) for entry in one["formulas"]]
        rows = [row for row, some in enumerate(errors) for _ in some]
        series.append(Series(label, [*chain(*errors)], rows, style=DOTS | {"markersize": 2.5}))
    return Panel(game_name(one), series, {"xlabel": "error on other positions, discs", "xlim": (0, None)}, rows=names)
