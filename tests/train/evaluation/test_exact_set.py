"""Regret in solved endgames: positions, metrics, the file of the curve, the command."""

import csv
import dataclasses
import io
import json

import numpy as np
import pytest
from sb3_contrib import MaskablePPO

from reversi_env import Position, Rules, batch
from reversi_env.envs import ReversiEnv
from reversi_env.errors import TrainError
from search.engine.solver import solve_all_moves
from train.evaluation import endgames
from train.evaluation.endgames import noisy_endgames
from train.evaluation.exact_set import ILLEGAL, ExactSet, Judgement
from train.evaluation.options import EndgameOptions
from train.evaluation.regret_curve import RegretCurve
from train.rl.callbacks import RegretCallback
from train.rl.vec_env import ReversiVecEnv

SMALL = EndgameOptions(6, "normal", 12, (3, 7))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def small(cache):
    return noisy_endgames(SMALL, cache)


def best_actions(positions):
    return positions.values.argmax(axis=1)


@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_values_equal_the_solver_for_every_move(size, variant, tmp_path):
    positions = noisy_endgames(EndgameOptions(size, variant, 3, (2, 6)), tmp_path, threads=1)
    assert len(positions) == 15
    for i in range(len(positions)):
        position = Position(positions.rules, int(positions.own[i]), int(positions.opp[i]))
        expected = solve_all_moves(position)
        result = {positions.rules.name_of(a): int(v) for a, v in enumerate(positions.values[i]) if v != ILLEGAL}
        assert result == expected
        assert len(expected) >= 2
        assert position.empties == positions.empties[i]


def test_positions_are_complete_and_distinct_up_to_symmetry(small):
    counts = np.bincount(small.empties, minlength=8)
    assert counts[3:8].tolist() == [12] * 5
    own, opp, _ = batch.canonical(small.own, small.opp)
    assert len(set(zip(own.tolist(), opp.tolist(), strict=True))) == len(small)


def test_a_small_board_yields_fewer_positions(tmp_path):
    positions = noisy_endgames(EndgameOptions(4, "normal", 60), tmp_path, threads=1)
    counts = np.bincount(positions.empties, minlength=12)
    assert counts[2] == 60
    assert 0 < counts[11] < counts[10] < 60


def test_masks_and_observations_equal_the_environment(small):
    rules = small.rules
    env = ReversiEnv(size=rules.size, opponent=None)
    for i in range(0, len(small), 7):
        position = Position(rules, int(small.own[i]), int(small.opp[i]))
        observation, info = env.reset(options={"start": position})
        assert (observation == small.observations[i]).all()
        assert (info["action_mask"] == small.masks[i]).all()


def test_the_cached_file_is_reused_and_reproducible(small, cache, tmp_path, monkeypatch):
    again = noisy_endgames(SMALL, tmp_path)
    assert again.digest == small.digest
    monkeypatch.setattr("train.evaluation.exact_set.solve_batch", lambda *_, **__: pytest.fail("solved twice"))
    assert noisy_endgames(SMALL, cache).digest == small.digest
    assert dataclasses.replace(SMALL, seed=1).name != SMALL.name


def test_damaged_files_are_refused_and_old_ones_solved_again(small, cache, tmp_path):
    path, whole = tmp_path / f"{SMALL.name}.npz", (cache / f"{SMALL.name}.npz").read_bytes()
    about = {"format": endgames.FORMAT, **SMALL.as_dict()}

    def file_of(**changes):
        with np.load(io.BytesIO(whole)) as saved, io.BytesIO() as data:
            np.savez(data, **{**saved, "about": json.dumps(about | changes)})
            return data.getvalue()

    for content in (b"", b"no zip file", b"PK\x03\x04 cut off", whole[:-40], file_of(seed=5)):
        path.write_bytes(content)
        with pytest.raises(TrainError, match=path.name):
            noisy_endgames(SMALL, tmp_path)
    for changes in ({"digest": "of 0.1"}, {"format": 1}):
        path.write_bytes(file_of(**changes))
        assert noisy_endgames(SMALL, tmp_path).digest == small.digest


@pytest.mark.parametrize("batch_empties", [16, 0], ids=["in a batch", "one by one"])
def test_interrupted_solving_resumes(small, tmp_path, monkeypatch, batch_empties):
    for name, value in (("BATCH_EMPTIES", batch_empties), ("TABLE_MIB", 0.1), ("BATCH_CHUNK", 8)):
        monkeypatch.setattr(endgames, name, value)

    def interrupt(doing, done, total):
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        noisy_endgames(SMALL, tmp_path, threads=1, progress=interrupt)
    reported = []
    again = noisy_endgames(SMALL, tmp_path, threads=1, progress=lambda doing, done, total: reported.append(done))
    assert reported[0] == 16
    assert again.digest == small.digest


@pytest.mark.parametrize(
    "options", [{"empties": (1, 5)}, {"empties": (5, 4)}, {"empties": (2, 19)}, {"size": 4, "empties": (2, 12)}]
)
def test_impossible_ranges_of_empties_are_refused(options):
    with pytest.raises(TrainError, match="empties="):
        EndgameOptions(**options)


def test_regret_of_best_and_worst_moves(small):
    perfect = small.judge(best_actions(small)).overall
    assert (perfect.regret, perfect.optimal, perfect.spoilt) == (0, 1, 0)
    worst_values = np.where(small.values == ILLEGAL, 127, small.values)
    worst = small.judge(worst_values.argmin(axis=1))
    for part in worst.by_empties:
        rows = small.empties == part.empties
        expected = small.values[rows].max(axis=1).astype(int) - worst_values[rows].min(axis=1)
        assert part.regret == pytest.approx(expected.mean())
        assert part.positions == 12
    assert worst.overall.regret > small.random_play().overall.regret > 0


def test_overall_weights_all_numbers_of_empties_equally():
    rules = Rules(4)
    own = np.array([0b11 << 18, 0b11 << 18, 0b11 << 18], np.uint64)
    opp = np.array([1 << 20, 1 << 20, 0b11 << 20], np.uint64)
    values = np.full((3, 16), ILLEGAL, np.int8)
    values[:, 4], values[:, 5] = 2, -2
    positions = ExactSet.of_values(rules, own, opp, values)
    result = positions.judge([4, 5, 5])
    assert [part.regret for part in result.by_empties] == [4.0, 2.0]
    overall = result.overall
    assert (overall.regret, overall.optimal, overall.spoilt, overall.positions) == (3.0, 0.25, 0.75, 3)


def test_expected_regret_is_the_mean_over_the_moves(small):
    weights = np.random.default_rng(0).random(small.masks.shape) * small.masks
    shares = weights[:, :-1] / weights[:, :-1].sum(axis=1, keepdims=True)
    losses = np.where(small.values == ILLEGAL, 0, small.scores[:, None] - small.values.astype(int))
    assert small.judge_probabilities(weights).overall.regret == pytest.approx((shares * losses).sum(axis=1).mean())
    one_hot = np.eye(small.rules.square_count + 1)[best_actions(small)]
    assert small.judge_probabilities(one_hot).overall.regret == 0


def test_illegal_actions_are_refused(small):
    actions = best_actions(small)
    for wrong in (int(np.flatnonzero(~small.masks[5, :-1])[0]), 36, -1, 37):
        actions[5] = wrong
        with pytest.raises(TrainError, match=rf"action {wrong} .*position 5"):
            small.judge(actions)
    for wrong in (actions[:-1], actions.astype(float)):
        with pytest.raises(TrainError, match="actions"):
            small.judge(wrong)
    with pytest.raises(TrainError, match="probabilities"):
        small.judge_probabilities(np.zeros(small.masks.shape))


def test_a_resumed_curve_drops_the_points_after_its_step(small, tmp_path):
    path = tmp_path / "regret.csv"
    curve = RegretCurve(path, small)
    curve.add(0, small.random_play())
    curve.add(100, small.judge(best_actions(small)))
    curve.add(200, small.random_play())
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 3 * (1 + 5)
    assert {row["empties"] for row in rows} == {"all", "3", "4", "5", "6", "7"}
    assert sorted(RegretCurve(path, small).points) == [0, 100, 200]
    resumed = RegretCurve(path, small, resumed_at=100)
    assert list(resumed.points) == [0]
    assert resumed.points[0] == small.random_play()
    resumed.add(150, small.judge(best_actions(small)))
    assert sorted(RegretCurve(path, small).points) == [0, 150]
    resumed.figure().save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_bytes().startswith(b"<?xml")


def test_a_curve_of_other_positions_is_refused(small, tmp_path, cache):
    path = tmp_path / "regret.csv"
    RegretCurve(path, small).add(0, small.random_play())
    other = noisy_endgames(dataclasses.replace(SMALL, seed=3, positions=3), cache)
    with pytest.raises(TrainError, match=path.name):
        RegretCurve(path, other)
    path.write_text("step,empties\n1,2\n")
    with pytest.raises(TrainError, match=path.name):
        RegretCurve(path, small)


def test_regret_command_compares_agents(json_lines, cache, tmp_path):
    table, plot = tmp_path / "figures.csv", tmp_path / "figures.svg"
    arguments = ["greedy", "exact:exact=8", "-n", 6, "-p", 12, "-e", "3-7", "--cache", cache]
    (result,) = json_lines("measure", "regret", *arguments, "--csv", table, "--plot", plot)
    greedy, exact = result["agents"]
    assert greedy["agent"] == "greedy"
    assert exact["regret"] == 0 < greedy["regret"]
    assert result["positions"] == 60
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert float(rows[0]["regret"]) == pytest.approx(greedy["regret"])
    assert plot.exists()
    (again,) = json_lines("measure", "regret", *arguments)
    assert [entry["by_empties"] for entry in again["agents"]] == [entry["by_empties"] for entry in result["agents"]]
    agents = ("random:seed=20", "greedy:seed=10")  # treated as checkpoints, plotted over the numbers in their names
    (result,) = json_lines("measure", "regret", *agents, *arguments[2:], "--curve", "--plot", tmp_path / "c.svg")
    assert [entry["step"] for entry in result["agents"]] == [20, 10]
    assert (tmp_path / "c.svg").exists()


def train_ppo(folder, small, steps, **options):
    """Train MaskablePPO for a few steps with the callback."""
    callback = RegretCallback(small, folder, every=64, **options)
    env = ReversiVecEnv(8, size=6)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=32, n_epochs=1, seed=0, policy_kwargs={"net_arch": [8]})
    return model, callback, model.learn(steps, callback=callback)


@pytest.mark.slow
def test_training_writes_a_curve_and_continues_it(small, tmp_path):
    model, callback, _ = train_ppo(tmp_path, small, 128)
    assert sorted(callback.curve.points) == [0, 64, 128]
    assert b"<svg" in (tmp_path / "regret.svg").read_bytes()
    masks = small.masks
    actions, _ = model.predict(small.observations, action_masks=masks, deterministic=True)
    assert callback.curve.points[128] == small.judge(actions)
    onward = RegretCallback(small, tmp_path, every=64)
    model.learn(64, callback=onward, reset_num_timesteps=False)
    assert sorted(onward.curve.points) == [0, 64, 128, 192]
    assert isinstance(onward.curve.points[64], Judgement)


@pytest.mark.slow
@pytest.mark.parametrize(("observation", "policy"), [("dict", "MultiInputPolicy"), ("flat", "MlpPolicy")])
def test_policies_with_other_observations_have_a_curve(small, tmp_path, observation, policy):
    callback, env = RegretCallback(small, tmp_path, every=16), ReversiVecEnv(2, size=6, observation=observation)
    model = MaskablePPO(policy, env, n_steps=8, batch_size=16, n_epochs=1, policy_kwargs={"net_arch": [8]})
    model.learn(16, callback=callback)
    assert sorted(callback.curve.points) == [0, 16]
