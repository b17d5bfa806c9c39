"""Experiments and measurements on small boards, their reports, and the document of all of them."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.patterns.trainable import Trainable
from reversi_env import Position
from search import evaluators
from search.engine.solver import solve_batch
from studies import commands, document
from studies.evaluators import depth, structural
from studies.evaluators.depth import DepthOptions
from studies.evaluators.structural import StructuralOptions
from studies.game_tree import branching, breadth, nodes, winner
from studies.game_tree.counting import positions_of_games
from studies.reports import maximax, report_000, report_001, report_002, report_003, report_004, tuning
from studies.sections import Section, Table, count, print_section, with_error, with_provenance
from studies.training import losses
from studies.training.comparing import Measured, judge, mean_figures, solved_labels, unseen
from train.charts import Figure
from train.fitting.trees import grow_trees

# --- statistics -----------------------------------------------------------------------------------


def test_breadth_under_the_rules_and_under_the_mistake(json_lines):
    [result] = json_lines("experiment", "breadth", "--size", 8, "--games", 20_000)
    assert result["mean_all"] == pytest.approx(8.518, abs=0.02)
    assert result["mean_middle"] == pytest.approx(10.729, abs=0.03)
    assert 30 <= result["peak_round"] <= 34
    wrong, mean = result["one_line"], np.mean(breadth.PUBLISHED)
    # forty games are off by a tenth: the report's means are those of the mistaken game, not of the real one
    assert abs(wrong["mean_all"] - mean) < 0.11 < 0.2 < abs(result["mean_all"] - mean)
    assert abs(wrong["mean_middle"] - breadth.PUBLISHED_MIDDLE) < 0.17
    assert result["mean_all_standard_error"] < 0.01


def test_published_tables_have_the_published_means_and_the_regression_is_the_other_way_round():
    """The mean over all rounds leaves out rounds 4 and 5, though the report says otherwise."""
    assert np.mean(breadth.PUBLISHED[2:]) == pytest.approx(breadth.PUBLISHED_ALL, abs=1e-4)
    assert np.mean(breadth.PUBLISHED[21:49]) == pytest.approx(breadth.PUBLISHED_MIDDLE, abs=2e-4)
    assert np.mean(nodes.PUBLISHED) == pytest.approx(nodes.PUBLISHED_MEAN, rel=1e-6)
    hypothesis, counted = np.array(list(nodes.PUBLISHED_FIT.values())).T
    slope, shift = np.polyfit(counted, hypothesis, 1)
    assert (slope, shift) == pytest.approx((nodes.PUBLISHED_SLOPE, nodes.PUBLISHED_SHIFT), rel=1e-3)


def test_nodes_grow_with_depth_less_than_minimax_would():
    result = nodes.measure(nodes.NodesOptions(4, "normal", "six-factor", games=4))
    assert (result["by_round"][0]["round"], result["by_round"][0]["breadth"]) == (4, 4)
    plain, ordered = result["fits"]
    counts = [entry["nodes"] for entry in ordered["depths"]]
    assert counts == sorted(counts)
    assert counts[-1] < plain["depths"][-1]["nodes"]
    assert ordered["exponent"] < plain["exponent"]
    assert all(entry["inner"] < entry["nodes"] for entry in ordered["depths"])


def test_the_winner_of_one_variant_is_the_loser_of_the_other_in_random_play():
    normal, reversed_ = (winner.measure(winner.WinnerOptions(6, v, games=400)) for v in ("normal", "reversed"))
    assert normal["draws"] == reversed_["draws"]
    for one, other in zip(normal["by_round"], reversed_["by_round"], strict=True):
        for feature in winner.FEATURES:
            assert one[feature]["winner"] == other[feature]["loser"]
    last = normal["by_round"][-1]
    assert last["discs"]["lead"] > 0
    assert last["discs"]["winner"] + last["discs"]["loser"] == pytest.approx(last["round"])


def test_branching_falls_with_the_refinements(monkeypatch):
    monkeypatch.setattr(branching, "FIT_POSITIONS", 30)
    result = branching.measure(branching.BranchingOptions(6, "normal", games=2, depth=5))
    ways = {way["name"]: way for way in result["ways"]}
    deepest = {name: way["by_depth"][-1]["nodes"] for name, way in ways.items()}
    assert deepest["+ alpha-beta"] < deepest["minimax"] / 3
    assert deepest["+ and a good value first"] < deepest["+ alpha-beta"]
    assert ways["+ alpha-beta"]["growth"] < ways["minimax"]["growth"]
    assert set(ways) == {*(refinement.name for refinement in branching.REFINEMENTS), branching.ENGINE_ROW}
    assert "| minimax |" in branching.section([result]).markdown()


# --- the reports ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_greedy_play_and_tuning_stand_beside_the_reports_figures(monkeypatch):
    monkeypatch.setattr(report_002, "OTHERS", ("position-stability", "discs"))
    result = report_002.measure(report_002.GreedyOptions(4, games=40, generations=2, population=4, tuning_games=20))
    text = report_002.section([json.loads(json.dumps(result))]).markdown()
    assert "0.853" in text
    assert (len(result["tunings"]), len(result["duels"])) == (4, 15)
    assert all(len(one["best"]) == 2 for one in result["tunings"])


def has_no_end_within(position, plies):
    """Whether no line of so many plies ends the game."""
    reached = {position}
    for _ in range(plies):
        if any(each.is_over() for each in reached):
            return False
        to_move = [each.play("pass") if each.must_pass() else each for each in reached]
        reached = {each.play(action) for each in to_move for action in each.legal_actions()}
    return not any(each.is_over() for each in reached)


def test_double_alpha_has_the_values_of_alpha_beta():
    """Where no line ends the game, which alpha-beta values by its score and Double-Alpha by its winner."""
    options = maximax.MaximaxOptions(6, "reversed", positions=2, seconds=0.01, games=4, move_seconds=0.001)
    result = maximax.measure(options)
    own, opp, _ = positions_of_games(options.rules, 2, [number * 36 // 64 for number in maximax.MIDDLE], options.seed)
    sampled = [Position(options.rules, *boards) for boards in zip(own.tolist(), opp.tolist(), strict=True)]
    for entry in result["by_depth"][:2]:
        alike = sum(has_no_end_within(position, entry["depth"]) for position in sampled)
        assert 0 < alike <= entry["same_value"] <= entry["positions"] == len(sampled)
    assert result["by_depth"][-1]["sorted_nodes"] < result["by_depth"][-1]["alpha_beta_nodes"]
    assert result["games"]["games"] == 4
    assert "| Double-Alpha |" in maximax.section([result]).markdown()


def test_levels_are_stronger_the_deeper_they_search():
    result = report_001.measure(report_001.LevelOptions(6, "normal", 60))
    scores = {(one["a"], one["b"]): one["points"] for one in result["duels"]}
    assert len(scores) == 6
    assert scores[4, 1] > 0.6
    assert result["random"][-1]["points"] > 0.9


@pytest.mark.slow
def test_gamma_and_tables_are_measured_against_the_same_panel(monkeypatch):
    monkeypatch.setattr(report_000, "PANEL", ("six-factor",))
    result = report_000.measure(report_000.GammaOptions(4, games=8, depth=1))
    assert [entry["gamma"] for entry in result["gammas"]] == list(report_000.GAMMAS)
    adjusted = next(entry for entry in result["tables"] if entry["table"] == "adjusted")
    assert result["gammas"][7]["opponents"] == adjusted["opponents"]  # gamma 0.7 with the adjusted table, twice


def test_scores_by_ply_are_of_both_colours_and_pruning_saves_nodes(monkeypatch):
    monkeypatch.setattr(report_003, "POSITIONAL", "six-factor")
    result = report_003.measure(report_003.PlyOptions(4, games=20, deepest=2))
    assert [entry["ply"] for entry in result["by_ply"]] == [1, 2]
    assert all(entry[colour]["games"] == 20 for entry in result["by_ply"] for colour in ("black", "white"))
    monkeypatch.setattr(report_004, "NAME", "six-factor")
    result = report_004.measure(report_004.PruningOptions(4, games=2, depth=4))
    minimax, pruned = (search["by_depth"][3] for search in result["searches"])
    assert pruned["nodes"] < minimax["nodes"]
    assert all(8 < one["length"] <= 12 for one in result["games"])


@pytest.mark.slow
def test_label_tuning_lowers_every_error():
    options = tuning.LabelTuningOptions(4, "normal", 150, (4, 6), generations=8, population=6, seeds=1)
    result = tuning.measure(options)
    assert {entry["formula"] for entry in result["formulas"]} == set(tuning.PUBLISHED)
    assert sum(entry["cma"][0]["error_on_others"] < entry["published_on_others"] for entry in result["formulas"]) >= 4


# --- performance models ---------------------------------------------------------------------------


class Perfect:
    """The true minimax function, or that plus one disc."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def record(self, rules):
        return np.zeros(1)

    def static_values(self, own, opp, rules):
        return solve_batch(own, opp, rules).astype(float) + self.shift


def test_the_true_function_has_no_loss_and_is_its_own_minimax(monkeypatch):
    perfect_ones, get = {"perfect": Perfect(), "shifted": Perfect(1.0)}, evaluators.get_evaluator
    monkeypatch.setattr(structural.evaluators, "get_evaluator", lambda name: perfect_ones.get(name) or get(name))
    result = structural.measure(StructuralOptions(6, "reversed", ("perfect", "shifted", "six-factor"), 30, (5, 6)))
    perfect, shifted, formula = result["evaluators"]
    assert perfect["loss"] == perfect["node_error"] == perfect["inconsistency"] == 0
    assert formula["loss"] == pytest.approx(formula["node_error"] * result["nodes"] / result["trees"]) != 0
    assert 0 < shifted["node_error"] <= 1  # finished games have no error
    assert shifted["by_ply"][0] == 1
    assert "| six-factor |" in structural.section([result]).markdown()


def test_scaling_helps_a_formula_and_can_be_left_out():
    options = StructuralOptions(6, names=("mobility",), positions=40, empties=(5, 6), plies=1)
    scaled, plain = (structural.measure(one)["evaluators"][0] for one in (options, replace(options, as_is=True)))
    assert scaled["scale"] != plain["scale"] == 1.0
    assert scaled["node_error"] != plain["node_error"]


@pytest.mark.parametrize(
    ("points", "gained", "at_least"),
    [
        ({0: 0.8, 1: 0.6, 2: 0.4}, 1.5, None),
        ({0: 0.5, 1: 0.3}, 0.0, None),
        ({0: 0.4, -1: 0.6}, -0.5, None),
        ({0: 0.2, -1: 0.4, -2: 0.5}, -2.0, None),
        ({0: 0.9, 1: 0.9, 2: 0.9, 3: 0.8, 4: 0.7}, None, 4),
        ({0: 0.1, -1: 0.1, -2: 0.1, -3: 0.2, -4: 0.3}, None, -4),
    ],
)
def test_plies_gained_are_where_the_points_cross_one_half(monkeypatch, points, gained, at_least):
    def duel(first, second, rules, games, seed):
        return {"points": points[second.depth - first.depth]}

    monkeypatch.setattr(depth, "duel", duel)
    result = depth.plies_gained("six-factor", DepthOptions(6, names=("six-factor",), baseline="six-factor"))
    assert result["plies_gained"] == (None if gained is None else pytest.approx(gained))
    assert result["at_least"] == at_least
    assert len(result["handicaps"]) == len(points)


def test_depth_is_measured_and_an_evaluator_gains_nothing_over_itself():
    options = DepthOptions(6, "normal", ("six-factor",), 2, seconds=0.02, depth=4, baseline="six-factor", games=20)
    [entry], [again] = (depth.measure(options)["evaluators"] for _ in range(2))
    assert entry["nodes_to_depth"] == again["nodes_to_depth"] > 10
    assert entry["handicaps"] == again["handicaps"]
    assert abs(entry["handicaps"][0]["points"] - 0.5) < 0.35


# --- comparisons of trainings ---------------------------------------------------------------------

TINY = losses.LossesOptions(positions=200, exam=100, epochs=2, batch_size=256, seeds=2, empties=(4, 6))


def test_every_way_is_measured_with_every_seed():
    ways = losses.measure(TINY)["ways"]
    assert len(ways) == len({way["name"] for way in ways}) == 7
    for way in ways:
        assert len(way["seeds"]) == 2
        assert all(0 < one["error"] < 40 and 0 <= one["regret"] < 40 for one in way["seeds"])
    measured = [Measured(1.0, 0.0), Measured(3.0, 0.5)]
    assert {"error": 2.0, "error_standard_error": 1.0, "regret": 0.25}.items() <= mean_figures(measured).items()
    assert mean_figures(measured[:1])["regret_standard_error"] is None


def test_an_untrained_network_and_the_solver_are_judged_on_positions_that_were_not_seen():
    exam = grow_trees(solved_labels(TINY, 7, 100))
    untrained = judge(Trainable("linear", 6), exam)
    assert untrained.error == pytest.approx(np.abs(exam.score[exam.roots]).mean())
    assert untrained.regret > 0

    class Solver(torch.nn.Module):
        def forward(self, own, opp):
            playing = ~exam.finished
            values = np.zeros(exam.nodes, np.float32)
            values[playing] = solve_batch(exam.own[playing], exam.opp[playing], exam.rules)
            return torch.from_numpy(values)

    assert judge(Solver(), exam) == Measured(0.0, 0.0)
    assert not len(unseen(exam, exam))
    assert 75 < len(unseen(grow_trees(solved_labels(TINY, 2, 100)), exam)) <= 100


# --- reports and their document -------------------------------------------------------------------


def test_commands_print_tables_and_json_and_write_plots(reversi, json_lines, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "breadth.svg"
    status, out, _ = reversi("experiment", "breadth", "--size", 4, "--games", 200, "--plot", path)
    assert (status, "4×4" in out) == (0, True)
    assert path.read_text().lstrip().startswith("<?xml")
    arguments = ["--size", 6, "--positions", 10, "--empties", "5-6", "--plies", 1]
    [result] = json_lines("measure", "structural", "six-factor", *arguments)
    assert result["evaluators"][0]["evaluator"] == "six-factor"
    options = "--positions 60 --exam 40 --epochs 1 --seeds 1 --empties 3-4"
    [result] = json_lines("experiment", "networks", *options.split())
    assert [way["name"] for way in result["ways"]] == ["linear", "deep"]
    assert result["command"].endswith("--variant normal --empties 3-4 --positions 60 --exam 40 --seeds 1 --epochs 1")


def test_a_section_as_markdown():
    table = Table("A table", ["name", "a|b"], [["x", "1"], ["y", "2"]])
    section = Section("n", "Title", ["reversi x"], ["Words.", table, Figure("f", "A line.", lambda figure: None)])
    assert section.markdown("i") == (
        "## Title\n\n```bash\nreversi x\n```\n\nWords.\n\n*A table*\n\n| name | a\\|b |\n|---|---:|\n| x | 1 |\n| y | 2 |\n\n"
        "![A line.](i/f.svg)\n\n*A line.*"
    )
    assert with_error(1.23456, 0.01, 2) == "1.23 ± 0.02"  # 1.96 standard errors
    assert with_error(1.2, float("nan"), 1) == "1.2"
    assert (count(1234.4), count(12.34)) == ("1,234", "12.3")


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("cell", ["100.0 ± 12.5 %", "10.844 ± 0.079", "8.73, 8.7 ± 0.05"])
def test_no_figure_is_torn_or_cut_off(capsys, monkeypatch, columns, cell):
    monkeypatch.setenv("COLUMNS", str(columns))
    headings = ["game", "against random", "level 1", "", "discs against random"]
    rows = [["report 002 (8×8 reversed, 40 games)", *[cell] * 4], ["8×8", "1, 2", *[""] * 3]]
    print_section(Section("x", "x", [], ["words", Table("title", headings, rows)]))
    out = capsys.readouterr().out
    assert out.count(cell) == 4
    assert columns < 80 or max(map(len, out.splitlines())) <= columns


@pytest.mark.slow
def test_all_settings_of_the_document_can_be_repeated_by_their_commands(reversi, monkeypatch):
    """Each command that the document prints gives an experiment the very options that the document was made with."""
    asked = []
    monkeypatch.setattr(commands, "show", lambda measure, section, options, as_json, plot: asked.append(options))
    for experiment in document.experiments():
        for options in experiment.runs:
            status, _, err = reversi(*options.command.split()[1:])
            assert status == 0, err
            assert asked.pop() == options


def test_results_of_other_code_or_weights_are_not_put_together(monkeypatch):
    chosen = document.experiments()[:1]
    fingerprint = document._fingerprint(chosen)
    monkeypatch.setattr(document, "build_id", lambda *others: "another")
    assert document._fingerprint(chosen) != fingerprint


def test_an_interrupted_document_resumes(tmp_path, monkeypatch):
    measured = []

    def measure(options, progress):
        progress("measuring", 0, 1)
        measured.append(options.name)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return {"name": options.name}

    def section(results):
        figures = [Figure(one["name"], "A figure.", lambda figure: figure.subplots()) for one in results]
        return Section(results[0]["name"], results[0]["name"].title(), ["reversi x"], [str(results), *figures])

    study = SimpleNamespace(measure=measure, section=section)
    options = [SimpleNamespace(name=name, as_dict=lambda name=name: {"name": name}) for name in ("a", "b")]
    runs = tuple(document.Experiment(one.name, study, (one,)) for one in options)
    monkeypatch.setattr(document, "experiments", lambda: runs)
    cache = tmp_path / "cache"
    with pytest.raises(KeyboardInterrupt):
        document.run_all(tmp_path / "docs", machine="a machine", kept_in=cache)
    assert not (tmp_path / "docs" / "experiments.md").exists()
    path = document.run_all(tmp_path / "docs", machine="another", kept_in=cache)
    assert measured == ["a", "b", "b"]  # the first was not measured again
    text = path.read_text()
    # a section names the machine that measured it, also after an interruption
    assert text.index("## A") < text.index("a machine") < text.index("## B") < text.index("another")
    assert (tmp_path / "docs" / document.FIGURES / "b.svg").exists()
    assert not any(cache.iterdir())  # nothing is left for the next time
    document.run_all(tmp_path / "docs", machine="a third", kept_in=cache, only=["a"])
    assert path.read_text() == text.replace("a machine", "a third")  # the other section stays


def test_runs_of_one_section_that_were_made_apart_are_all_named():
    runs = [
        {"machine": "a machine", "date": date, "commit": commit}
        for date, commit in [("2026-11-17", "0123456789-dirty"), ("2026-11-18", None), ("2026-11-18", None)]
    ]
    words, *rest = with_provenance(Section("a", "A", [], ["b"]), runs).blocks
    assert rest == ["b"]
    assert words.count("a machine") == 2
    assert "2026-11-17, commit 0123456 with changes" in words
