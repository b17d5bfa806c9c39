"""Datasets on disk: correct labels, detection of damaged files, resumption; and `reversi label`."""

import json
import os
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from models.bitboards import board_tensor
from models.file_agents import PACKAGED_FOLDER
from models.residual.net import read_residual
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import TrainError
from search import evaluators
from search.engine.batch import search_batch
from search.engine.solver import MAX_SOLVED_EMPTIES, solve, solve_batch
from search.engine.table import TranspositionTable
from search.evaluators.formula import formula_file
from tests.oracles.jobs import REVERSI, files, held, interrupted
from tests.oracles.processes import output_of
from tests.oracles.search import canonical_rows
from train.labels import LabelOptions, Labels, generate, label_positions, read, read_manifest, sample_positions
from train.labels import dataset as storage
from train.labels.labellers import check_solvable

SMALL = LabelOptions(size=4, count=100, empties=(4, 6), shard_rows=40, block_rows=80)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A folder with the dataset SMALL, made without interruption on one thread."""
    folder = tmp_path_factory.mktemp("labels") / "new" / "folder"
    manifest = generate(SMALL, folder, threads=1)
    assert manifest == read_manifest(folder)
    assert manifest.complete
    return folder


@pytest.mark.parametrize("labeller", ["exact", "six-factor:depth=2,exact=7"])
@pytest.mark.parametrize("rules", [Rules(s, v) for s in (6, 8) for v in ("normal", "reversed")], ids=str)
def test_labels_equal_the_solver_or_the_search(rules, labeller, tmp_path):
    options = LabelOptions(
        size=rules.size, variant=rules.variant, count=60, empties=(5, 9), labeller=labeller, shard_rows=25
    )
    generate(options, tmp_path)
    labels = read(tmp_path)
    assert (len(labels), labels.rules) == (60, rules)
    assert np.bincount(labels.empties)[5:].tolist() == [12] * 5
    assert len(set(canonical_rows(labels.own, labels.opp))) == 60
    assert (labels.exact == (labels.empties <= options.max_solved_empties)).all()
    assert (labels.depth == np.where(labels.exact, labels.empties, 2)).all()
    searched = search_batch(labels.own, labels.opp, "six-factor", rules, 2)
    table = TranspositionTable(1)
    for row in range(60):
        position = Position(rules, int(labels.own[row]), int(labels.opp[row]))
        expected = solve(position, table=table).score if labels.exact[row] else searched[row]
        assert (labels.score[row], labels.empties[row]) == (expected, position.empties)


def test_format_of_shards_and_manifest(dataset):
    import pyarrow.parquet as parquet

    table = parquet.read_table(dataset / "shard-00000.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    words = "dictionary<values=string, indices=int8, ordered=0>"
    bytes_ = dict.fromkeys(("empties", "depth", "size"), "uint8")
    assert types == {"own": "uint64", "opp": "uint64", "score": "float", "kind": words, "variant": words, **bytes_}
    assert list(types) == ["own", "opp", "score", "empties", "kind", "depth", "variant", "size"]
    row = table.slice(0, 1).to_pylist()[0]
    assert (row["kind"], row["variant"], row["size"], row["empties"]) == ("exact", "normal", 4, 4)
    content = json.loads((dataset / "manifest.json").read_text())
    assert (content["format"], content["rows"], content["complete"]) == ("reversi-labels-1", 100, True)
    assert LabelOptions.from_dict(content["options"]) == SMALL
    assert [shard["rows"] for shard in content["shards"]] == [40, 40, 20]
    assert set(files(dataset)) == {"manifest.json", *(shard["file"] for shard in content["shards"])}


def test_an_interrupted_dataset_is_readable_and_resumes(dataset, tmp_path):
    def interrupt(doing, done, total):
        if doing == "labelling" and done > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(SMALL, tmp_path, threads=1, progress=interrupt)
    rows = read_manifest(tmp_path).rows
    with pytest.raises(TrainError, match=f"{rows // 40} of 3"):
        read(tmp_path)
    assert len(read(tmp_path, partial=True)) == rows
    generate(SMALL, tmp_path)
    assert files(tmp_path) == files(dataset)


def test_a_flipped_byte_is_detected_and_the_shard_made_again(dataset, tmp_path):
    for name in ("shard-00000.parquet", "shard-00002.parquet"):
        folder = shutil.copytree(dataset, tmp_path / name)
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).write_bytes(data)
        for use in (lambda f=folder: read(f), lambda f=folder: generate(SMALL, f)):
            with pytest.raises(TrainError, match=f"{name}' is damaged"):
                use()
        (folder / name).unlink()
        with pytest.raises(TrainError, match=f"{name}' is missing"):
            read(folder)
        assert storage.rows_in_place(folder) == (60 if name == "shard-00000.parquet" else 80)
        generate(SMALL, folder)
        assert files(folder) == files(dataset)


@pytest.mark.parametrize(
    ("column", "number"),
    [("score", np.nan), ("score", np.inf), ("score", -16.5), ("empties", 3), ("own", 2**64 - 1), ("opp", 1)],
)
def test_impossible_rows_are_refused_despite_a_correct_hash(dataset, tmp_path, column, number):
    folder = shutil.copytree(dataset, tmp_path / "odd")
    manifest = read_manifest(folder)
    labels = storage.read_shard(folder, manifest.shards[1], SMALL.rules)
    changed = getattr(labels, column).copy()
    changed[7] = number
    storage.add_shard(folder, manifest, 1, replace(labels, **{column: changed}))
    with pytest.raises(TrainError, match=f"shard-00001.parquet.*row 7.*{column}"):
        read(folder)


def test_labelling_resumes_only_with_the_same_weights(tmp_path):
    file, formula = tmp_path / "weights.json", evaluators.get_formula("six-factor")
    file.write_bytes(formula_file(formula, "six-factor", {}, {}))
    name = f"six-factor:weights={file}"
    options = replace(SMALL, player=name, labeller=f"{name},depth=1,exact=4")
    generate(options, tmp_path / "out")
    before = files(tmp_path / "out")
    generate(options, tmp_path / "out")
    file.write_bytes(formula_file(formula.with_weights(corner_weight=7), "six-factor", {}, {}))
    with pytest.raises(TrainError, match="six-factor"):
        generate(options, tmp_path / "out")
    file.unlink()
    assert read_manifest(tmp_path / "out").options == options
    assert len(read(tmp_path / "out")) == options.count
    assert files(tmp_path / "out") == before
    with pytest.raises(ReversiError, match="weights.json"):
        generate(options, tmp_path / "never-made")
    assert not (tmp_path / "never-made").exists()


def test_other_folders_are_refused(dataset, tmp_path):
    with pytest.raises(TrainError, match="manifest.json"):
        read(tmp_path / "nothing")
    for text in ("no JSON", "[]", '{"format": "reversi-labels-9"}', '{"format": "reversi-labels-1"}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(TrainError, match="manifest.json"):
            read(tmp_path)
    folder = shutil.copytree(dataset, tmp_path / "no manifest")
    (folder / "manifest.json").unlink()
    with pytest.raises(TrainError, match="no manifest.json"):
        generate(SMALL, folder)


def test_cuda_solves_labels_and_missing_devices_are_refused(tmp_path, monkeypatch):
    calls = []

    def solve_batch_cuda(own, opp, rules, *, threads, progress):
        calls.append(len(own))
        return solve_batch(own, opp, rules, threads=threads, progress=progress)

    monkeypatch.setitem(sys.modules, "search.gpu.solver", SimpleNamespace(solve_batch_cuda=solve_batch_cuda))
    generate(SMALL, tmp_path / "gpu", device="cuda")
    assert calls == [1, 40, 40, 20]
    monkeypatch.setitem(sys.modules, "search.gpu.solver", None)
    searched = LabelOptions(count=4, empties=(20, 21), labeller="six-factor:depth=1", play_depth=1)
    assert generate(searched, tmp_path / "searched", device="cuda").complete
    for device in ("cuda", "tpu"):
        with pytest.raises(TrainError, match=device):
            generate(SMALL, tmp_path / "none", device=device)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("labeller", "empties", "most"),
    [
        *(("exact", (20, 30), 30), ("six-factor:depth=4", (8, 50), 10), ("six-factor:depth=4", (11, 50), 0)),
        ("six-factor:depth=4,exact=30", (31, 50), 0),
        ("six-factor:depth=28,exact=0", (20, 50), 28),
    ],
)
def test_max_solved_empties_of_a_labeller(labeller, empties, most):
    assert LabelOptions(empties=empties, labeller=labeller).max_solved_empties == most


@pytest.mark.parametrize("size", [6, 8])
def test_too_many_empties_to_solve_are_refused(tmp_path, size):
    most = MAX_SOLVED_EMPTIES[size]
    check_solvable(most, Rules(size), "exact")
    with pytest.raises(TrainError, match=f"at most {most} on"):
        generate(LabelOptions(size=size, empties=(20, most + 1)), tmp_path / "never-made")
    assert not (tmp_path / "never-made").exists()


def test_labels_are_selected_and_joined(dataset):
    labels = read(dataset)
    few = labels.select([5, 3])
    assert few.score.tolist() == [labels.score[5], labels.score[3]]
    again = Labels.concatenate([labels.select(labels.empties == 4), labels.select(labels.empties != 4)])
    assert sorted(canonical_rows(again.own, again.opp)) == sorted(canonical_rows(labels.own, labels.opp))
    with pytest.raises(TrainError, match="no labels"):
        Labels.concatenate([])
    with pytest.raises(TrainError, match="different games"):
        Labels.concatenate([few, replace(few, rules=Rules(6))])
    with pytest.raises(TrainError, match="expected equal lengths"):
        replace(few, score=few.score[:1])


IN_MEMORY = """
import sys; sys.modules['pyarrow'] = None
from train.labels import *
options = LabelOptions(count=40, empties=(9, 12), labeller='six-factor:depth=4,exact=10')
print(label_positions(*sample_positions(options, 0), options).score.tolist())
print(sorted({'torch', 'rich', 'cyclopts', 'sb3_contrib'} & set(sys.modules)))
try: generate(options, 'never-made')
except ValueError as error: print(error)
"""


def test_labelling_in_memory_needs_neither_pyarrow_nor_torch():
    """The second process also runs the kernels from the cache, which crashed in an earlier version."""
    options = LabelOptions(count=40, empties=(9, 12), labeller="six-factor:depth=4,exact=10")
    labels = label_positions(*sample_positions(options, 0), options)
    scores, heavy, error = output_of(IN_MEMORY)
    assert (json.loads(scores), heavy) == (labels.score.tolist(), "[]")
    assert "pyarrow" in error


def test_labels_of_a_residual_network_equal_its_values(tmp_path):
    options = LabelOptions(size=6, count=60, empties=(6, 9), labeller="zero:exact=7", play_depth=1)
    generate(options, tmp_path / "out", threads=1)
    labels = read(tmp_path / "out")
    far = labels.empties > 7
    assert (labels.exact == ~far).all()
    net = read_residual(min(PACKAGED_FOLDER.glob("zero-6x6-normal-*"))).net
    with torch.inference_mode():
        values = net.symmetric_values(board_tensor(labels.own[far]), board_tensor(labels.opp[far])).numpy()
    assert labels.score[far] == pytest.approx(np.clip(values, -35.5, 35.5), abs=1e-5)
    assert labels.score[~far] == pytest.approx(solve_batch(labels.own[~far], labels.opp[~far], Rules(6)))
    assert (labels.depth[far] == 0).all()
    assert "zero" in read_manifest(tmp_path / "out").evaluators
    with pytest.raises(TrainError, match="depth"):
        replace(options, labeller="zero:depth=2")


#: Temporary file that is renamed to a shard.
PART = ".shard-*.part"
#: Positions of a job that no test completes.
MAX_POSITIONS = 60_000
COMMAND = ("--size", "6", "--count", str(MAX_POSITIONS), "--empties", "9-11", "--shard-rows", "30")


def shards(folder):
    """Return the number of shards in the manifest; their files are renamed slightly before."""
    return len(read_manifest(folder).shards) if (folder / "manifest.json").exists() else 0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_prints_progress_and_the_command_resumes(tmp_path):
    folder = tmp_path / "out"

    def interrupted_with(finished):
        command = ("label", folder, *COMMAND)
        status, out, err = interrupted(lambda: shards(folder) == finished, *command, code=held(REVERSI, PART, 4))
        assert (status, out) == (130, "")
        assert f"stopped at {30 * finished} of {MAX_POSITIONS} positions" in err
        return err

    assert interrupted_with(3).startswith("stopped at ")
    assert "3 of 2000 shards, 90 positions; resuming\n" in interrupted_with(6)
    assert len(read(folder, partial=True)) == 30 * 6


def test_label_command_prints_json(reversi, tmp_path):
    arguments = ("label", tmp_path / "out", "--count", 50, "-e", 6, "--size", 4, "-v", "reversed", "--json")
    code, out, err = reversi(*arguments)
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result.keys() == {
        *("folder", "positions", "shards", "resumed_from", "seconds", "positions_per_second", "by_empties")
    }
    assert (result["positions"], result["by_empties"]) == (50, [{"empties": 6, "positions": 50}])
    code, out, err = reversi(*arguments)
    assert (code, json.loads(out)["resumed_from"]) == (0, 50)
    assert "already complete" in err
    assert read(tmp_path / "out").rules.variant == "reversed"


def test_label_command_stores_its_play_options(reversi, tmp_path):
    assert reversi("label", tmp_path / "plain", "--count", 20, "-e", "5", "--size", 4)[0] == 0
    assert read_manifest(tmp_path / "plain").options == LabelOptions(size=4, count=20, empties=(5, 5))
    games = ("--play-depth", 3, "--noise", "0", "--temperature", "0,0.5", "--opening-plies", "2,5")
    assert reversi("label", tmp_path / "other", "--count", 20, "-e", "5", "--size", 4, *games)[0] == 0
    options = read_manifest(tmp_path / "other").options
    assert (options.play_depth, options.noise, options.temperature, options.prefixes) == (3, (0.0,), (0.0, 0.5), (2, 5))
