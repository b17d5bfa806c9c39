"""The experiments: what they measure on small boards, what they say of it, and the figures they draw."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from reversi_env import Position
from studies import commands
from studies import document as suite
from studies.game_tree import branching, breadth, nodes, winner
from studies.game_tree.counting import positions_of_games
from studies.reports import maximax, report_000, report_001, report_002, report_003, report_004
from studies.reports import tuning as label_tuning
from studies.sections import Section, with_provenance
from train.charts import Figure

# --- statistics -----------------------------------------------------------------------------------


def test_breadth_under_the_rules_and_under_the_mistake(json_lines):
    """The figures that are to be shown, with the report's beside them."""
    [found] = json_lines("experiment", "breadth", "--size", 8, "--games", 20_000)
    assert found["mean_all"] == pytest.approx(8.518, abs=0.02)
    assert found["mean_middle"] == pytest.approx(10.729, abs=0.03)
    assert found["published"] == {"mean_all": 8.9495, "mean_middle": 11.0839, "games": 40}
    assert 30 <= found["peak_round"] <= 34
    assert {"variant", "size", "games", "by_round"} <= set(found)
    wrong = found["one_line"]
    # forty games are off by a tenth: the report's means are those of the mistaken game, not of the real one
    mean = np.mean(breadth.PUBLISHED)
    assert abs(wrong["mean_all"] - mean) < 0.11 < 0.2 < abs(found["mean_all"] - mean)
    assert abs(wrong["mean_middle"] - 11.0839) < 0.17
    assert found["mean_all_standard_error"] < 0.01


def test_the_published_breadths_have_the_published_means():
    """That over all rounds leaves out rounds 4 and 5, though the report says otherwise."""
    assert np.mean(breadth.PUBLISHED[2:]) == pytest.approx(breadth.PUBLISHED_ALL, abs=1e-4)
    assert np.mean(breadth.PUBLISHED) == pytest.approx(8.7678, abs=1e-4)
    assert np.mean(breadth.PUBLISHED[21:49]) == pytest.approx(breadth.PUBLISHED_MIDDLE, abs=2e-4)
    assert np.mean(nodes.PUBLISHED) == pytest.approx(nodes.PUBLISHED_MEAN, rel=1e-6)


def test_both_variants_have_the_same_breadth_and_small_boards_less():
    normal, reversed_ = (breadth.measure(breadth.BreadthOptions(6, v, 1000)) for v in ("normal", "reversed"))
    assert normal["by_round"] == reversed_["by_round"]
    assert normal["middle_rounds"] == [14, 29]
    small = breadth.measure(breadth.BreadthOptions(4, "normal", 1000))
    assert small["mean_all"] < normal["mean_all"] < 8
    assert small["moves_per_game"] <= 12


def test_the_reports_regression_is_the_other_way_round():
    hypothesis, counted = np.array(list(nodes.PUBLISHED_FIT.values())).T
    slope, shift = np.polyfit(counted, hypothesis, 1)
    assert slope == pytest.approx(nodes.PUBLISHED_SLOPE, abs=1e-5)
    assert shift == pytest.approx(nodes.PUBLISHED_SHIFT, abs=1e-2)


def test_nodes_grow_with_depth_less_than_minimax_would():
    found = nodes.measure(nodes.NodesOptions(4, "normal", "six-factor", games=4))
    assert found["by_round"][0]["round"] == 4
    assert found["by_round"][0]["breadth"] == 4
    plain, ordered = found["fits"]
    counts = [entry["nodes"] for entry in ordered["depths"]]
    assert counts == sorted(counts)
    assert counts[-1] < plain["depths"][-1]["nodes"]
    assert ordered["exponent"] < plain["exponent"]
    assert all(entry["inner"] < entry["nodes"] for entry in ordered["depths"])


@pytest.mark.parametrize("size", [4, 6])
def test_the_winner_of_one_variant_is_the_loser_of_the_other_in_random_play(size):
    normal, reversed_ = (winner.measure(winner.WinnerOptions(size, v, games=400)) for v in ("normal", "reversed"))
    assert normal["draws"] == reversed_["draws"]
    for one, other in zip(normal["by_round"], reversed_["by_round"], strict=True):
        for feature in winner.FEATURES:
            assert one[feature]["winner"] == other[feature]["loser"]
    last = normal["by_round"][-1]
    assert last["discs"]["lead"] > 0
    assert last["discs"]["winner"] + last["discs"]["loser"] == pytest.approx(last["round"])


def test_branching_falls_with_the_refinements(monkeypatch):
    monkeypatch.setattr(branching, "FIT_POSITIONS", 30)
    found = branching.measure(branching.BranchingOptions(6, "normal", games=2, depth=5))
    ways = {way["name"]: way for way in found["ways"]}
    deepest = {name: way["by_depth"][-1]["nodes"] for name, way in ways.items()}
    assert deepest["+ alpha-beta"] < deepest["minimax"] / 3
    assert deepest["+ and a good value first"] < deepest["+ alpha-beta"]
    assert ways["+ alpha-beta"]["growth"] < ways["minimax"]["growth"]
    assert set(ways) == {*(how.name for how in branching.REFINEMENTS), branching.ENGINE_ROW}
    assert "| minimax |" in branching.section([found]).markdown()


# --- the reports ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_greedy_play_and_tuning_have_the_reports_figures_beside_ours(monkeypatch):
    monkeypatch.setattr(report_002, "OTHERS", ("position-stability", "discs"))
    found = report_002.measure(report_002.GreedyOptions(4, games=40, generations=2, population=4, tuning_games=20))
    text = report_002.section([json.loads(json.dumps(found))]).markdown()
    assert "0.853" in text
    assert "10,023" in text
    assert len(found["tunings"]) == 4
    assert len(found["duels"]) == 15
    assert all(len(one["best"]) == 2 for one in found["tunings"])


def has_no_end_within(position, depth):
    """Whether no line of so many plies ends the game."""
    reached = {position}
    for _ in range(depth):
        if any(each.is_over() for each in reached):
            return False
        to_move = [each.play("pass") if each.must_pass() else each for each in reached]
        reached = {each.play(action) for each in to_move for action in each.legal_actions()}
    return not any(each.is_over() for each in reached)


def test_double_alpha_has_the_values_of_alpha_beta():
    """Where no line ends the game, which alpha-beta values by its score and Double-Alpha by its winner."""
    options = maximax.MaximaxOptions(6, "reversed", positions=2, seconds=0.01, games=4, move_seconds=0.001)
    found = maximax.measure(options)
    own, opp, _ = positions_of_games(options.rules, 2, [number * 36 // 64 for number in maximax.MIDDLE], options.seed)
    sampled = [Position(options.rules, *boards) for boards in zip(own.tolist(), opp.tolist(), strict=True)]
    for entry in found["by_depth"][:2]:
        alike = sum(has_no_end_within(position, entry["depth"]) for position in sampled)
        assert 0 < alike <= entry["same_value"] <= entry["positions"] == len(sampled)
    assert all(entry["nodes"] > entry["depth"] for entry in found["by_depth"])
    assert found["by_depth"][-1]["sorted_nodes"] < found["by_depth"][-1]["alpha_beta_nodes"]
    assert found["games"]["games"] == 4
    for entry in found["in_time"]:
        low, high = entry["double_alpha"]["depth_interval"]
        assert low <= entry["double_alpha"]["depth"] <= high
        assert entry["double_alpha"]["depth"] >= 2
    assert "| Double-Alpha |" in maximax.section([found]).markdown()


def test_levels_are_stronger_the_deeper_they_search():
    found = report_001.measure(report_001.LevelOptions(6, "normal", 60))
    scores = {(one["a"], one["b"]): one["points"] for one in found["duels"]}
    assert len(scores) == 6
    assert scores[4, 1] > 0.6
    assert found["random"][-1]["points"] > 0.9


@pytest.mark.slow
def test_gamma_and_tables_are_measured_against_the_same_panel(monkeypatch):
    monkeypatch.setattr(report_000, "PANEL", ("six-factor",))
    found = report_000.measure(report_000.GammaOptions(4, games=8, depth=1))
    assert [entry["gamma"] for entry in found["gammas"]] == list(report_000.GAMMAS)
    chosen = found["gammas"][7]
    adjusted = next(entry for entry in found["tables"] if entry["table"] == "adjusted")
    assert chosen["opponents"] == adjusted["opponents"]  # gamma 0.7 with the adjusted table, twice
    assert "7–13" in report_000.section([found]).markdown()


@pytest.mark.slow
def test_scores_by_ply_are_of_both_colours(monkeypatch):
    monkeypatch.setattr(report_003, "POSITIONAL", "six-factor")
    found = report_003.measure(report_003.PlyOptions(4, games=20, deepest=2))
    assert [entry["ply"] for entry in found["by_ply"]] == [1, 2]
    assert all(entry[colour]["games"] == 20 for entry in found["by_ply"] for colour in ("black", "white"))


def test_pruning_saves_nodes_and_games_have_a_length(monkeypatch):
    monkeypatch.setattr(report_004, "NAME", "six-factor")
    found = report_004.measure(report_004.PruningOptions(4, games=2, depth=4))
    minimax, pruned = (search["by_depth"][3] for search in found["searches"])
    assert pruned["nodes"] < minimax["nodes"]
    assert all(8 < one["length"] <= 12 for one in found["games"])


@pytest.mark.slow
def test_label_tuning_lowers_every_error():
    options = label_tuning.LabelTuningOptions(4, "normal", 150, (4, 6), generations=8, population=6, seeds=1)
    found = label_tuning.measure(options)
    assert {entry["formula"] for entry in found["formulas"]} == set(label_tuning.PUBLISHED)
    assert sum(entry["cma"][0]["error_on_others"] < entry["published_on_others"] for entry in found["formulas"]) >= 4


# --- documents and figures ------------------------------------------------------------------------


def test_a_plot_is_written_and_tables_are_printed(reversi, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "breadth.svg"
    status, out, _ = reversi("experiment", "breadth", "--size", 4, "--games", 200, "--plot", path)
    assert status == 0
    assert "4×4" in out
    assert path.read_text().lstrip().startswith("<?xml")


@pytest.mark.slow
def test_all_settings_of_the_document_can_be_repeated_by_their_commands(reversi, monkeypatch):
    """Each command that the document prints gives an experiment the very options that the document was made with."""
    asked = []
    monkeypatch.setattr(commands, "show", lambda measure, section, options, as_json, plot: asked.append(options))
    for experiment in suite.experiments():
        for options in experiment.runs:
            status, _, err = reversi(*options.command.split()[1:])
            assert status == 0, err
            assert asked.pop() == options


def test_results_of_other_code_or_weights_are_not_put_together(monkeypatch):
    chosen = suite.experiments()[:1]
    here = suite._fingerprint(chosen)
    monkeypatch.setattr(suite, "build", lambda *others: "another")
    assert suite._fingerprint(chosen) != here


def test_an_interrupted_suite_goes_on_and_writes_the_document(tmp_path, monkeypatch):
    measured = []

    def measure(options, progress):
        progress("measuring", 0, 1)
        measured.append((options.name, options.games))
        if options.name == "b" and len(measured) == 2:
            raise KeyboardInterrupt
        return {"name": options.name, "games": options.games}

    def section(found):
        figures = [
            Figure(f"{one['name']}-{one['games']}", "A figure.", lambda figure: figure.subplots()) for one in found
        ]
        return Section(found[0]["name"], found[0]["name"].title(), ["reversi x"], [str(found), *figures])

    study = SimpleNamespace(measure=measure, section=section)
    runs = [suite.Experiment(name, study, (_options(name, 1),)) for name in ("a", "b")]
    monkeypatch.setattr(suite, "experiments", lambda: tuple(runs))
    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        suite.run_all(tmp_path / "docs", machine="a machine", kept_in=kept)
    assert not (tmp_path / "docs" / "experiments.md").exists()
    path = suite.run_all(tmp_path / "docs", machine="another", kept_in=kept)
    assert measured == [("a", 1), ("b", 1), ("b", 1)]  # the first was not measured again
    text = path.read_text()
    assert text.startswith("# Experiments")
    # a section names the machine that measured it, also after an interruption
    assert text.index("## A") < text.index("a machine") < text.index("## B") < text.index("another")
    assert (tmp_path / "docs" / "images" / "experiments" / "b-1.svg").exists()
    assert not any(kept.iterdir())  # nothing is left for the next time
    suite.run_all(tmp_path / "docs", machine="a third", kept_in=kept, only=["a"])
    assert measured[3:] == [("a", 1)]
    assert path.read_text() == text.replace("a machine", "a third")  # the other section stays


def test_runs_of_one_section_that_were_made_apart_are_all_named():
    made = [
        {"machine": "a machine", "date": date, "commit": commit}
        for date, commit in [("2026-11-17", "0123456789-dirty"), ("2026-11-18", None), ("2026-11-18", None)]
    ]
    words, *rest = with_provenance(Section("a", "A", [], ["b"]), made).blocks
    assert rest == ["b"]
    assert words.count("a machine") == 2
    assert "2026-11-17, commit 0123456 with changes" in words


def _options(name, games):
    return SimpleNamespace(name=name, games=games, as_dict=lambda: {"name": name, "games": games})
