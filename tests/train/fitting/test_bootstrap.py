"""Training from scratch: stages, resumption, refusals, the demonstration."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.patterns import NETWORKS, read_weights
from models.patterns.trainable import PatternModule
from reversi_env import ReversiError, Rules
from search import evaluators
from search.engine.batch import search_batch
from tests.oracles.jobs import files
from train.fitting.bootstrap import Bootstrap
from train.fitting.fit import FitOptions
from train.fitting.stages import GAMES_OPENING, BootstrapOptions, Stage, stages_of
from train.fitting.training import train_from_scratch

FEW = FitOptions(epochs=3, batch_size=64)
FEW_DEEP = FitOptions(epochs=3, batch_size=64, held_out=0.2, learning_rate=0.005, weight_decay=0.5)
STAGES = (
    Stage(1, 5, 400, fit=FEW),
    Stage(6, 9, 300, 2, fit=FEW),
    Stage(6, 13, 240, 3, joint=True, fit=replace(FEW, learning_rate=0.01)),
)
SMALL = BootstrapOptions(size=6, variant="reversed", stages=STAGES)


@pytest.mark.parametrize("variant", ["normal", "reversed"])
def test_training_from_scratch_on_4x4(tmp_path, variant):
    trained = train_from_scratch(tmp_path, BootstrapOptions(size=4, variant=variant), command="reversi train")
    saved = read_weights(trained.weights)
    assert saved.rules == Rules(4, variant)
    assert saved.record.keys() >= {"options", "figures", "command", "version", "commit", "device"}
    assert trained.error_by_empties.keys() == {1, 2, 3, 4, 5}
    assert trained.validation_error < 5
    leftover = tmp_path / "stage-00-fit.safetensors"
    leftover.write_bytes(b"left by a killed run")
    again = train_from_scratch(tmp_path, BootstrapOptions(size=4, variant=variant), command="reversi train")
    assert again == trained
    assert not leftover.exists()


def test_stages_cover_all_empties():
    presets = [((size, 0.5), last) for size, last in ((4, 5), (6, 25), (8, 50))]
    presets += [((8, 1.0, network, exact), None) for network in NETWORKS for exact in range(8, 21)]
    for arguments, last in presets:
        stages = stages_of(*arguments)
        covered = {e for stage in stages for e in range(stage.low, stage.high + 1)}
        assert covered == set(range(1, max(covered) + 1))
        assert max(covered) == last if last else 45 <= max(covered) <= 59
        assert len({stage.name for stage in stages}) == len(stages)
    assert stages_of(8, 2.0)[0].count == 2 * stages_of(8)[0].count


@pytest.mark.slow
def test_bootstrap_with_a_player_samples_games_once(tmp_path):
    stages = (Stage(1, 5, 400, fit=FEW_DEEP), Stage(4, 9, 300, 2, fit=FEW_DEEP))
    options = BootstrapOptions(size=6, variant="reversed", network="deep", player="six-factor", stages=stages)
    steps = []
    last = Bootstrap(tmp_path, options, progress=lambda *step: steps.append(step)).run()
    assert {doing for doing, *_ in steps if "sampling" in doing} == {"stage 1/2 exact-1-5: sampling"}
    labels = [np.load(tmp_path / f"stage-0{k}-labels.npz") for k in (0, 1)]
    boards = [set(zip(part["own"].tolist(), part["opp"].tolist(), strict=True)) for part in labels]
    assert not boards[0] & boards[1]
    assert [np.unique(part["empties"]).tolist() for part in labels] == [[1, 2, 3, 4, 5], [4, 5, 6, 7, 8, 9]]
    assert read_weights(last).rules == Rules(6, "reversed")
    net = PatternModule.of(read_weights(last))
    rows, heads = net.by_phase()
    assert (rows[2:] == rows[2]).all()
    assert (heads[2:] == heads[2]).all()
    assert not (rows[1] == rows[2]).all()
    by_empties = net.by_empties()
    assert all((by_empties[e] == by_empties[8 + e % 2]).all() for e in range(10, 65))
    assert not (by_empties[8] == by_empties[9]).all()
    # Deleted files are made again with the same content, as error messages about damaged files promise.
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*") if path.suffix in (".npz", ".safetensors")}
    for name in (last.name, "games.npz", "stage-00-labels.npz", "stage-01-labels.npz"):
        (tmp_path / name).unlink()
    Bootstrap(tmp_path, options).run()
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


@pytest.mark.slow
def test_linear_stages_keep_lower_phases_and_remake_files(tmp_path):
    stages = tuple(replace(stage, depth=0, high=min(stage.high, 9)) for stage in STAGES)  # needs no compiled search
    options = replace(SMALL, player="six-factor", stages=stages)
    Bootstrap(tmp_path, options).run()
    before = {name: data for name, data in files(tmp_path).items() if name.startswith("stage-")}
    assert len(before) == 6
    first, second, last = (read_weights(tmp_path / f"stage-0{k}.safetensors").weights for k in range(3))
    assert np.array_equal(first[:3], second[:3])  # two empty squares each
    assert (second[5:] == second[4]).all()
    assert not any((one == other).all() for one, other in ((first[3:5], second[3:5]), (second[:3], last[:3])))
    for name in before.keys() - {"stage-00.safetensors", "stage-01-labels.npz"}:
        (tmp_path / name).unlink()
    Bootstrap(tmp_path, options).run()
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


@pytest.mark.parametrize(
    ("folder", "changes", "device", "named"),
    [
        ("a,b", {"size": 4}, "cpu", "a,b"),
        ("never-made", {"size": 8, "scale": 0.001, "exact": 18}, "cuda", "18 empties"),
    ],
)
def test_bad_folders_and_too_many_gpu_empties_are_refused(tmp_path, monkeypatch, folder, changes, device, named):
    monkeypatch.setattr("train.fitting.bootstrap.checked_device", torch.device)  # pretend that there is a GPU
    with pytest.raises(ReversiError, match=named):
        Bootstrap(tmp_path / folder, BootstrapOptions(**changes), device=device).run()
    assert not (tmp_path / folder).exists()


def test_a_stage_with_other_games_samples_its_own(tmp_path):
    stages = (Stage(1, 5, 300, fit=FEW_DEEP), Stage(11, 12, 60, 2, mean=2, fit=FEW_DEEP, games=dict(GAMES_OPENING)))
    options = BootstrapOptions(size=6, network="deep", player="six-factor", stages=stages)
    steps = []
    Bootstrap(tmp_path, options, progress=lambda *step: steps.append(step)).run()
    assert len({doing for doing, *_ in steps if "sampling" in doing}) == 2
    with np.load(tmp_path / "stage-01-labels.npz") as saved:
        own, opp, score, exact = (saved[name] for name in ("own", "opp", "score", "exact"))
    assert not exact.any()
    network = evaluators.get_evaluator(f"network:weights={tmp_path / 'stage-00.safetensors'}")
    values = [search_batch(own, opp, network, Rules(6), depth) for depth in (1, 2)]
    assert np.array_equal(score, (values[0] + values[1]) / np.float32(2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"stages": ()}, "no stages"), ({"player": "nobody"}, "nobody"), ({"exact": 9, "size": 4}, "4x4")],
)
def test_invalid_options_are_refused(changes, message):
    with pytest.raises(ReversiError, match=message):
        BootstrapOptions(**changes)


@pytest.mark.slow
@pytest.mark.long
def test_demo_command_on_a_small_scale(tmp_path, json_lines):
    arguments = ("demo", "--out", tmp_path, "--scale", 0.02, "--games", 4)
    [first] = json_lines(*arguments)
    assert {"weights", "plot", "errors", "matches"} == first.keys()
    assert (tmp_path / "errors.svg").read_bytes().startswith(b"<?xml")
    for name, errors in first["errors"].items():
        assert name == "network" or sum(first["errors"]["network"].values()) < sum(errors.values())
    assert sum(match["wins"] for match in first["matches"]) > sum(match["losses"] for match in first["matches"])
    assert json_lines(*arguments) == [first]  # nothing is trained again, and the games are reproducible
