"""Fitting a deep network: the compiled steps are torch's, threads do not matter, a fit goes on exactly, and it learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.boards import board_tensor
from models.deep_net import LARGEST, DeepPatternNet
from models.dense_net import DenseNet
from models.files import read_weights
from models.networks import NETWORKS, network_of
from models.pattern_net import PatternNet
from reversi_env import ReversiError, Rules, batch
from reversi_env.core.symmetry import transform
from search import evaluators
from search.batch import search_batch
from tests.train.test_fit import StoppedError, exact_labels, same, values_of, weights_of
from train.fitting.bootstrap import Bootstrap, BootstrapOptions
from train.fitting.deep_engine import DeepCpuEngine
from train.fitting.engines import TorchEngine, draws, node_weights_of, prepared
from train.fitting.fit import fit, preset
from train.fitting.options import FitOptions
from train.fitting.stages import GAMES_OPENING, Stage, stages_of
from train.fitting.trees import grow, single_nodes

FEW = FitOptions(epochs=3, batch=64, held_out=0.2, rate=0.005, decay=0.5)


@pytest.fixture(scope="module")
def labels():
    return exact_labels()


def loud_net():
    """A network whose sums are cut off on both sides, and whose units are on for some positions only."""
    net, generator = DeepPatternNet(6), torch.Generator().manual_seed(4)
    with torch.no_grad():
        net.table.weight.copy_(torch.randn(net.table.weight.shape, generator=generator) * 0.12)
        net.heads.copy_(torch.randn(net.heads.shape, generator=generator))
    return net


@pytest.mark.parametrize("begin", [loud_net, lambda: DeepPatternNet(6)], ids=["loud", "as it begins"])
def test_both_engines_take_the_same_steps(labels, begin):
    """The compiled kernels against torch's own gradients and its own Adam; at first some sums are exactly 0."""
    few = single_nodes(labels.select(np.arange(200)))
    found = []
    for make in (DeepCpuEngine, TorchEngine):
        net = begin()
        start = weights_of(net)
        data = prepared(net, few, node_weights_of(few, FEW), torch.device("cpu"))
        engine = make(net, data, data, FEW)
        errors = [engine.epoch(1), engine.epoch(2)]
        engine.write_to(net, engine.weights())
        found.append((errors, weights_of(net), engine.validation_values()))
    (errors, weights, values), (torch_errors, torch_weights, torch_values) = found
    assert errors == pytest.approx(torch_errors, rel=1e-4)
    assert np.abs(values - torch_values).max() < 0.02
    for ours, theirs, before in zip(weights, torch_weights, start, strict=True):
        reached = ours != before  # the others fade with torch, and stay with the kernels
        assert reached.mean() > 0.001
        assert np.abs(ours - theirs)[reached].max() < 1e-4


def test_threads_do_not_matter(labels):
    nets = [loud_net(), loud_net()]
    for net, threads in zip(nets, (1, 3), strict=True):
        fit(net, labels, FEW, threads=threads)
    assert same(*nets)


@pytest.mark.parametrize("kind", [DeepPatternNet, DenseNet])
def test_resumed_it_ends_with_the_same_weights(labels, tmp_path, kind):
    def stop(epoch):
        if epoch.number == 2:
            raise StoppedError

    whole, resumed, path = kind(6), kind(6), tmp_path / "checkpoint"
    report = fit(whole, labels, FEW)
    with pytest.raises(StoppedError):
        fit(resumed, labels, FEW, checkpoint=path, progress=stop)
    resumed = kind(6)
    assert fit(resumed, labels, FEW, checkpoint=path) == report
    assert same(whole, resumed)


def images(own, opp, symmetries):
    """Boards under symmetries, one position at a time."""
    pairs = zip(own, opp, symmetries.tolist(), strict=True)
    turned = [(transform(a, symmetry), transform(b, symmetry)) for a, b, symmetry in pairs]
    return [np.array(boards, np.uint64) for boards in zip(*turned, strict=True)]


@pytest.mark.parametrize("size", [4, 6, 8])
def test_features_of_a_dense_network_turn_with_the_position(size):
    own, opp = batch.random_positions(64, plies=7, seed=size, rules=Rules(size))
    net, symmetries = DenseNet(size), torch.arange(64) % 8
    expected, empties = net.features(*map(board_tensor, images(own, opp, symmetries)))
    features, same_empties = net.features(board_tensor(own), board_tensor(opp))
    assert torch.equal(net.turned(features, symmetries), expected)
    assert torch.equal(empties, same_empties)
    assert not net.symmetric
    assert PatternNet(4).symmetric
    assert DeepPatternNet(4).symmetric


@pytest.mark.parametrize("loss", ["plain", "structural"])
def test_a_dense_network_learns_from_images_that_are_others_every_epoch(labels, loss):
    """An augmented epoch is one over positions that were turned before, all nodes of a tree alike."""
    few, options = labels.select(np.arange(150)), replace(FEW, loss=loss)
    trees = single_nodes(few) if loss == "plain" else grow(few)
    device, drawn, state = torch.device("cpu"), [], None
    net, turned_before = DenseNet(6), DenseNet(6)

    def engine_of(net, trees, options):
        data = prepared(net, trees, node_weights_of(trees, options), device)
        return TorchEngine(net, data, data, options)

    augmented = engine_of(net, trees, options)
    for epoch in (1, 2):
        symmetry = torch.zeros(len(trees), dtype=torch.int64)
        for draw in draws(options, len(trees), epoch, device, turned=True):
            symmetry[draw.trees] = draw.symmetries
        own, opp = images(trees.own, trees.opp, symmetry.repeat_interleave(torch.from_numpy(np.diff(trees.first))))
        plain = engine_of(turned_before, replace(trees, own=own, opp=opp), replace(options, augment=False))
        if state is not None:
            plain.load(state)
        assert augmented.epoch(epoch) == plain.epoch(epoch)
        assert same(net, turned_before)
        state = plain.state()
        drawn.append(symmetry)
    assert set(drawn[0].tolist()) == set(range(8))
    assert not torch.equal(*drawn)


def test_the_order_and_the_blur_of_an_epoch_do_not_depend_on_augmentation():
    turned, straight = ([*draws(FEW, 600, 1, torch.device("cpu"), turned=turned)] for turned in (True, False))
    for one, other in zip(turned, straight, strict=True):
        assert torch.equal(one.trees, other.trees)
        assert torch.equal(one.shifts, other.shifts)
        assert not other.symmetries.any()


def test_it_learns_what_it_is_shown(labels):
    net = DeepPatternNet(6)
    before = np.abs(values_of(net, labels) - labels.score).mean()
    fit(net, labels, replace(FEW, epochs=20, held_out=0.0, rate=0.01, patience=20))
    assert np.abs(values_of(net, labels) - labels.score).mean() < before / 4
    assert net.rows().abs().max() <= LARGEST


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_every_network_learns_is_saved_and_found_again(name, labels, tmp_path):
    """With the preset of its kind, and through a file; what is rounded there is small."""
    net = NETWORKS[name](6)
    before = np.abs(labels.score).mean()
    report = fit(net, labels, preset(6, network=name, batch=64, epochs=10))
    assert report.epochs[-1].training_error < 0.7 * before
    again = network_of(read_weights(net.weights(Rules(6)).save_in(tmp_path)))
    assert type(again) is type(net)
    assert np.abs(values_of(again, labels) - values_of(net, labels)).max() < 2


def test_the_structural_loss_needs_a_gpu(labels):
    with pytest.raises(ReversiError, match="loss='structural' for a deep network on the CPU: expected plain"):
        fit(DeepPatternNet(6), labels, replace(FEW, loss="structural"))


def test_presets_know_the_network():
    assert preset(8, network="deep").decay > preset(8).decay
    assert preset(8, network="deep", epochs=3).epochs == 3


def test_stages_leave_no_gap():
    for network in NETWORKS:
        for exact in range(8, 21):
            covered = {e for stage in stages_of(8, 1.0, network, exact) for e in range(stage.low, stage.high + 1)}
            assert covered == set(range(1, max(covered) + 1))
            assert 45 <= max(covered) <= 59


def test_a_bootstrap_whose_games_a_player_plays_once(tmp_path):
    """Every stage takes positions of its own from the games, solved ones and searched ones; the phases above follow."""
    stages = (Stage(1, 5, 400, fit=FEW), Stage(4, 9, 300, 2, fit=FEW))
    options = BootstrapOptions(size=6, variant="reversed", network="deep", player="six-factor", stages=stages)
    steps = []
    last = Bootstrap(tmp_path, options, progress=steps.append).run()
    sampled = {step.stage for step in steps if step.doing == "sampling"}
    assert sampled == {0}
    labels = [np.load(tmp_path / f"stage-0{k}-labels.npz") for k in (0, 1)]
    boards = [set(zip(part["own"].tolist(), part["opp"].tolist(), strict=True)) for part in labels]
    assert not boards[0] & boards[1]
    assert [np.unique(part["empties"]).tolist() for part in labels] == [[1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]]
    assert read_weights(last).rules == Rules(6, "reversed")
    net = network_of(read_weights(last))
    rows, heads = net.by_phase()
    assert (rows[2:] == rows[2]).all()
    assert (heads[2:] == heads[2]).all()
    assert not (rows[1] == rows[2]).all()
    by_empties = net.by_empties()
    assert all((by_empties[e] == by_empties[8 + e % 2]).all() for e in range(10, 65))
    assert not (by_empties[8] == by_empties[9]).all()


def test_a_stage_whose_games_are_played_otherwise_samples_its_own(tmp_path):
    """As those of the first moves do; its labels are means of two depths over the weights before."""
    stages = (Stage(1, 5, 300, fit=FEW), Stage(11, 12, 60, 2, mean=2, fit=FEW, games=dict(GAMES_OPENING)))
    options = BootstrapOptions(size=6, network="deep", player="six-factor", stages=stages)
    steps = []
    Bootstrap(tmp_path, options, progress=steps.append).run()
    assert {step.stage for step in steps if step.doing == "sampling"} == {0, 1}
    with np.load(tmp_path / "stage-01-labels.npz") as saved:
        own, opp, score, exact = (saved[name] for name in ("own", "opp", "score", "exact"))
    assert not exact.any()
    network = evaluators.get(f"network:weights={tmp_path / 'stage-00.safetensors'}")
    values = [search_batch(own, opp, network, Rules(6), depth) for depth in (1, 2)]
    assert np.array_equal(score, (values[0] + values[1]) / np.float32(2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "wide"}, "network='wide': expected one of linear, deep, dense"),
        ({"player": "nobody"}, "nobody"),
        ({"exact": 9, "size": 4}, "exact for the 4x4 board: expected none"),
        ({"exact": 30}, "exact=30: expected a whole number from 8 to 20"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ReversiError, match=message):
        BootstrapOptions(**changes)
