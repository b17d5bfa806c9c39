"""`reversi train fit` and `bootstrap`: files, output, fine-tuning, and one-line errors."""

import csv
import hashlib
import json
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.patterns import read_weights
from reversi_env import __version__
from search import evaluators
from tests.oracles.jobs import files
from tests.play.cli.test_contract import check_refusal
from train.labels import LabelOptions, generate

LABELS = LabelOptions(size=6, variant="reversed", count=3000, empties=(3, 7), shard_rows=2000, play_depth=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with labels, in ``labels``."""
    path = tmp_path_factory.mktemp("training")
    generate(LABELS, path / "labels")
    return path


@pytest.fixture
def workdir(folder, tmp_path, monkeypatch):
    """An empty working folder next to the labels."""
    path = folder / tmp_path.name
    path.mkdir()
    monkeypatch.chdir(path)
    return path


def test_fit_writes_its_files_and_the_table(reversi, workdir):
    code, out, err = reversi("train", "fit", "../labels", "--out", "out", "--epochs", 3, "--held-out", 0.2, "--seed", 4)
    assert (code, err) == (0, "")
    (path,) = (workdir / "out").glob("6x6-reversed-*.safetensors")
    assert {file.name for file in (workdir / "out").iterdir()} == {
        *(path.name, "checkpoint.safetensors", "log.csv", "error-by-empties.svg")
    }
    assert f"weights: out/{path.name}" in out
    record = read_weights(path).record
    assert record["command"] == "reversi train fit ../labels --epochs 3 --held-out 0.2 --seed 4"
    assert (record["options"]["epochs"], record["options"]["seed"], record["version"]) == (3, 4, __version__)
    root = Path(__file__).parents[3]
    head = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    commit = record["commit"] and record["commit"].removesuffix("-dirty")
    assert commit == (head.stdout.strip() if (root / ".git").exists() else None)
    assert record["data"]["labels"] == LABELS.as_dict()
    assert (record["data"]["rows"], record["data"]["exact"]) == (3000, 3000)
    assert record["positions"] + record["held_out"] == 3000
    assert record["error_by_empties"].keys() == {"3", "4", "5", "6", "7"}
    with (workdir / "out" / "log.csv").open() as log:
        rows = list(csv.DictReader(log))
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    assert min(float(row["validation_error"]) for row in rows) == pytest.approx(record["validation_error"], abs=1e-3)
    assert ET.parse(workdir / "out" / "error-by-empties.svg").getroot().tag.endswith("svg")
    evaluators.get_evaluator(f"network:weights={path}").record(LABELS.rules)


def test_fit_prints_json_and_keeps_a_finished_fit(reversi, workdir):
    fit = ("train", "fit", "../labels", "-o", "out", "--json")
    arguments = (*fit, "--epochs", 2, "--patience", 1)
    code, out, err = reversi(*arguments)
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result.keys() == {"weights", "validation_error", "by_empties", "positions", "epochs", "seconds"}
    assert (result["positions"], result["epochs"]) == (3000, 2)
    assert [row["empties"] for row in result["by_empties"]] == [3, 4, 5, 6, 7]
    before = files(workdir / "out")
    assert reversi(*arguments)[0] == 0  # already finished
    assert files(workdir / "out") == before
    check_refusal(reversi, (*arguments, "--device", "tpu"), "--device tpu")


@pytest.mark.slow
def test_training_continues_from_weights(reversi, workdir):
    def fitted(out, *arguments):
        assert reversi("train", "fit", *arguments, "--out", out)[0] == 0
        [path] = (workdir / out).glob("6x6-*.safetensors")
        return path

    for seed, name in ((1, "more"), (2, "again")):
        generate(replace(LABELS, count=1500, empties=(9, 10), seed=seed), workdir / name)
    first = fitted("first", "../labels", "more", "--epochs", 4)
    base, again = read_weights(first), ("again", "--start", f"network:weights={first}")
    assert [part["rows"] for part in base.record["data"]] == [3000, 1500]
    assert base.record["error_by_empties"].keys() == {"3", "4", "5", "6", "7", "9", "10"}
    tuned, span = read_weights(fitted("second", *again, "--epochs", 4)), base.span(6)
    assert tuned.record["start_sha256"] == hashlib.sha256(first.read_bytes()).hexdigest()
    changed = {phase for phase in range(len(base.weights)) if (base.weights[phase] != tuned.weights[phase]).any()}
    assert changed == {9 // span, 10 // span}
    others = np.delete(np.arange(len(base.constants)), [9, 10])
    assert np.array_equal(base.constants[others], tuned.constants[others])
    diverged = read_weights(fitted("ruined", *again, "--epochs", 1, "--learning-rate", 10))
    assert np.array_equal(diverged.weights, base.weights)  # worse weights are not kept
    arguments = ("train", "fit", "again", "--out", "third", "--start")
    for start, match in (
        ("six-factor", "six-factor"),
        ("network:weights=nowhere", "nowhere"),
        ("network --network linear", "linear"),
    ):
        check_refusal(reversi, (*arguments, *start.split()), match)
    check_refusal(reversi, (*arguments[:3], workdir.parent / "labels", "--size", 6, "--out", "third"), "--size")
    generate(replace(LABELS, variant="normal", count=50, empties=(5, 5)), workdir / "other")
    check_refusal(reversi, ("train", "fit", "again", "other", "--out", "third"), "different games")
    assert not (workdir / "third").exists()


def test_bootstrap_writes_reproducible_weights(reversi, workdir):
    names = []
    for out in (("--out", "one"), ("-o", "two"), ("--out=three",)):
        code, shown, _ = reversi("train", "bootstrap", "--size", 4, "--variant", "reversed", *out, "--scale", 0.1)
        assert code == 0
        paths = workdir.glob("*/4x4-reversed-*.safetensors")
        names += [path.name for path in paths if f"weights: {path.parent.name}/" in shown]
    assert len(names) == 3
    assert len(set(names)) == 1
    record = read_weights(workdir / "one" / names[0]).record
    assert record["command"] == "reversi train bootstrap --size 4 --variant reversed --scale 0.1"
    with (workdir / "two" / "log.csv").open() as log:
        times = [float(row["label_seconds"]) + float(row["fit_seconds"]) for row in csv.DictReader(log)]
    assert len(times) == len(record["figures"])
    assert "seconds" not in json.dumps(record)
