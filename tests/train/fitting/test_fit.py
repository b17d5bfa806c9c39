"""Fitting: all networks learn and resume exactly, kernels equal torch, the held-out split respects symmetry."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import safetensors.numpy
import torch

from models.bitboards import bit_counts, board_tensor
from models.patterns import NETWORKS, read_weights
from models.patterns.network import ArraySpec, Network
from models.patterns.trainable import PatternModule
from reversi_env import ReversiError, Rules, batch
from reversi_env.kernels.symmetry import transform
from reversi_env.storage.checksummed import unpack_checksummed
from search import evaluators
from tests.oracles.patterns import loud_net
from train.fitting.cpu_backend import COMPILED
from train.fitting.fit import fit, held_out_rows
from train.fitting.options import FitOptions, preset
from train.fitting.stages import stages_of
from train.fitting.torch_backend import TorchBackend, prepare
from train.fitting.training import train_on_labels
from train.labels import LabelOptions, generate, label_positions, sample_positions

FEW = FitOptions(epochs=3, batch_size=64, held_out=0.2)


def exact_labels(size=6, count=600, empties=(2, 8), variant="normal"):
    options = LabelOptions(size=size, variant=variant, count=count, empties=empties, play_depth=1)
    return label_positions(*sample_positions(options, 0), options)


@pytest.fixture(scope="module")
def labels():
    return exact_labels()


def values_of(net, labels):
    with torch.no_grad():
        return net(board_tensor(labels.own), board_tensor(labels.opp)).numpy()


def weights_of(net):
    return [parameter.detach().numpy().copy() for parameter in net.parameters()]


def same_weights(one, other):
    return all((a == b).all() for a, b in zip(weights_of(one), weights_of(other), strict=True))


def test_the_fit_recovers_teacher_weights():
    options = LabelOptions(size=4, count=900, empties=(2, 5), play_depth=1, noise=(1.0,), prefixes=(1,))
    own, opp = sample_positions(options, 0)
    teacher = PatternModule("linear", 4)
    generator = torch.Generator().manual_seed(1)
    for parameter in teacher.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    blank = label_positions(own, opp, replace(options, labeller="six-factor:depth=1,exact=0"))
    planted = replace(blank, score=values_of(teacher, blank))
    assert np.abs(planted.score).mean() > 2
    net = PatternModule("linear", 4)
    slow = {"learning_rate": 0.1, "weight_decay": 0.0, "phase_jitter": 0.0, "patience": 40}
    report = fit(net, planted, FitOptions(epochs=40, batch_size=64, held_out=0.1, **slow))
    assert report.epochs[-1].training_error < 0.1
    assert report.validation_error < 0.35 * np.abs(planted.score).mean()
    assert np.abs(values_of(net, planted) - planted.score).mean() < 0.3
    assert report.positions + report.held_out == 900


@pytest.mark.parametrize("size", [4, 6, 8])
def test_the_split_never_separates_symmetric_images(size):
    rules = Rules(size)
    own, opp = batch.random_positions(2000, plies=7, seed=3, rules=rules)
    chosen = held_out_rows(own, opp, 0.1)
    assert 0.05 < chosen.mean() < 0.15
    for symmetry in range(8):
        images = [np.array([transform(b, symmetry) for b in boards], np.uint64) for boards in (own, opp)]
        assert (held_out_rows(*images, 0.1) == chosen).all()
    assert not held_out_rows(own, opp, 0.0).any()


def test_held_out_positions_are_not_trained_on(labels):
    hidden, nets, errors = held_out_rows(labels.own, labels.opp, 0.2), [], []
    for score in (labels.score, np.where(hidden, np.float32(30), labels.score)):
        nets.append(PatternModule("linear", 6))
        report = fit(nets[-1], replace(labels, score=score), replace(FEW, epochs=1))
        errors.append(report.validation_error)
    assert same_weights(*nets)
    assert errors[1] > errors[0] + 5


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_network_learns_and_saves_its_values(kind, labels, tmp_path):
    net = PatternModule(kind, 6)
    report = fit(net, labels, preset(6, network=kind, batch_size=64, epochs=10, held_out=0.2))
    assert report.epochs[-1].training_error < 0.7 * np.abs(labels.score).mean()
    path = net.to_network(labels.rules).save_in(tmp_path)
    again = PatternModule.of(read_weights(path))
    assert again.kind is net.kind is NETWORKS[kind]
    assert same_weights(net, again)
    for name, most in net.kind.max_magnitude.items():
        assert net.arrays[name].abs().max() <= most
    held_out = labels.select(held_out_rows(labels.own, labels.opp, 0.2))
    values, most = values_of(net, held_out), labels.rules.square_count - 0.5
    assert np.abs(values - held_out.score).mean() == pytest.approx(report.validation_error, abs=1e-4)
    evaluator = evaluators.get_evaluator(f"network:weights={path}")
    searched = evaluator.static_values(held_out.own, held_out.opp, labels.rules)
    assert searched == pytest.approx(values.clip(-most, most), abs=1e-3)


@dataclass(frozen=True)
class DiscCount(Network):
    """The smallest network: the disc counts of both sides, each times a weight."""

    name = architecture = "disc count"
    both: np.ndarray

    @classmethod
    def arrays(cls, rules):
        return {"both": ArraySpec(np.float32, (2,))}

    @classmethod
    def features(cls, size, own, opp):
        counts = torch.stack([bit_counts(own), bit_counts(opp)], dim=-1)
        return counts, size**2 - counts.sum(-1)

    @classmethod
    def value(cls, parameters, features, empties, phases):
        return features.to(torch.float32) @ parameters["both"]


def test_a_new_network_needs_one_class(labels, tmp_path, monkeypatch):
    monkeypatch.setitem(NETWORKS, DiscCount.name, DiscCount)
    net = PatternModule("disc count", 6)
    report = fit(net, labels, preset(6, network="disc count", batch_size=64))
    assert report.epochs[-1].training_error < 0.9 * np.abs(labels.score).mean()
    network = read_weights(net.to_network(Rules(6)).save_in(tmp_path))
    assert type(network) is DiscCount
    assert network.both.tolist() == net.both.tolist()
    assert stages_of(6, network="disc count")[0].fit == preset(6, network="disc count")


@pytest.mark.parametrize(
    "make_net", [loud_net, pytest.param(PatternModule, marks=pytest.mark.slow)], ids=["random", "initial"]
)
@pytest.mark.parametrize("kind", COMPILED)
def test_kernels_and_torch_take_the_same_steps(labels, kind, make_net):
    """The compiled kernels against torch's gradients and Adam. In a new network some sums are exactly 0."""
    options = replace(FEW, huber_delta=5.0, weight_decay=0.5, learning_rate=0.03 if kind == "linear" else 0.005)
    outcomes = []
    for make in (COMPILED[kind], TorchBackend):
        net = make_net(kind, 6)
        start = weights_of(net)
        data = prepare(net, labels.select(np.arange(200)))
        engine = make(net, data, data, options)
        errors = [engine.epoch(1), engine.epoch(2)]
        engine.load_weights(engine.weights())
        outcomes.append((errors, weights_of(net), engine.validation_values()))
    (errors, weights, values), (torch_errors, torch_weights, torch_values) = outcomes
    assert errors == pytest.approx(torch_errors, rel=1e-4)
    assert np.abs(values - torch_values).max() < 0.02
    for ours, theirs, before in zip(weights, torch_weights, start, strict=True):
        reached = ours != before  # torch decays the other weights, the kernels keep them
        assert reached.mean() > 0.001
        assert (np.abs(ours - theirs)[reached] > 1e-3).mean() < 1e-3


@pytest.mark.parametrize("kind", COMPILED)
def test_thread_count_does_not_change_the_weights(labels, kind):
    nets = [loud_net(kind, 6), loud_net(kind, 6)]
    for net, threads in zip(nets, (1, 3), strict=True):
        fit(net, labels, FEW, threads=threads)
    assert same_weights(*nets)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_resumed_fit_ends_with_the_same_weights(labels, tmp_path, kind):
    few = labels.select(np.arange(200))
    options = replace(FEW, epochs=5)
    uninterrupted = PatternModule(kind, 6)
    report = fit(uninterrupted, few, options)

    def stop(epoch):
        if epoch.number == stop.after:
            stop.after += 2
            raise KeyboardInterrupt

    stop.after = 1
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fit(PatternModule(kind, 6), few, options, checkpoint=tmp_path / "fit", progress=stop)
    resumed = PatternModule(kind, 6)
    seen = []
    assert fit(resumed, few, options, checkpoint=tmp_path / "fit", progress=seen.append) == report
    assert tuple(seen) == report.epochs
    assert same_weights(uninterrupted, resumed)
    again = PatternModule(kind, 6)  # the fit is finished
    assert fit(again, few, options, checkpoint=tmp_path / "fit") == report
    assert same_weights(uninterrupted, again)


def test_other_or_damaged_checkpoints_are_refused(labels, tmp_path):
    path, few, options = tmp_path / "fit", labels.select(np.arange(100)), replace(FEW, epochs=1)
    fit(PatternModule("linear", 6), few, options, checkpoint=path)
    for kind, positions, other, message in (
        ("linear", few, replace(options, seed=1), "seed=0"),
        ("deep", few, options, "linear"),
        ("linear", labels, options, "labels"),
    ):
        with pytest.raises(ReversiError, match=message):
            fit(PatternModule(kind, 6), positions, other, checkpoint=path)
    data = path.read_bytes()
    header, arrays = unpack_checksummed(data)
    tensors = 8 + int.from_bytes(data[:8], "little")
    contents = [data[:-100], safetensors.numpy.save(arrays, metadata={"network": json.dumps(header)})]
    for place in (data.index(b"epochs"), tensors, (tensors + len(data)) // 2):
        contents.append(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ReversiError, match="fit'"):
            fit(PatternModule("linear", 6), few, options, checkpoint=path)


def test_early_stopping_keeps_the_best_weights(labels, tmp_path):
    net, path = PatternModule("linear", 6), tmp_path / "fit"
    options = FitOptions(epochs=40, batch_size=64, learning_rate=3.0, held_out=0.2, patience=2)
    report = fit(net, labels, options, checkpoint=path)
    assert len(report.epochs) < 40
    assert fit(PatternModule("linear", 6), labels, options, checkpoint=path) == report  # no further epochs
    assert report.validation_error == min(epoch.validation_error for epoch in report.epochs)
    hidden = labels.select(held_out_rows(labels.own, labels.opp, 0.2))
    errors = np.abs(values_of(net, hidden) - hidden.score)
    assert errors.mean() == pytest.approx(report.validation_error, abs=0.01)
    by_empties = {e: errors[hidden.empties == e].mean() for e in np.unique(hidden.empties)}
    assert report.error_by_empties == pytest.approx(by_empties, abs=0.01)


@pytest.mark.parametrize("by_torch", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["compiled", "torch"])
def test_weights_without_labels_stay_unchanged(labels, tmp_path, monkeypatch, by_torch):
    """With torch, weight decay would move all weights."""
    if by_torch:
        monkeypatch.setattr("train.fitting.cpu_backend.COMPILED", {})
    net = PatternModule("linear", 6)
    torch.nn.init.constant_(net.weights, 0.25)
    start = f"network:weights={net.to_network(labels.rules).save_in(tmp_path)}"
    generate(LabelOptions(size=6, count=600, empties=(2, 8), play_depth=1), tmp_path / "labels")
    options = replace(FEW, weight_decay=0.5, learning_rate=0.1)
    result = train_on_labels(tmp_path / "labels", tmp_path / "out", options, start=start, threads=1)
    occurs = np.zeros(net.weights.shape[1], np.bool_)
    occurs[net.feature_array(labels.own, labels.opp)] = True
    weights = read_weights(result.weights).parameters()["weights"]
    assert (weights[:, ~occurs] == 0.25).all()
    assert not (weights[:, occurs] == 0.25).all()


def test_a_diverged_fit_is_reported(labels):
    for fine_tunes in (False, True):
        net = PatternModule("deep", 6)
        net.arrays["heads"][:, -1] = np.nan  # as after too large steps
        with pytest.raises(ReversiError, match="diverged"):
            fit(net, labels, FEW, fine_tunes=fine_tunes)


def test_unsuitable_data_are_refused(labels):
    with pytest.raises(ReversiError, match="6x6"):
        fit(PatternModule("linear", 8), labels)
    with pytest.raises(ReversiError, match="0 positions"):
        fit(PatternModule("linear", 6), labels.select(np.zeros(600, np.bool_)))
    with pytest.raises(ReversiError, match="device 'tpu'"):
        fit(PatternModule("linear", 6), labels, device="tpu")
    score = labels.score.copy()
    score[7] = np.nan
    with pytest.raises(ReversiError, match="position 7"):
        fit(PatternModule("linear", 6), replace(labels, score=score))
