"""Weights tuned against exact scores: how much nearer every published heuristic comes, on positions it was not tuned on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reversi_env.options import derive_seed
from studies.options import LabelTuningOptions
from studies.sections import Block, Results, Table, game_name, panel_by_game, report
from train import charts
from train.jobs.logs import Progress, no_progress
from train.tuning.objectives import LabelError
from train.tuning.optimisers import OPTIMISERS
from train.tuning.options import TuneOptions
from train.tuning.run import tune
from train.tuning.space import PUBLISHED


def measure(options: LabelTuningOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Errors before and after, on other positions, of every published heuristic by both optimisers, for several seeds."""
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
    yield (
        "Each report's own weights (γ of 000, six of 001, ten and sixteen of 002, four of 003, three of 004) tuned "
        "from random values against exact scores. Errors are mean absolute ones in "
        "discs, after the scale that suits best, on positions of other games that nothing was chosen by, and of which "
        "none is a mirror image of one that was. Several runs with other seeds: the best and the worst."
    )
    for one in results:
        rows = []
        for entry in one["formulas"]:
            published, ranges = entry["published_on_others"], []
            for method in OPTIMISERS:
                errors = sorted(_errors(entry, method))
                ranges.append(f"{errors[0]:.2f}" if len(errors) == 1 else f"{errors[0]:.2f} – {errors[-1]:.2f}")
            gain = f"{100 * (_best(entry) / published - 1):+.0f} %"
            rows.append([entry["formula"], f"{published:.2f}", *ranges, gain])
        low, high = one["empties"]
        title = f"{game_name(one)}: {one['positions']:,} positions with {low}–{high} empty squares"
        yield Table(title, ["formula", "published", "genetic", "CMA-ES", "best against published"], rows)
    caption = "Error on positions not used for tuning, with the published and with tuned weights; a dot for each run."
    yield panel_by_game("tuning", caption, results, _draw, height=2.5)


def _errors(entry: Mapping[str, Any], method: str) -> list[float]:
    return [run["error_on_others"] for run in entry[method]]


def _best(entry: Mapping[str, Any]) -> float:
    return min(error for method in OPTIMISERS for error in _errors(entry, method))


def _draw(axis: Any, one: Mapping[str, Any]) -> None:
    names = [entry["formula"] for entry in one["formulas"]]
    for height, entry in enumerate(one["formulas"]):
        published = entry["published_on_others"]
        axis.plot([published, _best(entry)], [height, height], color=charts.GREY, linewidth=0.8, zorder=1)
        axis.plot(published, height, "o", color=charts.GREY, markersize=4)
        for method, colour, shift in (("genetic", charts.BLUE, 0.12), ("cma", charts.VERMILION, -0.12)):
            errors = _errors(entry, method)
            axis.plot(errors, [height + shift] * len(errors), "o", color=colour, markersize=3, markeredgewidth=0)
    for colour, name in ((charts.GREY, "published"), (charts.BLUE, "genetic"), (charts.VERMILION, "CMA-ES")):
        axis.plot([], [], "o", color=colour, markersize=4, markeredgewidth=0, label=name)
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel="error on other positions, discs", xlim=(0, None), ylim=(-0.6, len(names) - 0.4))
    axis.tick_params(axis="y", length=0)
    axis.legend(loc="lower left", handlelength=1, labelspacing=0.25)
