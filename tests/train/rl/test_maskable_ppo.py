import csv
import json
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from sb3_contrib import MaskablePPO

from models.policy.files import read_policy
from play.cli.training.ppo import show_training
from reversi_env import ReversiError, Rules, batch
from reversi_env.errors import TrainError
from tests.oracles.jobs import results
from train.arena.batch import EvaluatorPlayer, RandomPlayer, compiled_player, play_games
from train.arena.network_players import BatchPolicyPlayer
from train.evaluation.endgames import EndgameOptions, noisy_endgames
from train.evaluation.ladder import Ladder, rungs_of
from train.jobs.checkpoints import load_checkpoint, save_checkpoint
from train.jobs.run import CHECKPOINT, Run, stored_options
from train.rl import maskable_ppo as training_module
from train.rl.board_policy import BoardExtractor, BoardPolicy
from train.rl.maskable_ppo import Training, training_figure
from train.rl.opponents import Baseline, SelfPlayPool, discs_to_boards
from train.rl.options import BASELINES, preset
from train.rl.tensor_ppo import TensorPPO
from train.rl.training_env import TrainingEnv
from train.rl.vec_env import ReversiVecEnv


def pool_of(rules, specs=("random", "greedy"), share=0.5, active=3):
    return SelfPlayPool(specs, rules, share, active, seed=0)


# --- games ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_turned_games_are_games(tiny_net, variant):
    rules, pool = Rules(4, variant), pool_of(Rules(4, variant))
    pool.add(tiny_net())
    env = TrainingEnv(48, pool, plies=2, seed=1)
    observations, ended = env.reset(), 0
    generator = np.random.default_rng(0)
    for _ in range(40):
        masks = env.action_masks()
        assert np.array_equal(masks, observations["action_mask"] != 0)
        assert np.array_equal(np.stack(env.env_method("action_masks")), masks)
        legal = batch.legal_moves(*discs_to_boards(observations["observation"], rules), rules)
        rows = np.array([[int(board) >> sq & 1 for sq in rules.squares()] for board in legal], bool)
        assert np.array_equal(masks[:, :-1], rows)
        actions = (generator.random(masks.shape) * masks).argmax(1)
        observations, rewards, dones, infos = env.step(actions)
        for i in np.flatnonzero(dones):
            last = infos[i]["terminal_observation"]
            own, opp = discs_to_boards(last["observation"][None], rules)
            assert rewards[i] == np.sign(int(batch.final_scores(own, opp, rules)[0]))
            ended += 1
    assert ended > 100


def test_openings_differ_in_length(tiny_net):
    env = TrainingEnv(256, pool_of(Rules(6)), plies=6, seed=1)
    discs = set()
    env.reset()
    for _ in range(150):
        observations, _, dones, _ = env.step(env.action_masks().argmax(1))
        discs |= set(observations["observation"][dones].sum((1, 2, 3)).tolist())
    assert set(range(4, 11)) <= discs


def test_games_go_on_from_their_state(tiny_net):
    def moves(env, count):
        return [env.step(env.action_masks().argmax(1)) for _ in range(count)]

    pool = pool_of(Rules(4), ("random", "six-factor:depth=1"))
    pool.add(tiny_net())
    env = TrainingEnv(16, pool, plies=2, seed=4)
    env.reset()
    moves(env, 7)
    games, players = env.state(), pool.state()
    del games["game"]  # which checkpoints of before do not have
    expected = moves(env, 9)
    pool = pool_of(Rules(4), ("random", "six-factor:depth=1"))
    env = TrainingEnv(16, pool, plies=2, seed=4)
    pool.set_state(players, [tiny_net()])
    env.set_state(games)
    for there, here in zip(expected, moves(env, 9), strict=True):
        assert np.array_equal(there[0]["observation"], here[0]["observation"])
        assert np.array_equal(there[1], here[1])


# --- opponents --------------------------------------------------------------------------------------


def test_the_pool_keeps_the_latest_and_draws_from_all(tiny_net):
    pool = pool_of(Rules(4), active=4)
    assert pool.opponents.records()["cumulative_share"].tolist() == [0.5, 1.0]
    for number in range(12):
        assert pool.add(tiny_net(seed=number)) == number
        assert pool.drawn[-1] == number
        assert len(pool.drawn) == len(set(pool.drawn)) == min(4, number + 1)
    assert {10, 11} <= set(pool.drawn)
    assert min(pool.drawn) < 10
    shares = np.diff(pool.opponents.records()["cumulative_share"], prepend=0)
    assert np.allclose(shares[:2], 0.25)
    assert np.allclose(shares[2:][pool.drawn], 0.125)


def test_baselines_by_spec():
    rules = Rules(6)
    pool = pool_of(rules, ("greedy", "six-factor:depth=2", "greedy-invincible"))
    assert pool.opponents[0] == "greedy"
    assert [type(pool.opponents[number]) for number in (1, 2)] == [Baseline, Baseline]
    assert isinstance(compiled_player("random", rules), RandomPlayer)
    assert compiled_player("greedy-invincible", rules) is None
    assert compiled_player("six-factor:nodes=50", rules) is None
    with pytest.raises(ValueError, match="six-facto"):
        Baseline("six-facto", rules, 0)


def test_baselines_pass_where_they_must():
    rules = Rules(4)
    player = Baseline("random", rules, 0)
    masks = np.zeros((2, 17), np.int8)
    masks[0, -1] = 1
    discs = np.zeros((2, 2, 4, 4), np.int8)
    discs[1, 0, 1, 1], discs[1, 1, 1, 2] = 1, 1
    masks[1, 7] = 1
    assert player(discs, masks).tolist() == [16, 7]


# --- the ladder -------------------------------------------------------------------------------------


def test_the_ladder_measures_in_elo_above_random():
    rules = Rules(6)
    ladder = Ladder(rules, 200, seed=1, rungs=("random", "greedy"))
    again = ladder.measure(RandomPlayer(rules))
    assert again.low < 0 < again.high
    strong = ladder.measure(EvaluatorPlayer("six-factor", rules, 2, threads=1))
    assert strong.elo > 200
    assert strong.scores["greedy"].games == 200
    assert strong.as_dict()["rungs"]["random"]["wins"] == strong.scores["random"].wins
    assert "network:depth=2" in rungs_of(rules)
    assert "network:depth=2" not in rungs_of(Rules(4))
    with pytest.raises(ValueError, match="greedy-invincible"):
        Ladder(rules, 2, rungs=("greedy-invincible",))


def test_no_pairing_of_the_ladder_repeats_the_games_of_another(monkeypatch):
    """A random policy plays other games against greedy than the rung ``random`` does."""
    results = []

    def spied(*arguments, **options):
        results.append(play_games(*arguments, **options))
        return results[-1]

    monkeypatch.setattr("train.evaluation.ladder.play_games", spied)
    Ladder(Rules(6), 40, rungs=("random", "greedy")).measure(RandomPlayer(Rules(6)))
    between_rungs, _, of_the_policy = results
    assert not np.array_equal(between_rungs.discs, of_the_policy.discs)


def test_an_elo_that_is_not_determined_is_no_number(small_training, tmp_path, capsys):
    """After games that were all won: None in JSON, nothing in the figure, a bound in tables and progress lines."""
    rules, notes = Rules(6), []
    standing = Ladder(rules, 4, rungs=("random",)).measure(EvaluatorPlayer("six-factor", rules, 4, threads=1))
    row = {"steps": 256, "seconds": 1.0, **json.loads(json.dumps(standing.as_dict(), allow_nan=False))}
    assert (row["elo"], row["elo_low"], row["elo_high"]) == (None, standing.low, None)
    training_figure([row, row | {"elo": 2.0, "elo_low": 1.0, "elo_high": 3.0}], "").save(tmp_path / "curve.svg")
    for kind, where in ((Training, (1,)), (TensorPPO, ())):
        training = kind(tmp_path, small_training(), progress=lambda *told: notes.append(told[-1]))
        training.evaluations = [row]
        if kind is TensorPPO:
            training.steps = 1
        training._tell("learning", *where)
        show_training(training, 1.0, False)
        assert f"not determined (≥ {standing.low:+.0f}" in capsys.readouterr().out
        assert notes[-1].startswith(f"≥ {standing.low:+.0f} Elo")


# --- trainings --------------------------------------------------------------------------------------


class Killed(BaseException):
    """As sudden as a signal."""


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A ladder of one rung, a few solved endgames, and nothing drawn."""
    monkeypatch.setattr("train.charts.is_installed", lambda library: False)
    monkeypatch.setattr("train.rl.maskable_ppo.Ladder", partial(Ladder, rungs=("random",)))
    truth = noisy_endgames(EndgameOptions(4, positions=5, empties=(3, 5)), tmp_path)
    monkeypatch.setattr("train.rl.maskable_ppo.noisy_endgames", lambda options: truth)


def killed_until_it_ends(folder, options, *, before):
    """A training whose parts are all killed: right after their first checkpoint, or *before* their second; where they resumed."""

    def part():
        training, saves, real = Training(folder, options), [], training_module.save_checkpoint

        def save(*arguments):
            saves.append(training.steps)
            if len(saves) == 1:
                real(*arguments)
            if len(saves) == 1 + before:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_module, "save_checkpoint", save)
            training.run()

    resumed = []
    while len(resumed) < 10:
        try:
            part()
        except Killed:
            resumed.append(load_checkpoint(folder / CHECKPOINT)["model"]["counters"]["num_timesteps"])
        else:
            break
    return resumed


@pytest.mark.usefixtures("quick", "no_litter")
def test_killed_at_every_checkpoint_it_is_as_if_nothing_had_happened(tmp_path, small_training, monkeypatch):
    """Also at the first, before any step, and whenever the other one was saved, which its clock decides.

    More than one self could join at a time, and one of the opponents keeps lots of its own.
    """
    pace = {"steps": 384, "num_steps": 4, "snapshot_every": 50, "evaluate": 200, "games": 2}
    options = small_training(opponents=("random", "greedy-invincible:exact=2"), **pace)
    Training(tmp_path / "whole", options).run()
    assert load_checkpoint(tmp_path / "whole" / CHECKPOINT)["told"]["device"] == "cpu"
    monkeypatch.setattr("train.rl.maskable_ppo.CHECKPOINT_SECONDS", 0.0)
    assert killed_until_it_ends(tmp_path / "after", options, before=False) == [0, 128, 256, 384]
    assert killed_until_it_ends(tmp_path / "before", options, before=True) == [0, 128, 256]
    whole = results(tmp_path / "whole")
    results_of_interest = ("policy.safetensors", "model.zip", "regret.csv", "log.csv", "evaluations.csv", CHECKPOINT)
    assert {*results_of_interest, "pool/00001.safetensors"} < set(whole)
    for killed in (results(tmp_path / name) for name in ("after", "before")):
        assert killed.keys() == whole.keys()
        for name, content in killed.items():
            assert content == whole[name], name


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "steps"), [("ppo", 256), ("tensor-ppo", 256)])
def test_an_update_is_played_to_its_end_and_the_bar_knows(tmp_path, small_training, algorithm, steps):
    told = []
    options = small_training(
        algorithm=algorithm, steps=100, **({"opponents": BASELINES} if "tensor" in algorithm else {})
    )
    kind = TensorPPO if algorithm == "tensor-ppo" else Training
    training = kind(
        tmp_path, options, regret=False, progress=lambda doing, done, total, note: told.append((done, total))
    )
    training.run()
    assert training.steps == options.whole_steps == steps
    assert {total for _, total in told} == {steps}


@pytest.mark.slow
def test_a_finished_training_goes_on_with_more_steps(tmp_path, small_training):
    seldom = {"evaluate": 4096}  # at the beginning and at the end: every evaluation is drawn
    Training(tmp_path, small_training(**seldom), regret=False).run()
    written = results(tmp_path)
    Training(tmp_path, small_training(**seldom), regret=False).run()
    assert results(tmp_path) == written
    more = Training(tmp_path, small_training(steps=4096, **seldom), regret=False)
    more.run()
    assert more.steps == 4096
    assert stored_options(tmp_path, type(more.options)).steps == 4096
    rows = list(csv.DictReader((tmp_path / "evaluations.csv").read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == sorted({int(row["steps"]) for row in rows})
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")
    assert any((tmp_path / "tensorboard").iterdir()) == (find_spec("tensorboard") is not None)
    record = read_policy(tmp_path / "policy.safetensors").record
    assert record["steps"] == 4096
    assert record["options"]["size"] == 4


def test_opponents_with_other_weights_than_it_was_begun_with_are_refused(tmp_path, small_training):
    options = small_training(opponents=("random", "cell-utility:depth=1"))
    Run(tmp_path, options, {"cell-utility_sha256": "0"}).store_or_check_options()
    with pytest.raises(TrainError, match="started with a different version of cell-utility: expected the same"):
        Training(tmp_path, options, regret=False).run()


@pytest.mark.usefixtures("quick")
def test_a_training_does_not_go_on_on_another_device(tmp_path, small_training):
    Run(tmp_path, small_training()).store_or_check_options()
    save_checkpoint(tmp_path / CHECKPOINT, {"told": {"device": "cuda"}})
    with pytest.raises(TrainError, match="was started on device cuda: expected the same device, or another folder"):
        Training(tmp_path, small_training(), regret=False).run()


def test_a_damaged_checkpoint_is_said(tmp_path, small_training):
    training = Training(tmp_path, small_training(), regret=False)
    Run(tmp_path, small_training()).store_or_check_options()
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    with pytest.raises(TrainError, match="checkpoint.safetensors' cannot be read"):
        training.run()
    save_checkpoint(tmp_path / CHECKPOINT, {"net": {"weights": np.zeros(999)}})
    flipped = bytearray((tmp_path / CHECKPOINT).read_bytes())
    flipped[2000] ^= 1
    (tmp_path / CHECKPOINT).write_bytes(flipped)
    with pytest.raises(TrainError, match=r"checkpoint.safetensors' cannot be read \(damaged, its SHA-256 is"):
        training.run()


@pytest.mark.parametrize("size", [4, 6, 8])
@pytest.mark.parametrize("algorithm", ["ppo", "tensor-ppo"])
def test_presets_are_options(size, algorithm):
    options = preset(size, "reversed", algorithm)
    assert type(options).from_dict(json.loads(json.dumps(options.as_dict()))) == options


def test_the_end_tells_the_steps_that_were_done_and_times_that_add_up(small_training, tmp_path, capsys):
    options = small_training(steps=100)
    standing = {"steps": options.whole_steps, "seconds": 7.3, "elo": 1.0, "elo_low": 0.0, "elo_high": 2.0, "rungs": {}}
    training = Training(tmp_path, options)
    training.evaluations = [standing]
    show_training(training, 7.5, False)
    out = capsys.readouterr().out
    assert "after 256 steps (100 asked for, and to the end of an update)\n7.5 s\n" in out
    training.evaluations = [standing | {"steps": 512}]  # a longer run that is looked at with fewer steps
    show_training(training, 7.5, False)
    assert "after 512 steps\n" in capsys.readouterr().out
    training.evaluations = [standing]
    training.options, training.seconds = small_training(steps=256), 20.0
    show_training(training, 7.5, False)
    assert "after 256 steps\n7.5 s, and 20.0 s in the runs before\n" in capsys.readouterr().out


def test_the_rate_falls_to_a_tenth_and_no_further():
    """A last rollout goes beyond the steps that were asked for: -3 of all 4,000 are left after 16,384."""
    assert [training_module._falling(0.5, left) for left in (1.0, 0.0, -3.0)] == [0.5, 0.05, 0.05]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"size": 5}, "5"),
        ({"steps": 0}, "steps=0: expected"),
        ({"learning_rate": 2}, "learning_rate=2: expected"),
        ({"games": 3}, "games=3: expected an even number"),
        ({"algorithm": "a2c"}, "algorithm='a2c': expected"),
        ({"plies": 9}, "plies=9: expected"),
        (
            {"num_envs": 3, "num_steps": 11, "batch_size": 32},
            "batch_size=32 leaves one of 33 positions .* batches of two or more",
        ),
        ({"num_envs": 2, "num_steps": 2, "batch_size": 1}, "batch_size=1 leaves one of 4 positions"),
        ({"opponents": ("random", "nobody")}, "agent 'nobody' is unknown"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong, words):
    """What every option class refuses is tested in tests/train/test_options.py."""
    with pytest.raises(ReversiError, match=words):
        preset(**{"size": 4, **wrong})


def test_an_environment_without_masks_is_refused():
    with pytest.raises(TrainError, match="observation='dict'"):
        MaskablePPO(BoardPolicy, ReversiVecEnv(2, size=4))


def test_the_trunk_serves_stock_policies():
    env = ReversiVecEnv(8, size=4, observation="dict")
    extractor = {"features_extractor_class": BoardExtractor, "features_extractor_kwargs": {"channels": 4, "blocks": 1}}
    model = MaskablePPO("MultiInputPolicy", env, n_steps=8, batch_size=32, policy_kwargs=extractor, device="cpu")
    model.learn(64)
    assert model.num_timesteps == 64


def test_a_policy_as_a_player(tiny_net):
    standing = Ladder(Rules(6), 20, rungs=("random",)).measure(BatchPolicyPlayer(tiny_net(6)))
    assert standing.scores["random"].games == 20
