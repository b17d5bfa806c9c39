"""PPO on tensors: advantages and loss against definitions, rollouts against the rules, runs that are killed."""

import csv
import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from models.bitboards import board_planes
from models.residual.net import mask_illegal, read_residual
from play.cli.training.ppo import show_training
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search.agents.spec import make_agent
from tests.oracles.jobs import results
from train.arena.batch import EvaluatorPlayer
from train.evaluation.ladder import Ladder, ladder_figure
from train.jobs.checkpoints import save_checkpoint
from train.jobs.run import CHECKPOINT, Run, stored_options
from train.rl import policy_run, tensor_ppo
from train.rl.options import PpoOptions, preset
from train.rl.tensor_ppo import PpoLoss, Rollout, TensorPPO, gae

from .conftest import run_with_kills

SMALL = {"size": 4, "channels": 4, "blocks": 1, "num_envs": 32, "num_steps": 8}
SMALL |= {"total_timesteps": 768, "batch_size": 64, "n_epochs": 2, "snapshot_every": 256, "pool_size": 2}
SMALL |= {"snapshot_share": 0.5, "eval_every": 512, "eval_games": 2}


def test_advantages_equal_the_definition():
    plies, gae_lambda, rng = 9, 0.8, np.random.default_rng(1)
    values, rewards = rng.uniform(-1, 1, (2, plies + 1, 3))
    dones = rng.random((plies, 3)) < 0.3
    columns = (rewards[:plies], dones.astype(float), values[:plies], values[plies])
    advantages = gae(*(torch.from_numpy(column) for column in columns), gae_lambda)
    for game in range(3):
        for ply in range(plies):
            expected, weight = 0.0, 1.0
            for later in range(ply, plies):  # the TD errors of all later plies, for the side to move at `ply`
                next_value = 0.0 if dones[later, game] else -values[later + 1, game]
                expected += weight * (rewards[later, game] + next_value - values[later, game])
                if dones[later, game]:
                    break
                weight *= -gae_lambda
            assert advantages[ply, game] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ratio", "advantage", "surrogate"), [(2.0, 1.0, 1.2), (2.0, -1.0, -2.0), (0.5, 1.0, 0.5), (0.5, -1.0, -0.8)]
)
def test_the_surrogate_objective_is_clipped(tiny_net, ratio, advantage, surrogate):
    net, ones = tiny_net(), torch.ones(1)
    empty, masks = torch.zeros(1, dtype=torch.int64), torch.ones(1, 17, dtype=torch.bool)
    log_prob = torch.log_softmax(net.of_actions(empty, empty)[0], 1)[:, 0].detach() - np.log(ratio)
    batch = Rollout(empty, empty, masks, empty, log_prob, ones, ones, advantage * ones, ones)
    _, values = PpoLoss(net, 0.0)(batch)
    assert values[tensor_ppo.METRICS.index("policy_loss")].item() == pytest.approx(-surrogate, abs=1e-4)


def test_only_moves_in_the_loss_mask_contribute_to_the_loss(tiny_net):
    net, count = tiny_net(), 16
    boards = [torch.full((count,), side) for side in Rules(4).start_boards]
    masks = torch.ones(count, 17, dtype=torch.bool)
    masks[:, 5] = False
    actions = torch.arange(count) % 2
    policy = torch.log_softmax(mask_illegal(net.of_actions(*boards)[0], masks), 1).detach()
    log_probs = policy.gather(1, actions[:, None])[:, 0]
    loss_mask, returns = (actions == 0).float(), torch.where(actions == 0, 1.0, 50.0)
    batch = Rollout(*boards, masks, actions, log_probs, torch.zeros(count), loss_mask, returns, returns)
    loss, values = PpoLoss(net, 0.01)(batch)
    metrics = dict(zip(tensor_ppo.METRICS, values.tolist(), strict=True))
    assert metrics["policy_loss"] == pytest.approx(-1.0)
    assert metrics["value_loss"] == pytest.approx((net.of_actions(*boards)[1][0].item() - 1) ** 2)
    assert metrics["entropy"] == pytest.approx(-(policy[0].exp() * policy[0]).sum().item(), rel=1e-5)
    assert metrics["approx_kl"] == pytest.approx(0, abs=1e-6)
    total = metrics["policy_loss"] + tensor_ppo.VF_COEF * metrics["value_loss"] - 0.01 * metrics["entropy"]
    assert metrics["loss"] == loss.item() == pytest.approx(total)
    loss.backward()
    assert net.policy[1].bias.grad[0] < 0 < net.policy[1].bias.grad[1]
    assert net.policy[1].bias.grad[5] == 0
    further = batch._replace(log_probs=log_probs - 0.3)  # no gradient outside the clip range
    net.zero_grad()
    PpoLoss(net, 0.0)(further)[0].backward()
    assert net.policy[1].bias.grad.abs().max() == 0


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_rollouts_follow_the_rules_and_assign_the_sides(tmp_path, variant):
    training = TensorPPO(tmp_path, preset(**SMALL | {"num_steps": 14, "variant": variant}))
    training.set_up()
    for _ in range(3):
        older = [*training._snapshots]
        training.add_snapshot()
        assert training._snapshots[-1] not in older
    assert len(training._snapshots) == 2
    for past in training._snapshots:
        torch.nn.init.normal_(past.policy[1].weight)
    before, seen = training._env.get_state(), training._opening_plies.clone()
    training.collect_rollout()
    moves, rules = training._rollout, Rules(4, variant)
    back = training._action_images.numpy()
    ended = openings = 0
    for game in range(32):
        position = Position(rules, int(before["own"][game]), int(before["opp"][game]))
        black = before["turn"][game] == 0
        left = int(seen[game])
        for ply in range(14):
            sides = torch.stack([moves.own[ply, game], moves.opp[ply, game]])
            shown = board_planes(sides, 4).flatten(1).numpy()
            discs = [sum(1 << rules.square_of(int(back[game, k])) for k in np.flatnonzero(side)) for side in shown]
            assert discs == [position.own, position.opp]
            legal = {int(back[game, k]) for k in np.flatnonzero(moves.masks[ply, game])}
            assert legal == set(position.legal_actions())
            past = game < 16 and black == (game // 8 % 2 == 0)
            assert moves.loss_mask[ply, game] == (left == 0 and not past)
            openings += left > 0
            position = position.play(int(back[game, moves.actions[ply, game]]))
            black = not black
            reward = np.sign(-position.score()) if position.is_over() else 0.0
            assert training._rewards[ply, game] == reward
            assert training._dones[ply, game] == position.is_over()
            left -= left > 0
            if position.is_over():
                ended += 1
                break
    assert ended > 10
    assert openings > 10
    for net, games in ((training._net, slice(0, 32)), (training._snapshots[1], slice(8, 16))):
        flat = Rollout(*(column[2:, games].flatten(0, 1) for column in moves))  # after the opening
        with torch.no_grad():
            logs = torch.log_softmax(mask_illegal(net.of_actions(flat.own, flat.opp)[0], flat.masks), 1)
        again, who = logs.gather(1, flat.actions[:, None])[:, 0], flat.loss_mask == float(net is training._net)
        if net is not training._net:
            random_log_probs = -flat.masks.sum(1).log()  # of moves in the opening of another game
            who &= (flat.log_probs - random_log_probs).abs() > 1e-5
        assert who.sum() > 20
        assert torch.allclose(again[who], flat.log_probs[who], atol=1e-5)
    with torch.no_grad():
        last_value = training._net.of_actions(*training._boards())[1]
    advantages = gae(training._rewards, training._dones, moves.values, last_value, training.options.gae_lambda)
    assert torch.allclose(moves.returns, moves.values + advantages, atol=1e-5)
    in_loss = advantages[moves.loss_mask == 1]
    normalised = (in_loss - in_loss.mean()) / in_loss.std(correction=0)
    assert torch.allclose(moves.advantages[moves.loss_mask == 1], normalised, atol=1e-4)


def test_the_learning_rate_decays_to_a_tenth(tmp_path):
    training = TensorPPO(tmp_path, preset(**SMALL | {"num_envs": 16, "n_epochs": 1}))
    training.set_up()
    training.collect_rollout()
    for share, factor in ((0, 1.0), (0.5, 0.55), (2, 0.1)):
        training.steps = int(share * training.options.total_timesteps)
        training.update()
        assert training._optimiser.param_groups[0]["lr"] == pytest.approx(factor * training.options.learning_rate)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_evaluation", "no_litter")
@pytest.mark.parametrize("before", [False, True])
def test_a_run_killed_at_every_checkpoint_ends_the_same(tmp_path, monkeypatch, before):
    monkeypatch.setattr(policy_run, "CHECKPOINT_SECONDS", 0.0)
    options = preset(**SMALL | {"pool_size": 3, "total_timesteps": 1536})  # removes snapshots at random
    whole, folder = TensorPPO(tmp_path / "whole", options), tmp_path / "killed"
    whole.run()
    checkpoints = run_with_kills(lambda: TensorPPO(folder, options).run(), folder, before=before)
    assert [checkpoint["run"]["steps"] for checkpoint in checkpoints] == [*range(256, 1537, 256)][: 6 - before]
    expected = results(tmp_path / "whole")
    assert {"policy.safetensors", "log.csv", "evaluations.csv", "regret.csv", "run.json", CHECKPOINT} == set(expected)
    assert results(folder) == expected
    agent = make_agent(f"rl:{folder / 'policy.safetensors'}")
    assert agent.choose(Position.initial(Rules(4))) in Position.initial(Rules(4)).legal_actions()
    assert read_residual(whole.policy).record["training"] == "ppo"
    assert whole.evaluations[-1].keys() >= {"regret", "steps_per_second", "rungs"}


@pytest.mark.slow
def test_a_finished_run_continues_with_more_whole_updates(tmp_path):
    totals, seldom = set(), SMALL | {"eval_every": 4096}
    for steps in (300, 300, 1000):
        arguments = tmp_path, preset(**seldom | {"total_timesteps": steps})
        run = TensorPPO(*arguments, regret=False, progress=lambda doing, done, total, note: totals.add(total))
        run.run()
    assert run.steps == run.options.rounded_timesteps == 1024
    assert totals == {512, 1024}
    assert stored_options(tmp_path, PpoOptions).total_timesteps == 1000
    rows = list(csv.DictReader((tmp_path / "evaluations.csv").read_text().splitlines()))
    assert [int(row["steps"]) for row in rows] == [0, 512, 1024]
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "tensorboard").exists() == (find_spec("tensorboard") is not None)
    assert read_residual(run.policy).record["steps"] == 1024


@pytest.mark.usefixtures("quick_evaluation")
def test_other_devices_and_damaged_checkpoints_are_refused(tmp_path):
    if not torch.cuda.is_available():
        with pytest.raises(TrainError, match="cuda"):
            TensorPPO(tmp_path, preset(**SMALL, device="cuda"))
    with Run(tmp_path / "cuda", preset(**SMALL, device="cuda")):
        pass
    with pytest.raises(TrainError, match="device='cuda'"):
        TensorPPO(tmp_path / "cuda", preset(**SMALL)).run()
    path = tmp_path / CHECKPOINT
    save_checkpoint(path, {"net": {"weights": np.zeros(999)}, "run": {}})
    of_other_version, flipped = path.read_bytes(), bytearray(path.read_bytes())
    flipped[2000] ^= 1
    for content in (b"damaged", flipped, of_other_version):
        path.write_bytes(content)
        with pytest.raises(TrainError, match=CHECKPOINT):
            TensorPPO(tmp_path, preset(**SMALL)).run()


@pytest.mark.parametrize("wrong", [{"size": 5}, {"opening_plies": 9}, {"num_envs": 0}])
def test_invalid_options_are_refused(wrong):
    with pytest.raises(ReversiError, match=next(iter(wrong))):
        preset(**{"size": 4, **wrong})


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_ppo_command_resumes_with_only_its_folder(reversi, tmp_path, monkeypatch, device):
    ran = []
    monkeypatch.setattr("train.rl.tensor_ppo.checked_device", torch.device)
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)
    monkeypatch.setattr("play.first_start.prepare_parts", lambda parts: None)
    monkeypatch.setattr(TensorPPO, "run", lambda training: ran.append(training.options))
    monkeypatch.setattr("play.cli.training.ppo.show_training", lambda *_: None)
    Run(tmp_path, preset(**SMALL, device=device)).store_or_check_options()
    assert reversi("train", "ppo", "--out", tmp_path)[0] == 0
    assert ran == [preset(**SMALL, device=device)]


def test_an_undetermined_elo_is_shown_as_a_bound(tmp_path, capsys):
    rules, notes = Rules(6), []
    standing = Ladder(rules, 4, baselines=("random",)).measure(EvaluatorPlayer("six-factor", rules, 4, threads=1))
    row = {"steps": 256, "seconds": 1.0, "steps_per_second": 9} | json.loads(
        json.dumps(standing.as_dict(), allow_nan=False)
    )
    assert (row["elo"], row["elo_low"], row["elo_high"]) == (None, standing.low, None)
    ladder_figure([row, row | {"elo": 2.0, "elo_low": 1.0, "elo_high": 3.0}], "").save(tmp_path / "curve.svg")
    run = policy_run.PolicyRun(tmp_path, preset(**SMALL), progress=lambda *args: notes.append(args[-1]))
    run.evaluations = [row]
    run.report("learning")
    show_training(run, 1.0, False)
    bound = f"≥ {standing.low:+.0f}"
    assert bound in capsys.readouterr().out
    assert bound in notes[0]
