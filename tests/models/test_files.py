"""Weight files: round trips, and errors that name the file."""

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy

from models.evaluator import FOLDER
from models.files import WeightsError, packaged_file
from models.patterns import NETWORKS, annotate, read_weights
from models.patterns.trainable import PatternModule
from reversi_env import Rules
from reversi_env.storage.checksummed import ChecksumError, pack_checksummed, tensors_hash, unpack_checksummed
from tests.oracles.patterns import random_network


@pytest.fixture
def saved(tmp_path):
    return random_network("linear", 4, variant="reversed").save_in(tmp_path)


def rewritten(path, arrays=None, **changes):
    """Write a file next to *path* with changed header or tensors and without a hash in its name; return its path."""
    header, tensors = unpack_checksummed(path.read_bytes())
    header = {key: value for key, value in (header | changes).items() if value is not None}
    other = path.with_name("other.safetensors")
    other.write_bytes(pack_checksummed(arrays or tensors, header))
    return other


@pytest.mark.parametrize("kind", NETWORKS)
def test_network_round_trips_through_file(kind, tmp_path):
    network = random_network(kind, 6, seed=3, variant="reversed")
    read = read_weights(network.save_in(tmp_path))
    assert type(read) is NETWORKS[kind]
    assert (read.rules, read.record) == (network.rules, {"seed": 3})
    for name, (dtype, shape, *_) in network.arrays(network.rules).items():
        stored = getattr(read, name)
        assert (stored.dtype, stored.shape) == (dtype, shape)
        assert np.array_equal(stored, getattr(network, name))


@pytest.mark.parametrize(("kind", "words"), [("linear", "int16"), ("deep", "a head of")])
def test_summary_names_the_parts_of_a_network(kind, words):
    summary = random_network(kind, 4).summary()
    assert summary.startswith(f"{NETWORKS[kind].architecture}: ")
    assert words in summary


def test_equal_phases_are_stored_once(tmp_path):
    weights = random_network("deep", 4)
    for array in (weights.rows, weights.heads):
        array[0] += 1  # the first phase differs
        array[2:] = array[1]  # the phases from the second on are equal
    arrays = weights.tensors()
    assert [len(array) for array in arrays.values()] == [2, 2]
    path = weights.save_in(tmp_path)
    assert np.array_equal(read_weights(path).rows, weights.rows)
    assert np.array_equal(read_weights(path).heads, weights.heads)
    with pytest.raises(WeightsError, match="rows"):
        read_weights(rewritten(path, arrays | {"heads": arrays["heads"][:1]}))


def test_arrays_of_wrong_shape_type_or_with_nan_are_rejected():
    """The search would convert numbers that are not finite to integers that depend on the processor."""
    linear, deep, net = random_network("linear", 4), random_network("deep", 4), PatternModule("linear", 4)
    for wrong in ({"weights": linear.weights[:, 1:]}, {"constants": linear.constants.astype(float)}):
        with pytest.raises(WeightsError, match=next(iter(wrong))):
            replace(linear, **wrong)
    for number in (np.nan, np.inf):
        with pytest.raises(WeightsError, match="heads"):
            replace(deep, heads=np.full_like(deep.heads, number))
        net.arrays["weights"].fill_(number)
        with pytest.raises(WeightsError, match="parameters"):
            net.to_network(Rules(4))


def test_file_name_has_game_and_hash_and_annotate_adds_record(saved):
    assert re.fullmatch(r"4x4-reversed-[0-9a-f]{12}\.safetensors", saved.name)
    again = random_network("linear", 4, variant="reversed").save_in(saved.parent)
    assert again == saved
    assert list(saved.parent.iterdir()) == [saved]  # no partial file is left
    after = annotate(saved, matches={"six-factor": "98 %"})
    assert after != saved
    assert read_weights(after).record == {"seed": 0, "matches": {"six-factor": "98 %"}}
    assert np.array_equal(read_weights(after).weights, read_weights(saved).weights)


def test_old_file_format_is_checked_by_tensor_hash_with_warning(saved):
    """Names of packaged files must have the hash of the whole file."""
    header, tensors = unpack_checksummed(saved.read_bytes())
    for digest, expectation in (
        (tensors_hash(tensors), pytest.warns(RuntimeWarning, match="old.*no SHA-256 of its header")),
        ("0123", pytest.raises(WeightsError, match="old.*damaged")),
    ):
        old = saved.with_name("4x4-reversed-old.safetensors")
        metadata = {"network": json.dumps(header | {"tensors": digest})}
        old.write_bytes(safetensors.numpy.save(tensors, metadata=metadata))
        with expectation:
            read_weights(old)
    saved.unlink()
    with pytest.raises(WeightsError, match="ends with its hash"):
        packaged_file(saved.parent, "", Rules(4, "reversed"), "reversi train fit")


def test_checksummed_file_round_trips_and_detects_any_bit_flip():
    arrays = {"step": np.array(3.0, np.float32), "transposed": np.arange(6, dtype=np.int16).reshape(2, 3).T}
    data = pack_checksummed(arrays, {"best": 0.1, "epochs": [1, 2]})
    header, unpacked = unpack_checksummed(data)
    assert header == {"best": 0.1, "epochs": [1, 2]}
    for name, array in arrays.items():
        assert unpacked[name].shape == array.shape
        assert unpacked[name].tolist() == array.tolist()
    begin = 8 + int.from_bytes(data[:8], "little")
    padding = range(len(data[:begin].rstrip()), begin)
    for offset in {*range(len(data))} - {*padding}:
        with pytest.raises(ChecksumError):
            unpack_checksummed(data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :])


class Trap:
    """An object that fails the test when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a weight file was unpickled",)


def foreign_file(metadata):
    return safetensors.numpy.save({"weight": np.zeros(3)}, metadata=metadata)


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 200,
        b"not weights at all" * 10,
        pickle.dumps(Trap()),
        (2**60).to_bytes(8, "little") * 4,
        foreign_file(None),
        foreign_file({"format": "pt"}),
        *(foreign_file({"network": text}) for text in ("7", "{", "[]", "{}", "[" * 100_000, '{"a":' * 100_000)),
        None,
    ],
    ids=range(13),
)
def test_foreign_files_are_rejected_and_never_unpickled(tmp_path, content):
    path = tmp_path / "weights.safetensors"
    if content is not None:
        path.write_bytes(content)
    for unreadable in (path, tmp_path):
        with pytest.raises(WeightsError, match=str(unreadable)):
            read_weights(unreadable)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"format": 2}, "format"), ({"format": None}, "format"), ({"architecture": "transformer"}, "architecture")),
        ({"architecture": "deep patterns"}, "tensor 'rows'"),
        *(({"variant": None}, "variant"), ({"size": "many"}, "size"), ({"size": 6}, "int16")),
        ({"architecture": ["deep"]}, "architecture"),
        ({"record": ["none"]}, "record"),
    ],
)
def test_invalid_header_field_is_named(saved, changes, message):
    path = rewritten(saved, **changes)
    with pytest.raises(WeightsError, match=rf"{path.name}.*{message}"):
        read_weights(path)


def test_packaged_weights_are_valid():
    paths = sorted(FOLDER.glob("*.safetensors"))
    assert paths
    assert sum(path.stat().st_size for path in FOLDER.rglob("*.safetensors")) < 60e6
    games = []
    for path in paths:
        weights = read_weights(path)
        games.append((weights.rules.size, weights.rules.variant))
        assert path.name.startswith(f"{weights.rules.size}x{weights.rules.size}-{weights.rules.variant}-")
        assert weights.record
    assert len(games) == len(set(games))
    assert (8, "normal") in games


@pytest.mark.parametrize("folder", ["models/weights", "models/weights/residual"])
def test_network_command_shows_record_of_each_file_type(folder, reversi, json_lines):
    path = min((FOLDER.parents[1] / folder).glob("*.safetensors"))
    [header] = json_lines("network", path)
    assert (header["size"], header["variant"]) == (6, "normal")
    assert header["parameters"] > 10_000
    assert header["record"]["command"].startswith("reversi")
    status, out, _ = reversi("network", path)
    assert status == 0
    assert path.name[:10] in out
