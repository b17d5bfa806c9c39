"""`probe_model`: all probes and interventions of one model, with their tables and plots."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from models.gpt.files import SavedGPT
from reversi_env.errors import extra_libraries
from reversi_env.storage.atomic import write_atomically
from train.charts import line_chart
from train.jobs.logs import Progress, no_progress
from train.sequences.interventions import intervene
from train.sequences.options import ProbeOptions
from train.sequences.probes import Features, held_out_games, train_probes

with extra_libraries():
    import torch

REPORT = "probes.json"
#: Sources with a probe for every layer; the others are baselines with one.
BY_LAYER = ("model", "untrained")
#: Headings of the metrics, and whether they are shares.
METRICS = {"accuracy": ("accuracy", True), "r2": ("R²", False), "mae": ("mean absolute error", False)}
METRICS |= {"pairs": ("pairs of moves ranked right", True)}


def probe_model(
    saved: SavedGPT, options: ProbeOptions, folder: Path | None = None, *, progress: Progress = no_progress
) -> dict[str, Any]:
    """Return all results as JSON values; with a *folder*, also write them and a plot of every label."""
    began = perf_counter()
    if options.device == "cuda":
        torch.set_float32_matmul_precision("high")
    progress("labelling games", 0, options.games + options.test_games)
    games = held_out_games(saved, options, options.games + options.test_games)
    train, test = games.rows(slice(options.games)), games.rows(slice(options.games, None))
    probed = train_probes(Features(saved, options), train, test, options, progress)
    result: dict[str, Any] = {
        "game": f"{saved.vocabulary.size}x{saved.vocabulary.size} {saved.variant}",
        "options": options.as_dict(),
        "positions": int((test.labels["to_move"] != 0).sum()),
        "probes": probed.metrics,
    }
    if options.cases and "relative" in options.labels:
        result["interventions"] = intervene(saved, probed, train, test, options)
    result["seconds"] = round(perf_counter() - began, 1)
    if folder is not None:
        write_atomically(folder / REPORT, (json.dumps(result, indent=1) + "\n").encode())
        for label in options.labels:
            _draw(result, label, folder / f"{label}.svg")
    return result


def tables(result: dict[str, Any]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield title, headings and rows of a table for each metric of each label, and one of the interventions."""
    kinds = list(result["probes"])
    for label, metrics in result["probes"]["linear"]["model"].items():
        for metric, values in metrics.items():
            name, is_share = METRICS[metric]

            def cell(kind: str, source: str, layer: int) -> str:
                values = result["probes"][kind].get(source, {}).get(label, {}).get(metric, [])  # noqa: B023
                return "" if layer >= len(values) else f"{values[layer]:.2%}" if is_share else f"{values[layer]:.3f}"  # noqa: B023

            rows = [[f"layer {n}", *(cell(*one, n) for one in _columns(kinds))] for n in range(len(values))]
            rows += [
                [source, *(cell(kind, source, 0) if of == "model" else "" for kind, of in _columns(kinds))]
                for source in result["probes"]["linear"]
                if source not in BY_LAYER
            ]
            headings = ["", *(f"{kind},\n{source}" for kind, source in _columns(kinds))]
            yield f"{label}: {name}, {result['positions']:,} positions", headings, rows
    if "interventions" in result:
        found = result["interventions"]
        title = f"wrong among the predicted legal moves, mean of {found['cases']:,} cases"
        after = f"after, from layer {found['first_layer']} on, scale {found['scale']:g}"
        rows = [["real board", f"{found['error_unchanged_board']:.3f}"]]
        rows += [["changed board, before", f"{found['error_before']:.3f}"]]
        rows += [[f"changed board, {after}", f"{found['error_after']:.3f}"]]
        yield title, ["", "error"], rows


def _columns(kinds: list[str]) -> list[tuple[str, str]]:
    return [(kind, source) for kind in kinds for source in BY_LAYER]


def _draw(result: dict[str, Any], label: str, path: Path) -> None:
    """Draw the first metric of a label by layer; of accuracy the rest to 100 %."""
    metric = next(iter(result["probes"]["linear"]["model"][label]))
    series: dict[str, list[float]] = {}
    for kind, source in _columns(list(result["probes"])):
        values = result["probes"][kind][source][label][metric]
        name = f"{kind}, {source}" if source != "model" else kind
        series[name] = [100 * (1 - value) for value in values] if metric == "accuracy" else values
    y_label = "wrong squares, %" if metric == "accuracy" else METRICS[metric][0]
    layers = range(len(next(iter(series.values()))))
    figure = line_chart(f"{result['game']}: {label}, by probes", "layer", y_label, list(layers), series)
    replace(figure, name=label).save(path, optional=True)
