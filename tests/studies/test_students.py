"""The study of students: a student of the package's shape is the package's network, and learns from labels."""

import json
import sys

import numpy as np
import pytest
import torch

from models.boards import board_tensor, turned
from models.networks.deep import SHAPE, DeepPatternNet
from models.trainable import Trainable
from reversi_env import Rules, batch
from studies import students
from train.errors import TrainError


def positions(count):
    return batch.random_positions(count, 10 + np.arange(count) % 12, Rules(6), seed=5)


@pytest.mark.usefixtures("one_torch_thread")
def test_a_student_of_the_same_shape_is_the_network():
    net = Trainable("deep", 6, seed=3)
    net.round()
    student = students.Student(6, DeepPatternNet.row(6), *SHAPE, net.span)
    heads, part = net.arrays["heads"], dict(student.named_parameters())
    sizes = [SHAPE.width, SHAPE.inputs * SHAPE.units, SHAPE.units, SHAPE.units, 1]
    with torch.no_grad():
        part["rows"].copy_(net.arrays["rows"])
        for name, piece in zip(("linear", "first", "bias", "second", "constant"), heads.split(sizes, 1), strict=True):
            part[name].copy_(piece.view(part[name].shape))
    own, opp = positions(50)
    features = torch.as_tensor(net.feature_array(own, opp))
    empties = torch.from_numpy(36 - np.bitwise_count(own | opp).astype(np.float32))
    expected = net.value(features, empties, net.phases_at(empties)).detach()
    assert torch.allclose(student.values(features, empties), expected, atol=1e-4)
    assert expected.std() > 0.1


@pytest.mark.parametrize("size", [6, 8])
def test_what_is_seen_of_moves_is_the_same_in_every_image(size):
    rules = Rules(size)
    boards = [board_tensor(side) for side in batch.random_positions(200, np.arange(200) % 30, rules, seed=5)]
    found = students.seen_of_moves(*boards, rules)
    for symmetry in range(1, 8):
        turn = torch.full_like(boards[0], symmetry)
        image = students.seen_of_moves(*(turned(side, turn) for side in boards), rules)
        for part in (slice(0, 4), slice(4, 8), slice(8, 9)):  # the quarters change their places
            assert (image[:, part].sort(1).values == found[:, part].sort(1).values).all()
    assert found.max() < students.rows_of_moves(rules)
    assert len(found.unique(dim=0)) > 150


def test_a_move_in_a_corner_and_an_odd_quarter_are_seen():
    """The side to move may take a1 and e8, the other d1 and h8; a quarter's corner is bit 0, the end of its edge bit 3."""
    rules = Rules(8)
    own, opp = (board_tensor(np.array([bits], np.uint64)) for bits in (1 << 2 | 1 << 62, 1 << 1 | 1 << 61))
    found = students.seen_of_moves(own, opp, rules)[0].tolist()
    states = 1 << 16
    assert sorted(found[:4]) == [0, 0, 1, 8]
    assert sorted(found[4:8]) == [states, states, states + 1, states + 8]
    assert found[8] == 2 * states  # two discs in each of two quarters


@pytest.fixture
def labels(tmp_path):
    """A folder with 400 labels of 6x6, every second one exact."""
    own, opp = positions(400)
    score = (np.bitwise_count(own).astype(np.float32) - np.bitwise_count(opp)).astype(np.float32)
    np.savez(tmp_path / "labels-0000.npz", own=own, opp=opp, score=score, exact=np.arange(400) % 2 == 0)
    return tmp_path


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_labels_shown_is_the_teachers(labels, monkeypatch, share):
    monkeypatch.setattr(students, "BATCH", 64)
    lesson = students.Lesson(labels, Rules(6), None, torch.device("cpu"))
    rows = lesson.drawn(share, torch.Generator().manual_seed(1))
    assert len(rows) == 64
    assert rows.min() >= lesson.held_out == 40
    assert (~lesson.exact[rows]).sum() == share * 64


def test_labels_of_one_kind_have_no_share(labels):
    with np.load(labels / "labels-0000.npz") as arrays:
        columns = dict(arrays) | {"exact": np.ones(400, bool)}
    np.savez(labels / "labels-0000.npz", **columns)
    lesson = students.Lesson(labels, Rules(6), None, torch.device("cpu"))
    with pytest.raises(TrainError, match="no labels of one kind: expected the teacher's and exact ones"):
        lesson.drawn(0.5, torch.Generator())


@pytest.mark.usefixtures("one_torch_thread")
def test_the_command_prints_a_line_for_each_student(labels, monkeypatch, capsys):
    monkeypatch.setattr(students, "BATCH", 64)
    command = [
        "students",
        str(labels),
        "--size",
        "6",
        "--students",
        "2x2",
        "4x2/8+moves",
        "--seconds",
        "0.3",
    ]
    monkeypatch.setattr(sys, "argv", command)
    students.main()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = [(line["width"], line["units"], line["span"], line["moves"]) for line in lines]
    assert told == [(2, 2, 4, False), (4, 2, 8, True)]
    assert all(line["samples"] >= 64 and line["held_out"] < 20 and "bias_14" in line for line in lines)
    with pytest.raises(TrainError, match="student '8': expected WIDTHxUNITS"):
        students.shape_of("8")
