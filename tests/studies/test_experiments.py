"""Experiments and measurements on small boards, their tables, and the page of all experiments."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from reversi_env.errors import is_installed
from studies import commands, page
from studies.evaluators import depth
from studies.evaluators.depth import DepthOptions
from studies.game_tree import breadth
from studies.reports import report_000, report_001, report_002, report_003, report_004, tuning
from studies.sections import Section, Table, table
from tests.conftest import REPOSITORY
from train.charts import Figure, rendered

MADE_WITH = {"machine": "m", "date": "2026-11-18", "commit": None}


def first_cells(study, *results):
    """Make tables and figures of *results* after a round trip through JSON; return the first cell of every row."""
    section = study.section([json.loads(json.dumps(result)) | MADE_WITH for result in results])
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert all(len(row) == len(one.columns) for one in tables for row in one.rows)
    if is_installed("matplotlib"):
        assert all(rendered(figure.draw).startswith(b"<?xml") for figure in section.figures)
    return [row[0] for one in tables for row in one.rows]


@pytest.mark.slow
def test_breadth_with_and_without_the_mistake_of_report_002(json_lines):
    [result] = json_lines("experiment", "breadth", "--size", 8, "--games", 20_000)
    assert result["mean_all"] == pytest.approx(8.518, abs=0.02)
    assert result["mean_middle"] == pytest.approx(10.729, abs=0.03)
    assert 30 <= result["peak_round"] <= 34
    wrong, mean = result["one_line"], np.mean(breadth.PUBLISHED)
    # The error of forty games is about 0.1: the report's means fit the game with the mistake, not the real one.
    assert abs(wrong["mean_all"] - mean) < 0.11 < 0.2 < abs(result["mean_all"] - mean)
    assert abs(wrong["mean_middle"] - breadth.PUBLISHED_MIDDLE) < 0.17
    assert result["mean_all_standard_error"] < 0.01
    assert first_cells(breadth, result) == ["report 002 (8×8 reversed, 40 games)", "8×8 normal"]


@pytest.mark.slow
def test_report_002_tables_include_tuned_evaluators(monkeypatch):
    monkeypatch.setattr(report_002, "OTHERS", ("position-stability", "discs"))
    result = report_002.measure(report_002.GreedyOptions(4, games=40, generations=2, population=4, tuning_games=20))
    assert "sixteen-weight, cma" in first_cells(report_002, result)
    assert (len(result["tunings"]), len(result["duels"])) == (4, 15)
    assert all(len(one["best"]) == 2 for one in result["tunings"])


@pytest.mark.slow
def test_deeper_levels_are_stronger():
    result = report_001.measure(report_001.LevelOptions(6, "normal", 60))
    scores = {(one["a"], one["b"]): one["points"] for one in result["duels"]}
    assert len(scores) == 6
    assert scores[4, 1] > 0.6
    assert result["random"][-1]["points"] > 0.9
    assert first_cells(report_001, result) == [f"level {level}" for level in (1, 2, 3, 4)]


@pytest.mark.slow
def test_gammas_and_tables_meet_the_same_opponents(monkeypatch):
    monkeypatch.setattr(report_000, "PANEL", ("six-factor",))
    result = report_000.measure(report_000.GammaOptions(4, games=8, depth=1))
    assert [entry["gamma"] for entry in result["gammas"]] == list(report_000.GAMMAS)
    adjusted = next(entry for entry in result["tables"] if entry["table"] == "adjusted")
    assert result["gammas"][7]["opponents"] == adjusted["opponents"]  # gamma 0.7 with the adjusted table, twice
    assert first_cells(report_000, result)[-3:] == ["adjusted", "original", "32"]


@pytest.mark.slow
def test_scores_by_ply_and_nodes_saved_by_pruning(monkeypatch):
    monkeypatch.setattr(report_003, "POSITIONAL", "six-factor")
    result = report_003.measure(report_003.PlyOptions(4, games=20, deepest=2))
    assert [entry["ply"] for entry in result["by_ply"]] == [1, 2]
    assert all(entry[colour]["games"] == 20 for entry in result["by_ply"] for colour in ("black", "white"))
    assert first_cells(report_003, result) == ["1", "2"]
    monkeypatch.setattr(report_004, "NAME", "six-factor")
    result = report_004.measure(report_004.PruningOptions(4, games=2, depth=4))
    minimax, pruned = (search["by_depth"][3] for search in result["searches"])
    assert pruned["nodes"] < minimax["nodes"]
    assert all(8 < one["length"] <= 12 for one in result["games"])
    assert first_cells(report_004, result)[:5] == ["1", "2", "3", "4", "report 004"]


@pytest.mark.slow
def test_label_tuning_lowers_errors():
    options = tuning.LabelTuningOptions(4, "normal", 150, (4, 6), generations=8, population=6, seeds=1)
    result = tuning.measure(options)
    assert first_cells(tuning, result) == list(tuning.PUBLISHED)
    assert sum(entry["cma"][0]["error_on_others"] < entry["published_on_others"] for entry in result["formulas"]) >= 4


@pytest.mark.parametrize(
    ("points", "gained", "at_least"),
    [
        *(({0: 0.8, 1: 0.6, 2: 0.4}, 1.5, None), ({0: 0.5, 1: 0.3}, 0.0, None), ({0: 0.4, -1: 0.6}, -0.5, None)),
        *(({0: 0.2, -1: 0.4, -2: 0.5}, -2.0, None), ({0: 0.9, 1: 0.9, 2: 0.9, 3: 0.8, 4: 0.7}, None, 4)),
        ({0: 0.1, -1: 0.1, -2: 0.1, -3: 0.2, -4: 0.3}, None, -4),
    ],
)
def test_plies_gained_are_interpolated_at_half_the_points(monkeypatch, points, gained, at_least):
    def duel(first, second, rules, games, seed):
        return {"points": points[second.depth - first.depth]}

    monkeypatch.setattr(depth, "duel", duel)
    result = depth.plies_gained("six-factor", DepthOptions(6, names=("six-factor",), baseline="six-factor"))
    assert result["plies_gained"] == (None if gained is None else pytest.approx(gained))
    assert result["at_least"] == at_least
    assert len(result["handicaps"]) == len(points)


@pytest.mark.slow
def test_an_evaluator_gains_no_plies_over_itself():
    options = DepthOptions(6, "normal", ("six-factor",), 2, seconds=0.02, depth=4, baseline="six-factor", games=20)
    results = [depth.measure(options) for _ in range(2)]
    [entry], [again] = (result["evaluators"] for result in results)
    assert entry["nodes_to_depth"] == again["nodes_to_depth"] > 10
    assert entry["handicaps"] == again["handicaps"]
    assert abs(entry["handicaps"][0]["points"] - 0.5) < 0.35
    assert first_cells(depth, *results) == ["six-factor"] * 2


@pytest.mark.slow
def test_commands_write_tables_json_and_plots(reversi, json_lines, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "breadth.svg"
    status, out, _ = reversi("experiment", "breadth", "--size", 4, "--games", 200, "--plot", path)
    assert (status, "4×4" in out) == (0, True)
    assert path.read_text().lstrip().startswith("<?xml")
    arguments = ["--size", 6, "--positions", 2, "--seconds", 0.01, "--depth", 2, "--games", 4]
    [result] = json_lines("measure", "depth", "six-factor", *arguments)
    assert result["evaluators"][0]["evaluator"] == "six-factor"


@pytest.mark.slow
def test_commands_of_the_page_parse_to_their_options(reversi, monkeypatch):
    parsed = []
    monkeypatch.setattr(commands, "show", lambda measure, section, options, as_json, plot: parsed.append(options))
    for experiment in page.experiments():
        for options in experiment.runs:
            status, _, err = reversi(*options.command.split()[1:])
            assert status == 0, err
            assert parsed.pop() == options


def test_results_replace_only_their_part_of_the_page(tmp_path, monkeypatch):
    measured = []

    def measure(options, progress):
        progress("measuring", 0, 1)
        measured.append(options)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return {"command": "reversi", "number": len(measured), "name": options}

    def section(results):
        name = results[0]["name"]
        rows = table("Numbers", results, {"number": "{number}", "machine": "{machine}"})
        return Section(name, f"Title {name}", [], "Measured.", [rows, Figure(name, "A figure.", lambda canvas: None)])

    study = SimpleNamespace(measure=measure, section=section)
    monkeypatch.setattr(page, "experiments", lambda: [page.Experiment(name, study, (name,)) for name in "ab"])
    with pytest.raises(KeyboardInterrupt):
        page.run_all(tmp_path, machine="one")
    path = page.run_all(tmp_path, machine="two", only=["b"])  # the first is in the page already
    assert measured == ["a", "b", "b"]
    by_hand = path.read_text().replace("Title a", "Why?") + "\n**Conclusion.** None.\n"
    path.write_text(by_hand)
    page.run_all(tmp_path, machine="three", only=["a"])
    assert path.read_text() == by_hand.replace("| 1 | one |", "| 4 | three |")
    assert "| 3 | two |" in by_hand
    assert (tmp_path / page.FIGURES / "b.svg").exists()


def test_the_page_has_the_results_of_every_run():
    text = (REPOSITORY / "docs" / "lab" / "experiments.md").read_text()
    for experiment in page.experiments():
        results = text.partition(page.BEGIN.format(experiment.name))[2].partition(page.END)[0]
        assert all(options.command in results for options in experiment.runs)
