"""Expert iteration: what the expert says, what is learnt from it, and runs that nothing can spoil."""

import csv
import dataclasses
import shutil

import numpy as np
import pytest
import torch

from models.torch_evaluator import TorchAgent, TorchEvaluator
from reversi_env import Position, ReversiError, Rules, batch
from search import agents
from search.batch import search_batch
from search.solver import solve_all_moves
from train.errors import TrainError
from train.games.batch import RandomPlayer, play_games
from train.games.openings import Openings
from train.judging.endgames import EndgameOptions, noisy_endgames
from train.judging.exact import action_table
from train.labels.labellers import Plan
from train.rl.expert import ExpertIteration, examine
from train.rl.expert_data import ExpertLabels, expert_labels, new_positions
from train.rl.expert_fit import Memory, learn, optimiser_of, rate_at
from train.rl.files import read_policy
from train.rl.network import ILLEGAL, PolicyValueNet, ValueOfBoards
from train.rl.options import SELF, ExpertOptions, expert_preset
from train.rl.players import (
    NEVER,
    BatchPolicy,
    BatchPolicyPlayer,
    ValueSearchPlayer,
    network_move_values,
    policy_numbers,
)

#: A run of seconds.
TINY = expert_preset(4, iterations=3, positions=60, samples=2000, batch_size=64, channels=8, blocks=1, games=4)


def small_net(size, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = PolicyValueNet(size, ExpertOptions(size=size, channels=8, blocks=1).architecture).eval()
        for head in (net.policy, net.value):  # moves and positions that differ
            torch.nn.init.normal_(head.weight, std=0.3)
    return net


def some_positions(rules, count, plies, seed=0):
    """Positions in which a move can be made."""
    own, opp = batch.random_positions(count, plies, rules, seed=seed)
    chosen = batch.legal_moves(own, opp, rules) != 0
    return own[chosen], opp[chosen]


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": 5}, "5"),
        ({"iterations": 0}, "iterations=0"),
        ({"games": 3}, "games=3: expected an even number"),
        ({"temperature": 0}, "temperature=0"),
        ({"channels": 0}, "channels=0"),
        ({"temperatures": (1.0, -1.0)}, r"temperatures=\(1.0, -1.0\): expected one or more numbers from 0 to 100"),
        ({"opening_plies": 31}, "opening_plies=31"),
        ({"precision": "half"}, "precision='half': expected one of auto, single, bfloat16"),
        ({"labeller": "netwrk:depth=2"}, "did you mean 'network'"),
        ({"labeller": "network:time=2"}, "of labeller 'network:time=2': expected depth"),
        ({"labeller": "self:depth=9"}, "depth='9' of labeller 'self:depth=9': expected a whole number from 1 to 3"),
        ({"labeller": "self:level=2"}, "expected depth or exact"),
        ({"labeller": "random"}, "random"),
    ],
)
def test_options_that_mean_nothing_are_refused(changes, words):
    with pytest.raises(ReversiError, match=words):
        ExpertOptions(**changes)


@pytest.mark.parametrize("labeller", ["exact", "six-factor:depth=4,exact=40"])
def test_a_labeller_that_nobody_could_wait_for_is_refused_before_any_work(tmp_path, labeller):
    training = ExpertIteration(tmp_path / "never-made", expert_preset(6, labeller=labeller))
    with pytest.raises(TrainError, match=f"32 empties to be solved by labeller '{labeller}': expected at most 26"):
        training.run()
    assert not training.folder.exists()


def test_presets_have_the_plan_of_their_labeller():
    assert expert_preset(8, "reversed", labeller="self:depth=1,exact=9").plan == Plan(9, SELF, 1)
    assert expert_preset(4).labeller == "exact"


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["normal", "reversed"])
@pytest.mark.parametrize(("size", "plies"), [(4, 5), (6, 24), (8, 52)])
def test_solved_positions_teach_all_best_moves_alike(size, plies, variant):
    rules = Rules(size, variant)
    own, opp = some_positions(rules, 30, plies)
    labels = expert_labels(own, opp, rules, Plan(64), 0.5, threads=1)
    assert labels.exact.all()
    several = 0
    for i in range(len(own)):
        values = solve_all_moves(Position(rules, int(own[i]), int(opp[i])))
        best = {rules.action_from_name(name) for name, value in values.items() if value == max(values.values())}
        assert set(np.flatnonzero(labels.policy[i]).tolist()) == best
        assert labels.policy[i].sum() == pytest.approx(1)
        assert np.ptp(labels.policy[i][sorted(best)]) == 0
        assert labels.value[i] == max(values.values())
        several += len(best) > 1
    assert several


@pytest.mark.parametrize(("variant", "mean"), [("normal", 1), ("reversed", 1), ("normal", 2)])
def test_other_positions_are_searched(variant, mean):
    rules = Rules(6, variant)
    own, opp = some_positions(rules, 12, 8)
    labels = expert_labels(own, opp, rules, Plan(5, "network", 3, mean), 0.5, threads=1)
    assert not labels.exact.any()
    table = action_table(rules)
    for i in range(len(own)):
        children = batch.expand(own[i : i + 1], opp[i : i + 1], rules)
        plies = range(3 - mean, 3)
        searches = [search_batch(children.own, children.opp, "network", rules, depth, threads=1) for depth in plies]
        values = -np.mean(searches, axis=0)
        weights = np.exp((values - values.max()) / 0.5)
        assert labels.policy[i][table[children.square]] == pytest.approx(weights / weights.sum(), abs=1e-5)
        assert labels.value[i] == pytest.approx(values.max(), abs=1e-4)
        assert labels.policy[i].sum() == pytest.approx(1)


def test_a_formula_is_scaled_to_discs():
    """Twice the formula is the same formula, once it is scaled to fit the solved positions."""
    rules = Rules(6)
    early, late = some_positions(rules, 40, 8), some_positions(rules, 60, 24)
    own, opp = (np.concatenate(pair) for pair in zip(early, late, strict=True))
    labels = expert_labels(own, opp, rules, Plan(10, "six-factor", 1), 0.5, threads=1)
    found = labels.value[: len(early[0])]
    assert (~labels.exact).sum() == len(found)
    children = batch.expand(*early, rules)
    values = -search_batch(children.own, children.opp, "six-factor", rules, 0, threads=1)
    best = np.full(len(found), -np.inf)
    np.maximum.at(best, children.parent, values)
    scale = found[0] / best[0]
    assert scale > 0
    assert scale != pytest.approx(1, abs=0.01)
    assert found == pytest.approx(np.clip(scale * best, -36, 36), rel=1e-4)


@pytest.mark.parametrize("depth", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("size", "variant", "plies"), [(4, "normal", 11), (6, "reversed", 20), (6, "normal", 31)])
def test_the_networks_own_search_is_alpha_beta_over_its_value(size, variant, plies, depth):
    """Passes and games that end are among the positions below."""
    rules, net = Rules(size, variant), small_net(size)
    own, opp = some_positions(rules, 12, plies)
    table = network_move_values(net, own, opp, rules, depth)
    evaluator = TorchEvaluator(ValueOfBoards(net), rules, inputs="boards", scale=rules.square_count)
    agent = TorchAgent(evaluator, depth, exact=0)
    ends = 0
    for i in range(len(own)):
        position = Position(rules, int(own[i]), int(opp[i]))
        legal = position.legal_actions()
        assert np.flatnonzero(table[i] > NEVER).tolist() == sorted(legal)
        found = agent.search(position)
        assert table[i].max() == pytest.approx(found.value, abs=1e-3)
        ends += any(position.play(action).is_over() for action in legal)
    assert ends > 0 or plies == 20


def test_no_positions_have_no_labels():
    none = np.zeros(0, np.uint64)
    labels = expert_labels(none, none, Rules(4), Plan(64), 0.5, threads=1)
    assert len(labels) == 0
    assert labels.policy.shape == (0, 16)


# --- learning -------------------------------------------------------------------------------------


def memory_of(rules, plies=6, count=50):
    own, opp = some_positions(rules, count, plies)
    return Memory([expert_labels(own, opp, rules, Plan(64), 0.5, threads=1)], rules)


@pytest.mark.parametrize("size", [4, 6, 8])
def test_a_position_is_shown_under_eight_symmetries_with_all_that_belongs_to_it(size):
    rules = Rules(size)
    own, opp = some_positions(rules, 20, {4: 4, 6: 12, 8: 20}[size])
    squares = rules.square_count
    legal = batch.legal_moves(own, opp, rules)
    planes = ((legal[:, None] >> np.array(list(rules.squares()), np.uint64)) & np.uint64(1)).astype(np.float32)
    policy = planes / planes.sum(1, keepdims=True)
    labels = ExpertLabels(own, opp, policy, np.zeros(len(own), np.float32), np.ones(len(own), bool))
    memory, rows = Memory([labels], rules), torch.arange(len(own))
    seen = set()
    for symmetry in range(8):
        discs, mask, target, _ = memory.batch(rows, torch.full((len(own),), symmetry))
        bits = np.array([1 << sq for sq in rules.squares()], np.uint64)
        turned = [
            (side.numpy().reshape(-1, squares).astype(np.uint64) * bits).sum(1) for side in (discs[:, 0], discs[:, 1])
        ]
        expected = batch.legal_moves(*turned, rules)
        found = (mask[:, :-1].numpy().astype(np.uint64) * bits).sum(1)
        assert (found == expected).all()  # the rules do not care for symmetries
        assert torch.equal(target > 0, mask > 0)
        assert not mask[:, -1].any()
        seen.add(turned[0].tobytes())
        for mine, theirs, a, b in zip(own, opp, *turned, strict=True):
            assert batch.canonical([mine], [theirs])[:2] == batch.canonical([a], [b])[:2]
    assert len(seen) == 8


@pytest.mark.parametrize("precision", ["single", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_learning_lowers_both_losses_and_is_the_same_every_time(precision):
    options = dataclasses.replace(TINY, iterations=20, samples=3000, learning_rate=0.01, precision=precision)
    memory, results = memory_of(Rules(4)), []
    for _ in range(2):
        net = small_net(4)
        optimiser = optimiser_of(net, options)
        first = learn(net, optimiser, memory, dataclasses.replace(options, samples=64), 1)
        last = learn(net, optimiser, memory, options, 2)
        assert last.policy < 0.9 * first.policy
        assert last.value < 0.9 * first.value
        results.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert torch.equal(*results)


def test_the_rate_falls_to_nothing():
    assert rate_at(TINY, 0) == TINY.learning_rate
    assert rate_at(TINY, 0.5) == pytest.approx(TINY.learning_rate / 2)
    assert rate_at(TINY, 1) == pytest.approx(0, abs=1e-12)


def test_fewer_positions_than_a_batch_are_enough():
    memory = memory_of(Rules(4), count=5)
    losses = learn(small_net(4), optimiser_of(small_net(4), TINY), memory, dataclasses.replace(TINY, samples=200), 1)
    assert np.isfinite(losses.policy)


# --- games ----------------------------------------------------------------------------------------


def test_the_policy_as_a_player_is_that_of_the_agents():
    rules, net = Rules(6), small_net(6)
    own, opp = some_positions(rules, 30, 12)
    squares = BatchPolicyPlayer(net).choose(own, opp, np.arange(len(own)), np.zeros(len(own), np.uint64))
    discs, masks = (part.numpy() for part in net.inputs(own, opp))
    assert action_table(rules)[squares].tolist() == BatchPolicy(net)(discs, masks).tolist()


def test_moves_are_drawn_as_the_temperature_says():
    rules, net = Rules(4), small_net(4)
    own, opp = some_positions(rules, 1, 4)
    many = 20_000
    numbers = policy_numbers(net, own, opp)[0, :-1]
    legal = numbers != ILLEGAL
    states = np.random.default_rng(0).integers(0, 1 << 63, many, np.uint64)
    before = states.copy()
    drawn = {}
    for temperature, noise in ((0.5, 0.0), (2.0, 0.0), (0.0, 0.25)):
        player = BatchPolicyPlayer(net, np.full(many, temperature), noise)
        squares = player.choose(np.repeat(own, many), np.repeat(opp, many), np.arange(many), states)
        shares = np.bincount(action_table(rules)[squares], minlength=16) / many
        if temperature:
            expected = np.where(legal, np.exp((numbers - numbers.max()) / temperature), 0)
            expected /= expected.sum()
        else:
            expected = noise * legal / legal.sum()
            expected[numbers.argmax()] += 1 - noise
        assert shares == pytest.approx(expected, abs=0.02)
        drawn[temperature] = shares
    assert (states != before).all()
    assert drawn[0.5].max() > drawn[2.0].max()


def test_the_value_as_a_player_solves_endgames():
    rules, net = Rules(6, "reversed"), small_net(6)
    own, opp = some_positions(rules, 40, 25)
    player = ValueSearchPlayer(net, rules, 1, exact=9)
    squares = player.choose(own, opp, np.arange(len(own)), np.arange(len(own), dtype=np.uint64))
    solved = rules.square_count - np.bitwise_count(own | opp) <= 9
    assert solved.any()
    for i in np.flatnonzero(solved):
        values = solve_all_moves(Position(rules, int(own[i]), int(opp[i])))
        assert values[rules.name_of(rules.action_of(int(squares[i])))] == max(values.values())


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_new_positions_are_new_and_the_same_every_time(variant):
    options = dataclasses.replace(expert_preset(6, variant), positions=300, channels=8)
    net, known = small_net(6), set[int]()
    own, opp = new_positions(net, options, 1, known)
    assert len(own) == len(known) == 300
    again = new_positions(net, options, 1, set())
    assert (own == again[0]).all()
    assert (opp == again[1]).all()
    assert (batch.legal_moves(own, opp, options.rules) != 0).all()
    empties = options.rules.square_count - np.bitwise_count(own | opp)
    assert empties.min() < 8  # all of the game, not only its beginning
    assert empties.max() > 24
    more_own, more_opp = new_positions(net, options, 2, known)
    keys = [batch.position_hash(*batch.canonical(*boards)[:2]) for boards in ((own, opp), (more_own, more_opp))]
    assert len(np.unique(np.concatenate(keys))) == 600


def test_a_small_board_runs_out_of_positions():
    options = dataclasses.replace(TINY, positions=50_000, opening_plies=0, temperatures=(0.0,), noise=0.0)
    own, _ = new_positions(small_net(4), options, 1, set())
    assert 0 < len(own) < 50


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("solved")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, cache):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("finished")
    run = ExpertIteration(folder, TINY, threads=1, cache=cache, command="reversi rl expert")
    run.run()
    return folder, run


@pytest.mark.slow
def test_a_run_learns_and_leaves_what_it_says(finished, cache):
    folder, found = finished
    chance = noisy_endgames(EndgameOptions(4, "normal", 100), cache).random_play().overall
    assert found.figures[-1]["regret"] < 0.8 * chance.regret
    assert [row["iteration"] for row in found.figures] == [1, 2, 3]
    rows = list(csv.DictReader((folder / "log.csv").read_text().splitlines()))
    assert [float(row["regret"]) for row in rows] == [row["regret"] for row in found.figures]
    assert "cell-utility:depth=2" in rows[0]
    curve = list(csv.DictReader((folder / "regret.csv").read_text().splitlines()))
    assert {row["step"] for row in curve} == {"0", "1", "2", "3"}
    for name in ("learning.svg", "regret.svg"):
        assert b"<svg" in (folder / name).read_bytes()
    record = read_policy(folder / "policy.safetensors").record
    assert record["training"] == "expert iteration"
    assert record["options"] == TINY.as_dict()
    assert record["command"] == "reversi rl expert"
    assert [path.name for path in folder.glob("state-*")] == ["state-003.safetensors"]


@pytest.mark.slow
def test_what_was_learnt_plays(finished):
    folder, _ = finished
    rules = Rules(4)
    net = read_policy(folder / "policy.safetensors").net
    openings = Openings.random(rules, 200, 2)
    assert play_games(BatchPolicyPlayer(net), RandomPlayer(rules), openings, rules).score > 0.6
    start = Position.initial(rules)
    for spec in (f"rl:{folder}/policy.safetensors", f"rl-search:{folder}/policy-002.safetensors,depth=1"):
        assert agents.make(spec).choose(start) in start.legal_actions()


@pytest.mark.slow
def test_a_finished_run_is_not_done_again(finished, cache):
    folder, whole = finished
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*-00*")}
    (folder / "state-002.safetensors").write_bytes(b"of a run that was killed before it could remove this")
    found = ExpertIteration(folder, TINY, threads=1, cache=cache)
    found.run()
    assert found.figures == whole.figures
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*-00*")} == before


@pytest.mark.parametrize("name", ["run.json", "state-003.safetensors", "labels-001.npz", "policy-003.safetensors"])
@pytest.mark.slow
def test_a_damaged_file_is_named(name, finished, tmp_path, cache):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    flipped = bytearray((folder / name).read_bytes())
    flipped[len(flipped) // 2] ^= 1
    for data in [b"nonsense"] if name == "run.json" else [b"nonsense", flipped]:
        (folder / name).write_bytes(data)
        with pytest.raises(ReversiError, match=name.replace(".", r"\.")):
            ExpertIteration(folder, TINY, threads=1, cache=cache).run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "variant", "labeller"),
    [(4, "reversed", "exact"), (6, "reversed", "network:depth=2,exact=8"), (8, "normal", "six-factor:depth=2,exact=7")],
)
def test_every_game_can_be_learnt(size, variant, labeller, tmp_path, cache, monkeypatch):
    monkeypatch.setattr("train.rl.expert.REGRET_POSITIONS", 10)
    small = {"iterations": 1, "positions": 200, "samples": 8000, "channels": 16, "blocks": 1, "games": 4}
    options = expert_preset(size, variant, labeller=labeller, **small)
    found = ExpertIteration(tmp_path, options, threads=1, cache=cache)
    found.run()
    chance = noisy_endgames(EndgameOptions(size, variant, 10), cache).random_play().overall
    assert found.figures[0]["new"] == 200
    assert found.figures[0]["regret"] < chance.regret
    assert read_policy(found.policy).rules == Rules(size, variant)


@pytest.mark.slow
def test_a_run_goes_on_where_there_is_nothing_new_and_no_library_to_draw_with(tmp_path, cache, monkeypatch):
    monkeypatch.setattr("train.charts.installed", lambda library: False)
    alike = {"opening_plies": 0, "temperatures": (0.0,), "noise": 0.0, "learning_rate": 1e-8}
    options = dataclasses.replace(TINY, iterations=4, positions=50_000, samples=64, **alike)
    found = ExpertIteration(tmp_path, options, threads=1, cache=cache)
    found.run()
    assert found.figures[0]["new"] > 0
    assert found.figures[-1]["new"] == 0  # a network that hardly changes plays the same games
    assert not list(tmp_path.glob("*.svg"))
    assert (tmp_path / "log.csv").exists()


@pytest.mark.slow
def test_the_network_can_be_its_own_expert(tmp_path, cache):
    options = dataclasses.replace(TINY, labeller="self:depth=2,exact=5", iterations=2)
    found = ExpertIteration(tmp_path, options, threads=1, cache=cache)
    found.run()
    assert 0 < found.figures[-1]["exact"] < found.figures[-1]["new"]
    assert found.figures[-1]["policy_loss"] < 1


@pytest.mark.slow
def test_an_exam_tells_with_search_from_without(finished, cache):
    folder, _ = finished
    found = examine(folder / "policy.safetensors", games=10, exact=8, threads=1, cache=cache)
    players, searches = found["players"], ("1 ply", "2 plies", "2 plies, solver 8")
    assert list(players) == ["policy alone", "policy, 8 symmetries", *(f"value, {search}" for search in searches)]
    assert players["value, 2 plies, solver 8"]["regret"] < players["policy alone"]["regret"]
    assert set(players["policy alone"]["rungs"]) >= {"random", "greedy"}
