"""MaskablePPO runs: their environment, opponents and ladder, and the folder of a run that is killed."""

import csv
import json
from importlib.util import find_spec

import numpy as np
import pytest
from sb3_contrib import MaskablePPO

from models.policy.files import read_policy
from play.cli.training.ppo import show_training
from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import TrainError
from tests.oracles.games import same_step
from tests.oracles.jobs import results
from train.arena.batch import EvaluatorPlayer, RandomPlayer, play_games
from train.arena.network_players import BatchPolicyPlayer
from train.evaluation.ladder import Ladder, default_baselines, ladder_figure
from train.jobs.checkpoints import save_checkpoint
from train.jobs.run import CHECKPOINT, Run, stored_options
from train.rl import maskable_ppo, policy_run
from train.rl.board_policy import BoardExtractor, BoardPolicy
from train.rl.maskable_ppo import MaskablePpoRun
from train.rl.opponents import Baseline, SelfPlayPool, discs_to_boards
from train.rl.options import BASELINES, preset
from train.rl.tensor_ppo import TensorPPO
from train.rl.training_env import TrainingEnv
from train.rl.vec_env import ReversiVecEnv

from .conftest import killed_until_it_ends


def pool_of(rules, specs=("random", "greedy"), baseline_share=0.5, active_snapshots=3):
    return SelfPlayPool(specs, rules, baseline_share, active_snapshots, seed=0)


# --- games ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_transformed_games_are_games(tiny_net, variant):
    rules, pool = Rules(4, variant), pool_of(Rules(4, variant))
    pool.add(tiny_net())
    env = TrainingEnv(48, pool, plies=2, seed=1)
    observations, ended = env.reset(), 0
    rng = np.random.default_rng(0)
    for _ in range(40):
        masks = env.action_masks()
        assert np.array_equal(masks, observations["action_mask"] != 0)
        assert np.array_equal(np.stack(env.env_method("action_masks")), masks)
        legal = batch.legal_moves(*discs_to_boards(observations["observation"], rules), rules)
        rows = np.array([[int(board) >> sq & 1 for sq in rules.squares()] for board in legal], bool)
        assert np.array_equal(masks[:, :-1], rows)
        actions = (rng.random(masks.shape) * masks).argmax(1)
        observations, rewards, dones, infos = env.step(actions)
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"]
            own, opp = discs_to_boards(last["observation"][None], rules)
            assert rewards[i] == np.sign(int(batch.final_scores(own, opp, rules)[0]))
            ended += 1
    assert ended > 100


def test_openings_differ_in_length():
    env = TrainingEnv(256, pool_of(Rules(6)), plies=6, seed=1)
    discs = set()
    env.reset()
    for _ in range(150):
        observations, _, dones, _ = env.step(env.action_masks().argmax(1))
        discs |= set(observations["observation"][dones].sum((1, 2, 3)).tolist())
    assert set(range(4, 11)) <= discs


def test_games_continue_from_their_state(tiny_net):
    def steps(env, count):
        return [env.step(env.action_masks().argmax(1))[:2] for _ in range(count)]

    pools = [pool_of(Rules(4), ("random", "six-factor:depth=1")) for _ in range(2)]
    env, other = (TrainingEnv(16, pool, plies=2, seed=4) for pool in pools)
    pools[0].add(tiny_net())
    env.reset()
    steps(env, 7)
    pools[1].set_state(pools[0].state(), [tiny_net()])
    other.set_state(env.state())
    assert all(same_step(*pair) for pair in zip(steps(env, 9), steps(other, 9), strict=True))


# --- opponents --------------------------------------------------------------------------------------


def test_the_pool_has_the_latest_snapshots_and_some_of_all_earlier_ones(tiny_net):
    pool = pool_of(Rules(4), active_snapshots=4)
    assert pool.opponents.records()["cumulative_share"].tolist() == [0.5, 1.0]
    for number in range(12):
        pool.add(tiny_net(seed=number))
        assert pool.active[-1] == number
        assert len(pool.active) == len(set(pool.active)) == min(4, number + 1)
    assert {10, 11} <= set(pool.active)
    assert min(pool.active) < 10
    shares = np.diff(pool.opponents.records()["cumulative_share"], prepend=0)
    assert np.allclose(shares[:2], 0.25)
    assert np.allclose(shares[2:][pool.active], 0.125)


def test_baselines_by_spec_pass_where_they_must():
    pool = pool_of(Rules(6), ("greedy", "six-factor:depth=2", "greedy-invincible"))
    assert pool.opponents[0] == "greedy"
    assert [type(pool.opponents[number]) for number in (1, 2)] == [Baseline, Baseline]
    with pytest.raises(ValueError, match="six-facto"):
        Baseline("six-facto", Rules(6), 0)
    masks, discs = np.zeros((2, 17), np.int8), np.zeros((2, 2, 4, 4), np.int8)
    masks[0, -1] = masks[1, 7] = 1
    discs[1, 0, 1, 1], discs[1, 1, 1, 2] = 1, 1
    assert Baseline("random", Rules(4), 0)(discs, masks).tolist() == [16, 7]


# --- the ladder -------------------------------------------------------------------------------------


def test_the_ladder_measures_in_elo_above_random():
    rules = Rules(6)
    ladder = Ladder(rules, 200, seed=1, baselines=("random", "greedy"))
    again = ladder.measure(RandomPlayer(rules))
    assert again.low < 0 < again.high
    strong = ladder.measure(EvaluatorPlayer("six-factor", rules, 2, threads=1))
    assert strong.elo > 200
    assert strong.scores["greedy"].games == 200
    assert strong.as_dict()["rungs"]["random"]["wins"] == strong.scores["random"].wins
    assert "network:depth=2" in default_baselines(rules)
    assert "network:depth=2" not in default_baselines(Rules(4))
    with pytest.raises(ReversiError, match="greedy-invincible"):
        Ladder(rules, 2, baselines=("greedy-invincible",))


def test_no_pairing_of_the_ladder_repeats_the_games_of_another(monkeypatch):
    """A random policy plays other games against greedy than the baseline ``random`` does."""
    seen = []

    def spy(*args, **kwargs):
        seen.append(play_games(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr("train.evaluation.ladder.play_games", spy)
    Ladder(Rules(6), 40, baselines=("random", "greedy")).measure(RandomPlayer(Rules(6)))
    between_baselines, _, of_the_policy = seen
    assert not np.array_equal(between_baselines.discs, of_the_policy.discs)


def test_an_elo_that_is_not_determined_is_no_number(small_training, tmp_path, capsys):
    """After games that were all won: None in JSON, nothing in the figure, a bound in tables and progress lines."""
    rules, notes = Rules(6), []
    standing = Ladder(rules, 4, baselines=("random",)).measure(EvaluatorPlayer("six-factor", rules, 4, threads=1))
    row = {"steps": 256, "seconds": 1.0, **json.loads(json.dumps(standing.as_dict(), allow_nan=False))}
    assert (row["elo"], row["elo_low"], row["elo_high"]) == (None, standing.low, None)
    ladder_figure([row, row | {"elo": 2.0, "elo_low": 1.0, "elo_high": 3.0}], "").save(tmp_path / "curve.svg")
    run = policy_run.PolicyRun(tmp_path, small_training(), progress=lambda *args: notes.append(args[-1]))
    run.evaluations = [row]
    run.report("learning")
    show_training(run, 1.0, False)
    bound = f"≥ {standing.low:+.0f}"
    assert bound in capsys.readouterr().out
    assert bound in notes[0]


# --- runs -------------------------------------------------------------------------------------------


def steps_of_checkpoints(folder, options, *, before):
    checkpoints = killed_until_it_ends(lambda: MaskablePpoRun(folder, options).run(), folder, before=before)
    return [checkpoint["model"]["counters"]["num_timesteps"] for checkpoint in checkpoints]


@pytest.mark.usefixtures("quick", "no_litter")
def test_killed_at_every_checkpoint_it_ends_as_if_nothing_had_happened(tmp_path, small_training, monkeypatch):
    """Also at the first, before any step. More than one snapshot is due at a time, and one opponent has a generator of its own."""
    pace = {"total_timesteps": 384, "num_steps": 4, "snapshot_every": 50, "eval_every": 200, "eval_games": 2}
    options = small_training(opponents=("random", "greedy-invincible:exact=2"), **pace)
    MaskablePpoRun(tmp_path / "whole", options).run()
    monkeypatch.setattr(policy_run, "CHECKPOINT_SECONDS", 0.0)
    assert steps_of_checkpoints(tmp_path / "after", options, before=False) == [0, 128, 256, 384]
    assert steps_of_checkpoints(tmp_path / "before", options, before=True) == [0, 128, 256]
    whole = results(tmp_path / "whole")
    names = ("policy.safetensors", "model.zip", "regret.csv", "log.csv", "evaluations.csv", CHECKPOINT)
    assert {*names, "pool/00001.safetensors"} < set(whole)
    for killed in (results(tmp_path / name) for name in ("after", "before")):
        assert [name for name in whole.keys() | killed.keys() if killed.get(name) != whole.get(name)] == []


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "tensor-ppo"])
def test_an_update_is_played_to_its_end_and_the_progress_bar_knows(tmp_path, small_training, algorithm):
    totals, kind = set(), {"ppo": MaskablePpoRun, "tensor-ppo": TensorPPO}[algorithm]
    options = small_training(algorithm=algorithm, total_timesteps=100, opponents=BASELINES)
    run = kind(tmp_path, options, regret=False, progress=lambda doing, done, total, note: totals.add(total))
    run.run()
    assert run.steps == options.rounded_timesteps == 256
    assert totals == {256}


@pytest.mark.slow
def test_a_finished_run_continues_with_more_steps(tmp_path, small_training):
    seldom = {"eval_every": 4096}  # at the beginning and at the end: every evaluation is drawn
    MaskablePpoRun(tmp_path, small_training(**seldom), regret=False).run()
    written = results(tmp_path)
    MaskablePpoRun(tmp_path, small_training(**seldom), regret=False).run()
    assert results(tmp_path) == written
    more = MaskablePpoRun(tmp_path, small_training(total_timesteps=4096, **seldom), regret=False)
    more.run()
    assert more.steps == 4096
    assert stored_options(tmp_path, type(more.options)).total_timesteps == 4096
    rows = list(csv.DictReader((tmp_path / "evaluations.csv").read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == sorted({int(row["steps"]) for row in rows})
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")
    assert any((tmp_path / "tensorboard").iterdir()) == (find_spec("tensorboard") is not None)
    record = read_policy(tmp_path / "policy.safetensors").record
    assert (record["steps"], record["options"]["size"]) == (4096, 4)


@pytest.mark.usefixtures("quick")
def test_what_a_run_cannot_resume_from_is_refused(tmp_path, small_training):
    """Opponents with other weights, another device, a damaged checkpoint."""
    options = small_training(opponents=("random", "cell-utility:depth=1"))
    folder = tmp_path / "run"
    for path in (tmp_path / "weights", folder):
        path.mkdir()
    Run(tmp_path / "weights", options, {"cell-utility_sha256": "0"}).store_or_check_options()
    with pytest.raises(TrainError, match="cell-utility"):
        MaskablePpoRun(tmp_path / "weights", options, regret=False).run()
    Run(folder, small_training()).store_or_check_options()
    save_checkpoint(folder / CHECKPOINT, {"told": {"device": "cuda"}})
    with pytest.raises(TrainError, match="cuda"):
        MaskablePpoRun(folder, small_training(), regret=False).run()
    save_checkpoint(folder / CHECKPOINT, {"net": {"weights": np.zeros(999)}})
    flipped = bytearray((folder / CHECKPOINT).read_bytes())
    flipped[2000] ^= 1
    for content in (b"damaged", flipped):
        (folder / CHECKPOINT).write_bytes(content)
        with pytest.raises(TrainError, match=CHECKPOINT):
            MaskablePpoRun(folder, small_training(), regret=False).run()


@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("algorithm", ["ppo", "tensor-ppo"])
def test_presets_are_options(size, algorithm):
    options = preset(size, "reversed", algorithm)
    assert type(options).from_dict(json.loads(json.dumps(options.as_dict()))) == options


def test_the_learning_rate_decays_to_a_tenth_and_no_further():
    """A last rollout goes beyond the total number of steps."""
    assert [maskable_ppo._decayed_rate(0.5, left) for left in (1.0, 0.0, -3.0)] == [0.5, 0.05, 0.05]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"size": 5}, "5"),
        ({"algorithm": "a2c"}, "algorithm="),
        ({"opening_plies": 9}, "opening_plies="),
        ({"num_envs": 3, "num_steps": 11, "batch_size": 32}, "batch_size="),
        ({"num_envs": 2, "num_steps": 2, "batch_size": 1}, "batch_size="),
        ({"opponents": ("random", "nobody")}, "nobody"),
    ],
)
def test_options_that_contradict_the_game_or_each_other_are_refused(wrong, name):
    with pytest.raises(ReversiError, match=name):
        preset(**{"size": 4, **wrong})


def test_an_environment_without_masks_is_refused():
    with pytest.raises(TrainError, match="observation="):
        MaskablePPO(BoardPolicy, ReversiVecEnv(2, size=4))


def test_the_trunk_serves_stock_policies():
    env = ReversiVecEnv(8, size=4, observation="dict")
    extractor = {"features_extractor_class": BoardExtractor, "features_extractor_kwargs": {"channels": 4, "blocks": 1}}
    model = MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=32, policy_kwargs=extractor, device="cpu")
    model.learn(64)


def test_a_policy_as_a_player(tiny_net):
    standing = Ladder(Rules(6), 20, baselines=("random",)).measure(BatchPolicyPlayer(tiny_net(6)))
    assert standing.scores["random"].games == 20
