"""The exam: samples, exact scores and results against plain Python; the command, its cache and its plot."""

import numpy as np
import pytest

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.errors import TrainError
from reversi_env.notation import read_wthor
from reversi_env.rules import BLACK
from search import evaluators
from search.engine.solver import solve, solve_all_moves
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


def board_pairs(rows):
    return [(int(own), int(opp)) for own, opp in zip(*rows, strict=True)]


def test_the_sample_is_from_the_games_and_reproducible(games):
    files = wthor_files(games)
    everything = {pair for path in files for pair in board_pairs(read_wthor(path).positions(8))}
    one, two, other = (board_pairs(sample(files, 8, 20, seed)) for seed in (1, 1, 2))
    assert one == two != other
    assert len(set(one)) == 20
    assert set(one) <= everything
    assert all((own | opp).bit_count() == 56 for own, opp in one)
    assert board_pairs(sample(files, 8, 10, 1)) == one[:10]


def test_symmetric_images_count_once(games):
    assert len(sample(wthor_files(games), 60, 1)[0]) == 1
    with pytest.raises(TrainError, match="60"):
        sample(wthor_files(games), 60, 2)


def test_wthor_files_are_found_by_folder_or_variable(games, monkeypatch, tmp_path):
    assert wthor_files(games) == wthor_files(games.parent)
    monkeypatch.setenv("REVERSI_DATA", str(games.parent))
    assert wthor_files() == wthor_files(games)
    with pytest.raises(TrainError, match=tmp_path.name):
        wthor_files(tmp_path)
    monkeypatch.delenv("REVERSI_DATA")
    with pytest.raises(TrainError, match="REVERSI_DATA"):
        wthor_files()


def one_ply_move(position, judge):
    """Return the first of the moves with the best value after one ply."""
    values = {}
    for move in position.legal_moves():
        child = position.play(move)
        values[move] = -child.score() if child.is_over() else -judge.static_value(child)
    return max(values, key=values.get)


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_one_ply_actions_equal_plain_python(variant):
    rules, judge = Rules(6, variant), evaluators.get_evaluator("six-factor")
    own, opp = batch.random_positions(150, 31, rules, seed=2)
    kept = ~batch.is_over(own, opp, rules) & (batch.legal_moves(own, opp, rules) != 0)
    own, opp = own[kept], opp[kept]
    positions = [Position(rules, *pair) for pair in board_pairs((own, opp))]
    actions = ExactSet.scored(own, opp, rules).one_ply_actions(judge)
    assert [rules.name_of(int(action)) for action in actions] == [one_ply_move(p, judge) for p in positions]
    assert len(positions) > 20
    assert any(position.play(move).is_over() for position in positions for move in position.legal_moves())


def test_results_equal_plain_python(games, tmp_path):
    files, names = wthor_files(games), ("network", "six-factor", "discs")
    exact_sets = recorded_sets(files, Rules(), positions=12, empties=(6, 8), seed=3, folder=tmp_path, threads=1)
    result = examine(names, Rules(), exact_sets)
    assert result.names() == names
    for exam_set in result.sets:
        positions = [Position(Rules(), *pair) for pair in board_pairs(sample(files, exam_set.empties, 12, 3))]
        exact = [solve(position).score for position in positions]
        assert (exam_set.positions, exam_set.mean_score) == (12, np.mean(np.abs(exact)))
        for name in names:
            judge, measured = evaluators.get_evaluator(name), result.result(name, exam_set.empties)
            values = [judge.static_value(position) for position in positions]
            scale = 1.0 if name == "network" else np.dot(values, exact) / np.dot(values, values)
            errors = [abs(min(max(scale * v, -64), 64) - score) for v, score in zip(values, exact, strict=True)]
            assert measured.scale == pytest.approx(scale)
            assert measured.error == pytest.approx(np.mean(errors))
            assert measured.bias == pytest.approx(np.mean(np.clip(scale * np.array(values), -64, 64) - exact))
            values_of_moves = [solve_all_moves(position) for position in positions]
            regrets = [
                max(of_moves.values()) - of_moves[one_ply_move(position, judge)]
                for position, of_moves in zip(positions, values_of_moves, strict=True)
            ]
            assert measured.regret == pytest.approx(np.mean(regrets))
            assert measured.best_moves == pytest.approx(np.mean([r == 0 for r in regrets]))


def test_theoretical_scores_of_the_files_are_used(games, tmp_path):
    # white is to move with 24 empties
    passing = [wthor_record(random_moves(Position.initial(), seed)) for seed in (508, 655)]
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
    scores = dict(zip(board_pairs((truth.own, truth.opp)), truth.scores.tolist(), strict=True))
    assert len(scores) == 62
    assert scores.items() <= expected.items()
    assert set(scores.values()) == {-4, 4}
    measured = examine(["network"], Rules(), [truth]).result("network", 24)
    assert (measured.regret, measured.best_moves) == (None, None)
    assert abs(measured.bias) <= measured.error
    reversed_exact_sets = recorded_sets(
        files, Rules(8, "reversed"), positions=2, empties=None, folder=tmp_path, threads=1
    )
    assert int(next(reversed_exact_sets).empties[0]) == 10  # those scores are of the normal game


def test_scale_is_the_least_squares_fit():
    values, scores = np.array([1.0, -2.0, 3.0]), np.array([3.0, -5.0, 8.0])
    scale = least_squares_scale(values, scores)
    assert all(np.sum((s * values - scores) ** 2) > np.sum((scale * values - scores) ** 2) for s in (2.6, 2.8))
    assert least_squares_scale(np.zeros(3), scores) == 0


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda files: next(packaged_sets(Rules(), empties=[11])), "11"),
        (lambda files: next(packaged_sets(Rules(), positions=1000)), "1000"),
        (lambda files: next(packaged_sets(Rules(4))), "4x4"),
        (lambda files: next(recorded_sets(files, Rules(6), positions=300)), "6x6"),
        (lambda files: next(recorded_sets(files, Rules(), positions=1)), "1 position"),
        (lambda files: examine(("disks",), Rules(), []), "disks"),
    ],
)
def test_missing_positions_and_unknown_evaluators_are_refused(games, call, name):
    with pytest.raises(ReversiError, match=name):
        call(wthor_files(games))


def test_packaged_positions_have_the_solvers_values():
    for rules in (Rules(size, variant) for size in (6, 8) for variant in ("normal", "reversed")):
        truth = packaged_endgames(rules)
        counts = {int(number): int((truth.empties == number).sum()) for number in np.unique(truth.empties)}
        assert list(counts) == list(EMPTIES)
        assert min(counts.values()) >= 100
        images = np.stack(batch.canonical(truth.own, truth.opp)[:2], axis=-1)
        assert len(np.unique(images, axis=0)) == len(truth)
        for row in np.flatnonzero(truth.empties == 10)[:5]:
            position = Position(rules, int(truth.own[row]), int(truth.opp[row]))
            values = {rules.name_of(a): int(v) for a, v in enumerate(truth.values[row]) if v != ILLEGAL}
            assert values == solve_all_moves(position)


def test_exam_command_writes_tables_json_and_a_plot(games, tmp_path, reversi, json_lines):
    arguments = ("exam", "--wthor", games, "-e", 6, "-e", 8, "-p", 10, "--cache", tmp_path, "--threads", 1)
    status, out, _ = reversi(*arguments, "--plot", tmp_path / "errors.svg")
    assert status == 0
    assert all(name in out for name in ("network", *evaluators.published_names()))
    assert "six-factor" in (tmp_path / "errors.svg").read_text()
    (result,) = json_lines(*arguments)
    assert [one["empties"] for one in result["sets"]] == [6, 8]
    assert len(result["results"]) == 2 * (1 + len(evaluators.published_names()))


@pytest.mark.parametrize(("size", "variant"), [(8, "normal"), (8, "reversed"), (6, "normal"), (6, "reversed")])
def test_exam_command_runs_on_packaged_positions(size, variant, json_lines, monkeypatch):
    monkeypatch.delenv("REVERSI_DATA", raising=False)
    (result,) = json_lines("exam", "--size", size, "--variant", variant, "--positions", 40)
    assert [one["positions"] for one in result["sets"]] == [40, 40, 40, 20, 12, 8]
    network = {one["empties"]: one for one in result["results"] if one["evaluator"] == "network"}
    others = [one for one in result["results"] if one["evaluator"] != "network"]
    for empties in (10, 12, 14):
        assert network[empties]["error"] < min(one["error"] for one in others if one["empties"] == empties)


def test_a_missing_folder_is_reported_before_evaluators_are_compiled(reversi, monkeypatch):
    monkeypatch.setattr("train.evaluation.exam.examine", lambda *_: pytest.fail("too late"))
    code, _, err = reversi("exam", "--wthor", "nowhere")
    assert (code, "nowhere" in err) == (2, True)
