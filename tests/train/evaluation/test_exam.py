"""The exam: the sample, the truth and the marks against plain twins; the command, its cache and its plot."""

import json

import numpy as np
import pytest

from models.patterns import read_weights
from play.cli.measure.exam import print_elo_note
from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import TrainError
from reversi_env.notation import read_wthor
from reversi_env.rules import BLACK
from search import evaluators
from search.engine.solver import solve, solve_all_moves, solve_batch
from studies.evaluators import exam_positions
from tests.oracles.strategies import random_moves, wthor_file, wthor_record
from train.evaluation.exact_set import ILLEGAL, ExactSet, least_squares_scale
from train.evaluation.exam import EMPTIES, examine, packaged_endgames, packaged_sets, recorded_sets, wthor_files
from train.evaluation.exam import wthor_sample as sample


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """A folder with two small WTHOR files."""
    folder = tmp_path_factory.mktemp("data") / "wthor"
    folder.mkdir()
    for year in (0, 1):
        records = [wthor_record(random_moves(Position.initial(), 100 * year + seed)) for seed in range(30)]
        (folder / f"WTH_200{year}.wtb").write_bytes(wthor_file(*records))
    return folder


def boards(rows):
    return [(int(own), int(opp)) for own, opp in zip(*rows, strict=True)]


# --- positions ------------------------------------------------------------------------------------


def test_the_sample_is_of_the_games_and_the_same_for_the_same_seed(games):
    files = wthor_files(games)
    everything = {pair for path in files for pair in boards(read_wthor(path).positions(8))}
    one, two, other = (boards(sample(files, 8, 20, seed)) for seed in (1, 1, 2))
    assert one == two != other
    assert len(set(one)) == 20
    assert set(one) <= everything
    assert all((own | opp).bit_count() == 56 for own, opp in one)
    assert boards(sample(files, 8, 10, 1)) == one[:10]


def test_images_of_one_position_count_once(games):
    assert len(sample(wthor_files(games), 60, 1)[0]) == 1
    with pytest.raises(TrainError, match="1 position with 60 empty squares: expected at least 2"):
        sample(wthor_files(games), 60, 2)


def test_games_are_found_by_folder_or_variable(games, monkeypatch, tmp_path):
    assert wthor_files(games) == wthor_files(games.parent)
    monkeypatch.setenv("REVERSI_DATA", str(games.parent))
    assert wthor_files() == wthor_files(games)
    with pytest.raises(TrainError, match=r"no WTHOR files in .*: expected \*.wtb"):
        wthor_files(tmp_path)
    monkeypatch.delenv("REVERSI_DATA")
    with pytest.raises(TrainError, match=r"no games: expected a folder .* --wthor or the variable REVERSI_DATA"):
        wthor_files()


# --- marks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_greedy_moves_are_those_of_plain_python(variant):
    rules, judge = Rules(6, variant), evaluators.get_evaluator("six-factor")
    own, opp = batch.random_positions(150, 31, rules, seed=2)
    kept = ~batch.is_over(own, opp, rules) & (batch.legal_moves(own, opp, rules) != 0)
    own, opp = own[kept], opp[kept]
    assert own.size > 20
    ended, found = 0, ExactSet.scored(own, opp, rules).one_ply_actions(judge).tolist()
    for pair, chosen in zip(boards((own, opp)), found, strict=True):
        position, best = Position(rules, *pair), None
        for action in position.legal_actions():
            child = position.play(action)
            ended += child.is_over()
            value = -child.score() if child.is_over() else -judge.static_value(child)
            if best is None or value > best[0]:
                best = value, action
        assert chosen == best[1]
    assert ended


def test_marks_are_those_of_plain_python(games, tmp_path):
    files, names = wthor_files(games), ("network", "six-factor", "discs")
    papers = recorded_sets(files, Rules(), positions=12, empties=(6, 8), seed=3, folder=tmp_path, threads=1)
    result = examine(names, Rules(), papers)
    assert result.names() == names
    for paper in result.papers:
        positions = [Position(Rules(), *pair) for pair in boards(sample(files, paper.empties, 12, 3))]
        exact = [solve(position).score for position in positions]
        assert (paper.positions, paper.mean_score) == (12, np.mean(np.abs(exact)))
        for name in names:
            judge, mark = evaluators.get_evaluator(name), result.mark(name, paper.empties)
            values = [judge.static_value(position) for position in positions]
            scale = 1.0 if name == "network" else np.dot(values, exact) / np.dot(values, values)
            errors = [abs(min(max(scale * v, -64), 64) - score) for v, score in zip(values, exact, strict=True)]
            assert mark.scale == pytest.approx(scale)
            assert mark.error == pytest.approx(np.mean(errors))
            assert mark.bias == pytest.approx(np.mean(np.clip(scale * np.array(values), -64, 64) - exact))
            regrets = [regret(position, judge) for position in positions]
            assert mark.regret == pytest.approx(np.mean(regrets))
            assert mark.best_moves == pytest.approx(np.mean([r == 0 for r in regrets]))


def test_scores_that_the_files_have_are_taken(games, tmp_path):
    """With 24 empty squares; each is for black in the file, and nothing is known about the moves."""
    passing = [
        wthor_record(random_moves(Position.initial(), seed)) for seed in (508, 655)
    ]  # white is to move with 24 empties
    (tmp_path / "passing.wtb").write_bytes(wthor_file(*passing))
    files, tmp_path = [*wthor_files(games), tmp_path / "passing.wtb"], tmp_path / "solved"
    tmp_path.mkdir()
    assert all(read_wthor(path).header.depth == 24 for path in files)
    (truth,) = recorded_sets(files, Rules(), positions=62, empties=(24,), folder=tmp_path)
    assert not list(tmp_path.iterdir())
    expected = {}
    for path in files:
        file = read_wthor(path)
        for game, black_discs in zip(file.games(), file.theoretical_scores, strict=True):
            position, moves = game.start, iter(game.moves)
            while position.empties > 24 or (position.must_pass() and not position.is_over()):
                position = position.play(next(moves))
            score = 2 * int(black_discs) - 64
            expected[position.own, position.opp] = score if position.turn == BLACK else -score
    found = dict(zip(boards((truth.own, truth.opp)), truth.scores.tolist(), strict=True))
    assert len(found) == 62
    assert found.items() <= expected.items()
    assert set(found.values()) == {-4, 4}
    mark = examine(["network"], Rules(), [truth]).mark("network", 24)
    assert (mark.regret, mark.best_moves) == (None, None)
    assert abs(mark.bias) <= mark.error
    reversed_papers = recorded_sets(files, Rules(8, "reversed"), positions=2, empties=None, folder=tmp_path, threads=1)
    assert int(next(reversed_papers).empties[0]) == 10  # those scores are of the normal game


def regret(position, judge):
    values = {}
    for move in position.legal_moves():
        child = position.play(move)
        values[move] = -child.score() if child.is_over() else -judge.static_value(child)
    exact = solve_all_moves(position)
    return max(exact.values()) - exact[max(values, key=values.get)]


def test_a_scale_is_the_best_one():
    values, scores = np.array([1.0, -2.0, 3.0]), np.array([3.0, -5.0, 8.0])
    scale = least_squares_scale(values, scores)
    assert all(np.sum((s * values - scores) ** 2) > np.sum((scale * values - scores) ** 2) for s in (2.6, 2.8))
    assert least_squares_scale(np.zeros(3), scores) == 0


def test_bad_exams(games):
    files = wthor_files(games)
    with pytest.raises(TrainError, match="recorded games on 6x6: expected 8x8"):
        next(recorded_sets(files, Rules(6)))
    with pytest.raises(TrainError, match="1 position: expected 2 or more"):
        next(recorded_sets(files, Rules(), positions=1))
    with pytest.raises(TrainError, match="11 empty squares: expected some of 10, 12, 14, 16, 18, 20"):
        next(packaged_sets(Rules(), empties=[11]))
    with pytest.raises(TrainError, match="1000 positions with 10 empty squares: expected no more than the package has"):
        next(packaged_sets(Rules(), positions=1000))
    with pytest.raises(TrainError, match="no solved positions for 4x4: expected 6x6 or 8x8"):
        next(packaged_sets(Rules(4)))
    with pytest.raises(ReversiError, match="'disks' is unknown"):
        examine(("disks",), Rules(), [])


def test_the_packages_positions_are_solved_right():
    """Values of a few positions of every game, and how many there are."""
    for rules in (Rules(size, variant) for size in (6, 8) for variant in ("normal", "reversed")):
        truth = packaged_endgames(rules)
        counts = {int(number): int((truth.empties == number).sum()) for number in np.unique(truth.empties)}
        assert list(counts) == list(EMPTIES)
        assert min(counts.values()) >= 100
        images = np.stack(batch.canonical(truth.own, truth.opp)[:2], axis=-1)
        assert len(np.unique(images, axis=0)) == len(truth)
        for row in np.flatnonzero(truth.empties == 10)[:5]:
            position = Position(rules, int(truth.own[row]), int(truth.opp[row]))
            found = {rules.name_of(a): int(v) for a, v in enumerate(truth.values[row]) if v != ILLEGAL}
            assert found == solve_all_moves(position)


def test_damage_to_the_packages_positions_is_the_installations(tmp_path, monkeypatch):
    monkeypatch.setattr("train.evaluation.exam.PACKAGED", tmp_path)
    (tmp_path / "8x8-normal.npz").write_bytes(b"damaged")
    with pytest.raises(TrainError, match=r"8x8-normal.npz' cannot be read .* the installation is damaged: install"):
        packaged_endgames(Rules())


@pytest.mark.slow
def test_the_packages_tournament_positions_are_of_the_database(external_data):
    truth, files = packaged_endgames(Rules()), wthor_files(external_data)
    for number in EMPTIES:
        rows = np.flatnonzero(truth.empties == number)
        own, opp = sample(files, number, len(rows))
        assert np.array_equal(truth.own[rows], own)
        assert np.array_equal(truth.opp[rows], opp)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_prints_tables_json_and_a_plot(games, tmp_path, reversi, json_lines):
    arguments = ("exam", "--wthor", games, "-e", 6, "-e", 8, "-p", 10, "--cache", tmp_path, "--threads", 1)
    status, out, _ = reversi(*arguments, "--plot", tmp_path / "errors.svg")
    assert status == 0
    assert "mean absolute error" in out
    assert "regret" in out
    assert all(name in out for name in ("network", *evaluators.published_names(), "always 0"))
    (result,) = json_lines(*arguments, "--plot", tmp_path / "errors.png")
    assert [paper["empties"] for paper in result["papers"]] == [6, 8]
    assert len(result["marks"]) == 2 * (1 + len(evaluators.published_names()))
    assert json.dumps(result)
    drawn = (tmp_path / "errors.svg").read_text()
    assert all(f"<!-- {words} -->" in drawn for words in ("network", "six-factor", "empty squares", "6", "8"))
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("size", "variant"), [(8, "normal"), (8, "reversed"), (6, "normal"), (6, "reversed")])
def test_the_command_runs_at_once_on_the_packages_positions(size, variant, json_lines, monkeypatch):
    monkeypatch.delenv("REVERSI_DATA", raising=False)
    (result,) = json_lines("exam", "--size", size, "--variant", variant, "--positions", 40)
    assert [paper["positions"] for paper in result["papers"]] == [40, 40, 40, 20, 12, 8]
    network = {mark["empties"]: mark for mark in result["marks"] if mark["evaluator"] == "network"}
    others = [mark for mark in result["marks"] if mark["evaluator"] != "network"]
    for empties in (10, 12, 14):
        assert network[empties]["error"] < min(mark["error"] for mark in others if mark["empties"] == empties)


def test_the_results_go_into_the_record_of_the_weights(games, tmp_path, reversi):
    own = evaluators.get_evaluator("network").file(Rules())
    arguments = ("--wthor", games, "-e", 6, "-e", 8, "-p", 5, "--cache", tmp_path, "--threads", 1)
    status, _, err = reversi("exam", *arguments, "--weights", own, "--annotate", tmp_path / "new")
    assert status == 0
    (path,) = (tmp_path / "new").glob("*.safetensors")
    assert str(path) in err
    record = read_weights(path).record
    marks = {(mark["evaluator"], mark["empties"]) for mark in record["exam"]["marks"]}
    assert marks == {(name, count) for name in ("network", *evaluators.published_names()) for count in (6, 8)}
    assert record | {"exam": None} == read_weights(own).record | {"exam": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plot", "errors.gif"), "plot 'errors.gif': expected a name that ends in .svg, .png or .pdf"),
        (("--wthor", "nowhere"), "no WTHOR files in 'nowhere'"),
        (("--weights", "nowhere"), "weight file 'nowhere' cannot be read"),
        (("--size", "6"), "recorded games on 6x6: expected 8x8"),
    ],
)
def test_the_command_says_what_is_wrong(games, tmp_path, reversi, arguments, message):
    given = {"--wthor": str(games), "--cache": str(tmp_path)} | dict([arguments])
    status, out, err = reversi("exam", *(text for option in given.items() for text in option))
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.slow
def test_the_network_does_better_than_every_heuristic_on_tournament_games(external_data, tmp_path):
    names = ("network", *evaluators.published_names())
    files = wthor_files(external_data)
    result = examine(names, Rules(), recorded_sets(files, Rules(), positions=300, empties=(10, 14), folder=tmp_path))
    for empties in (10, 14):
        network, *others = (result.mark(name, empties) for name in names)
        assert network.error < 9
        assert network.error < min(mark.error for mark in others) - 2
        assert network.regret < min(mark.regret for mark in others) - 1


def test_packaged_positions_can_be_made_again(monkeypatch, tmp_path):
    """Solved positions of the network's own games: one per game, as many as asked for."""
    monkeypatch.setattr(exam_positions, "COUNTS", {5: 4, 6: 2})
    sets = exam_positions.solved_positions(Rules(6, "reversed"), [], tmp_path, 1)
    assert [(len(one), set(one.empties.tolist())) for one in sets] == [(4, {5}), (2, {6})]
    for one in sets:
        assert one.scores.tolist() == solve_batch(one.own, one.opp, one.rules).tolist()


@pytest.mark.parametrize(("cell", "notes"), [("≥ +212", 1), ("-32…+12", 0)])
def test_a_bound_on_elo_is_explained_below_the_table(cell, notes, capsys):
    print_elo_note([("policy", "100.0", "", cell)])
    assert capsys.readouterr().out.count("95 % bounds") == notes
