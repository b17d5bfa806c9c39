"""Tuning: spaces, objectives, optimisers, and resumed runs with the same result."""

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import TrainError
from search import evaluators
from search.evaluators.formula import formula_file
from train.tuning.objectives import LabelError, WinRate, rescaled
from train.tuning.optimisers import OPTIMISERS
from train.tuning.options import TuneOptions
from train.tuning.run import tune
from train.tuning.space import space_of

# cma is not imported during collection, because it imports much of scipy, and matplotlib.
pytestmark = pytest.mark.skipif(
    not (find_spec("pymoo") and find_spec("cma")), reason="tuning needs pymoo and cma, of the extra tune"
)

LABELS = LabelError(6, "normal", 300, (4, 7))
SHORT = TuneOptions("six-factor", optimiser="cma", generations=4, population=6)


@pytest.mark.parametrize(
    ("formula", "numbers"),
    [("position-stability", 1), ("six-factor", 6), ("ten-weight", 10), ("sixteen-weight", 16), ("four-attribute", 4)],
)
def test_spaces_contain_the_published_weights(formula, numbers):
    space = space_of(formula)
    assert space.size == numbers
    assert (space.low < space.high).all()
    middle = space.evaluator(np.zeros(numbers))
    assert np.allclose(space.point(middle), 0)
    outside = space.evaluator(np.full(numbers, 7.0))
    assert np.allclose(space.point(outside), 1)
    unchanged = set(space.formula.weights) - set(space.varied)
    assert all(middle.weights[name] == space.formula.weights[name] for name in unchanged)


@pytest.mark.parametrize(
    ("formula", "varied", "message"),
    [
        *(("network", None, "expected a formula"), ("six-factor", ["table", "table"], "table")),
        ("six-factor", [], "six-factor"),
    ],
)
def test_invalid_spaces_are_refused(formula, varied, message):
    with pytest.raises(TrainError, match=message):
        space_of(formula, varied)


def test_win_rate_separates_good_weights_and_is_reproducible():
    objective = WinRate(6, "normal", games=200)
    good = evaluators.get_evaluator("six-factor")
    bad = good.with_weight_vector(-good.weight_vector())
    losses = objective.losses([good, bad])
    assert losses[0] < 0.3 < 0.6 < losses[1]
    assert np.array_equal(objective.losses([bad, good]), losses[::-1])
    assert np.array_equal(replace(objective, threads=1).losses([good, bad]), losses)
    assert not np.array_equal(objective.held_out().losses([good, bad]), losses)
    assert not np.array_equal(objective.losses([good, bad], 1), losses)  # the next generation has other games


def test_rescaling_keeps_the_order_of_values():
    rules = Rules(6)
    own, opp = batch.random_positions(50, 12, rules, seed=1)
    plain = evaluators.get_evaluator("six-factor")
    huge = plain.with_weights(**{name: 1e6 * plain.weights[name] for name in space_of("six-factor").varied})
    values = [rescaled([one], rules)[0].static_values(own, opp, rules) for one in (plain, huge)]
    order = [np.argsort(one, kind="stable") for one in values]
    assert np.array_equal(order[0], order[1])
    assert 5 < values[1].std() < 20


def test_label_error_uses_the_best_scale_and_held_out_positions():
    evaluator = evaluators.get_evaluator("six-factor")
    truth = LABELS.truth()
    values = evaluator.static_values(truth.own, truth.opp, truth.rules)
    error = LABELS.losses([evaluator])[0]
    scales = [np.abs(np.clip(s * values, -36, 36) - truth.scores).mean() for s in np.linspace(0.2, 3, 200)]
    assert error < 1.05 * min(scales)
    assert LABELS.losses([replace(evaluator, scale=7.0)])[0] == pytest.approx(error)
    others = LABELS.held_out().held_out().truth()
    images = [batch.position_hash(*batch.canonical(one.own, one.opp)[:2]) for one in (truth, others)]
    assert not np.isin(images[1], images[0]).any()


def bowl(points):
    return ((points - 0.3) ** 2).sum(axis=1)


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("size", [1, 5])
def test_optimisers_find_the_minimum_and_are_reproducible(name, size):
    candidates = []
    for _ in range(2):
        optimiser, points = OPTIMISERS[name](size, 12, seed=3), []
        for _ in range(25):
            points.append(optimiser.ask())
            assert points[-1].shape[1] == size
            assert (np.abs(points[-1]) <= 1).all()
            optimiser.tell(bowl(points[-1]))
        candidates.append(np.concatenate(points))
    assert np.array_equal(candidates[0], candidates[1])
    assert bowl(candidates[0]).min() < 0.02
    assert not np.array_equal(OPTIMISERS[name](size, 12, seed=4).ask(), candidates[0][:12])


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_an_interrupted_tuning_resumes_to_the_same_result(tmp_path, optimiser, monkeypatch):
    options = replace(SHORT, optimiser=optimiser)
    uninterrupted = tune(options, LABELS, tmp_path / "whole", command="x")
    evaluated = []

    def stop(generation):
        if generation.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(options, LABELS, tmp_path / "cut", command="x", progress=stop)
    log = tmp_path / "cut" / f"six-factor-{optimiser}.jsonl"
    with log.open("a") as stream:
        stream.write('{"generation": 3, "los')  # cut off by a kill
    judge = LabelError.losses
    monkeypatch.setattr(
        LabelError, "losses", lambda self, some, *n: evaluated.append(len(some)) or judge(self, some, *n)
    )
    resumed = tune(options, LABELS, tmp_path / "cut", command="x")
    assert resumed.file.read_bytes() == uninterrupted.file.read_bytes()
    assert evaluated[:2] == [6, 6]  # generations 3 and 4 only; then the finalists
    assert len(evaluated) == 5
    losses = [json.loads(line)["losses"] for line in log.read_text().splitlines()[1:]]
    assert len(losses) == 4
    assert min(map(min, losses)) == pytest.approx(resumed.generations[-1].best)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_tuning_can_start_from_the_published_weights(optimiser, monkeypatch):
    batches, judge, space = [], LabelError.losses, space_of("six-factor")
    monkeypatch.setattr(LabelError, "losses", lambda self, some, *n: batches.append(some) or judge(self, some, *n))
    tune(TuneOptions("six-factor", optimiser=optimiser, generations=1, population=30, from_published=True), LABELS)
    away = np.array([space.point(one) for one in batches[0]]) - space.point(space.formula)
    if optimiser == "genetic":
        assert np.abs(away).max(axis=1).min() < 1e-9
    else:
        assert np.abs(away.mean(axis=0)).mean() < 0.15 < np.abs(away).mean()


@pytest.mark.parametrize(("line", "column"), [(3, "points_sha256"), (2, "losses")])
def test_a_log_of_other_candidates_is_refused(tmp_path, line, column):
    tune(SHORT, LABELS, tmp_path)
    log = tmp_path / "six-factor-cma.jsonl"
    lines = log.read_text().splitlines()
    row = json.loads(lines[line - 1])
    row[column] = "0" if column == "points_sha256" else [row[column][0] + 1, *row[column][1:]]
    lines[line - 1] = json.dumps(row)
    log.write_text("\n".join(lines) + "\n")
    with pytest.raises(TrainError, match=f"line {line}"):
        tune(SHORT, LABELS, tmp_path)


def test_a_refused_tuning_does_not_block_its_folder(tmp_path):
    with pytest.raises(ReversiError, match="'foo'"):
        tune(SHORT, WinRate(6, "normal", ("foo",), games=2), tmp_path)
    log = tmp_path / "six-factor-cma.jsonl"
    assert not log.exists()
    log.write_text('{"tuning": "another, killed before its first generation"}\n')
    tuned = tune(SHORT, LABELS, tmp_path)
    assert tuned.file.read_bytes() == tune(SHORT, LABELS, tmp_path / "whole").file.read_bytes()
    assert len(log.read_text().splitlines()) == 1 + SHORT.generations


@pytest.mark.parametrize("changed", ["formula", "panel"])
def test_changed_weight_files_are_refused_on_resumption(tmp_path, changed):
    files = {name: tmp_path / f"{name}.json" for name in ("formula", "panel")}

    def write(name, weight):
        evaluator = evaluators.get_formula("six-factor").with_weights(corner_weight=weight)
        files[name].write_bytes(formula_file(evaluator, "six-factor", {}, {}))

    def stop(generation):
        raise KeyboardInterrupt

    for name in files:
        write(name, 100)
    names = {name: f"six-factor:weights={path}" for name, path in files.items()}
    run = replace(SHORT, formula=names["formula"]), WinRate(4, "normal", (names["panel"], "random"), games=2), tmp_path
    with pytest.raises(KeyboardInterrupt):
        tune(*run, progress=stop)
    write(changed, 200)
    with pytest.raises(TrainError, match=names[changed]):
        tune(*run)


@pytest.mark.parametrize("formula", ["six-factor", "position-stability", "four-attribute"])
def test_tuning_lowers_the_error_on_held_out_positions(formula):
    tuned = tune(TuneOptions(formula, optimiser="cma", generations=25, population=10), LABELS)
    assert tuned.check < 0.97 * tuned.published_check
    assert tuned.loss <= LABELS.losses([evaluators.get_evaluator(formula)])[0]


@pytest.mark.slow
def test_tune_command_writes_weights_for_other_commands(json_lines, tmp_path):
    options = ["--size", 6, "--variant", "normal", "--objective", "label-error", "--positions", 300, "--empties", "4-7"]
    [output] = json_lines("tune", "six-factor", *options, "--generations", 4, "--population", 6, "--out", tmp_path)
    results = output["results"]
    assert [result["optimiser"] for result in results] == ["genetic", "cma"]
    for result in results:
        assert evaluators.get_evaluator(f"six-factor:weights={result['file']}").weights == {
            name: tuple(value) if isinstance(value, list) else value for name, value in result["weights"].items()
        }
    players = (f"six-factor:depth=1,weights={results[0]['file']}", "random")
    assert json_lines("match", *players, "--games", 4, "--size", 6)[0]["games"] == 4


@pytest.mark.slow
@pytest.mark.parametrize(("size", "variant"), [(4, "normal"), (6, "reversed")])
def test_weights_tuned_by_win_rate_keep_a_positive_scale(tmp_path, size, variant):
    """Scales fitted to exact scores alone could become negative in the reversed game, where few late moves are bad."""
    options = replace(SHORT, formula="mobility", optimiser="cma", generations=1, population=4)
    tuned = tune(options, WinRate(size, variant, ("random",), games=2), tmp_path)
    scale = json.loads(tuned.file.read_text())["scale"][str(size)]
    assert scale > 0


@pytest.mark.parametrize("seed", [3, 2**32 - 1, 2**40])
def test_optimiser_and_global_random_state_are_independent(seed):
    def candidates(others):
        points, optimiser = [], OPTIMISERS["cma"](4, 6, seed)
        for _ in range(3):
            points.append(optimiser.ask())
            np.random.rand(others)
            optimiser.tell((points[-1] ** 2).sum(axis=1))
        return np.array(points)

    np.random.seed(1)
    expected = candidates(0)
    assert (candidates(5) == expected).all()
    np.random.seed(1)
    assert np.random.rand() == pytest.approx(0.417022004702574)
