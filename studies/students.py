"""Which network learns most from a teacher: ``python -m studies.students student --students 8x16 16x16 32x32``.

*STUDENT* is the folder that `reversi train --distil` leaves. A student ``16x32`` has rows of 16 numbers and a head of 32 units,
``16x32/4`` a phase for every 4 empty squares; all have the patterns of the board, and as much time. ``16x32+moves`` sees more: in
each quarter of the board where either side may move, and of which quarters an odd number of squares is empty.

A line of JSON for each: errors in discs on positions that were held out, and error and bias in the package's solved positions, with
``--wthor FOLDER`` also in tournament positions with 24 empties. What a value costs in the search, and what it is worth in games, is
another question. ``--positions`` and ``--share`` say how many labels there are, and how many of those shown are the teacher's.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from models.boards import board_planes, board_tensor, legal_moves
from models.core.deep_value import MOST, ONE
from models.networks.deep import DeepPatternNet
from models.trainable import StraightThrough, Trainable
from reversi_env import Rules
from reversi_env.errors import quoted
from train.errors import TrainError
from train.judging.exact import ExactSet
from train.judging.exam import packaged_papers, recorded_papers, wthor_files
from train.run import load_arrays

#: Positions of a step and of a look at many; positions held out, at most; and the steps in which the rate rises.
BATCH, CHUNK, HELD_OUT, WARM_UP = 1 << 15, 1 << 17, 100_000, 100
#: As `DeepPatternNet` is fitted: Adam's rate, discs beyond which errors count linearly, empties by which phases are blurred, and
#: for which share of the time; spreads and the first sum's discs at the beginning.
RATE, HUBER_DELTA, BLUR, BLURRED = 0.005, 12.0, 2.0, 0.7
ROW_SPREAD, SECOND_SPREAD, SUM_DISCS = 0.01, 2.0, 20.0
#: Features that ``+moves`` adds: four quarters of the board for each side, and which of them are odd.
MOVES_SEEN = 9


class Student(nn.Module):
    """`DeepPatternNet` with rows of *width* numbers, a head of *units* and a phase for every *span* empties.

    Of the features it sees the first *places*, by default all.
    """

    def __init__(self, size: int, rows: int, width: int, units: int, span: int, places: int | None = None) -> None:
        super().__init__()
        generator, self.span, self.places = torch.Generator().manual_seed(0), span, places
        self.phases = (size * size - 4) // span + 1
        table = torch.randn(rows, width, generator=generator) * ROW_SPREAD
        table[:, 0] = 0
        first = torch.randn(2 * width, units, generator=generator) / (2 * width) ** 0.5
        second = torch.randn(units, generator=generator) * SECOND_SPREAD / (units / 16) ** 0.5
        linear = torch.zeros(width)
        linear[0] = SUM_DISCS
        parts = {"rows": table, "linear": linear, "first": first, "bias": torch.full((units,), 0.1), "second": second}
        for name, part in {**parts, "constant": torch.zeros(1)}.items():
            self.register_parameter(name, nn.Parameter(part.repeat(self.phases, *[1] * part.ndim)))

    def forward(self, features: Tensor, empties: Tensor) -> Tensor:
        """Values in discs for the side to move."""
        phase = torch.floor(empties / self.span).long().clamp(0, self.phases - 1)
        part = dict(self.named_parameters())
        rows = self._rounded_rows()
        features = features[:, : self.places] + (phase * rows.shape[1])[:, None]
        sums = functional.embedding_bag(features, rows.flatten(0, 1), mode="sum")
        # products, not look-ups: their gradients are products too, where those of look-ups would be slow scatters
        chosen = functional.one_hot(phase, self.phases).to(rows.dtype)
        head = {name: chosen @ part[name].flatten(1) for name in part if name != "rows"}
        inputs = torch.cat([sums.clamp(0, MOST / ONE), (-sums).clamp(0, MOST / ONE)], dim=-1)
        first = head["first"].view(len(sums), inputs.shape[1], -1)
        units = torch.relu(torch.bmm(inputs[:, None], first)[:, 0] + head["bias"])
        value = (sums * head["linear"]).sum(-1) + (units * head["second"]).sum(-1)
        return value + head["constant"][:, 0]

    def _rounded_rows(self) -> Tensor:
        """The rows as eight bits hold them; gradients pass as if they were not rounded, as in a fit (`Trainable.as_searched`)."""
        rows = self.get_parameter("rows")
        rounded: Tensor = StraightThrough.apply(rows, (rows.detach() * ONE).round().clamp(-MOST, MOST) / ONE)
        return rounded

    @torch.no_grad()
    def values(self, features: Tensor, empties: Tensor) -> Tensor:
        """Values of many positions."""
        pieces = [self(features[i : i + CHUNK], empties[i : i + CHUNK]) for i in range(0, len(features), CHUNK)]
        return torch.cat(pieces)


def seen_of_moves(own: Tensor, opp: Tensor, rules: Rules) -> Tensor:
    """Rows for what ``+moves`` sees, ``(n, 9)``: own moves in the four quarters, the opponent's, and which quarters are odd.

    All quarters share their rows, and a quarter has that of its mirror image: a value is the same under all symmetries.
    """
    mine, theirs = (legal_moves(*sides, rules.playable) for sides in ((own, opp), (opp, own)))
    of_moves = [_quarters(moves, rules.size) for moves in (mine, theirs)]
    bits = 1 << torch.arange((rules.size // 2) ** 2, device=own.device)
    found = [torch.minimum(*((q.flatten(2) * bits).sum(2) for q in (quarters, quarters.mT))) for quarters in of_moves]
    odd = (rules.size // 2) ** 2 + _quarters(own | opp, rules.size).sum((2, 3)) & 1
    found.append(_ring(odd)[:, None])
    return torch.cat([rows + start for rows, start in zip(found, _starts(rules), strict=False)], 1).int()


def rows_of_moves(rules: Rules) -> int:
    """How many rows those are."""
    return _starts(rules)[-1]


def _starts(rules: Rules) -> tuple[int, ...]:
    """Where the rows of own moves, of the opponent's, and of odd quarters begin, and where they end."""
    states = 1 << (rules.size // 2) ** 2
    return 0, states, 2 * states, 2 * states + 16


def _quarters(boards: Tensor, size: int) -> Tensor:
    """``(n, 4, size/2, size/2)``: the quarters in their order around the board, each turned so that its corner comes first."""
    board, half = board_planes(boards, size), size // 2
    return torch.stack([board.rot90(turns, (1, 2))[:, :half, :half] for turns in range(4)], 1)


def _ring(bits: Tensor) -> Tensor:
    """The least number that four bits in a ring make, begun anywhere and read either way."""
    ways = [bits.roll(turn, 1) for turn in range(4)]
    ways += [way.flip(1) for way in ways]
    weights = torch.tensor([1, 2, 4, 8], device=bits.device)
    return torch.stack([(way * weights).sum(1) for way in ways]).amin(0)


class Lesson:
    """Positions of one game with their labels, on a device; *moves*: with the rows of `seen_of_moves` after the patterns'."""

    def __init__(
        self, folder: Path, rules: Rules, most: int | None, device: torch.device, *, moves: bool = False
    ) -> None:
        own, opp, score, exact = _labels(folder, most or sys.maxsize)
        self.rules, self.device, self.moves = rules, device, moves
        self.net = Trainable("deep", rules.size).to(device)
        self.features, self.empties = self.seen(own, opp)
        self.score = torch.from_numpy(score).to(device)
        self.exact = torch.from_numpy(exact).to(device)
        self.held_out = min(HELD_OUT, len(own) // 10)

    def drawn(self, share: float | None, generator: torch.Generator) -> Tensor:
        """Rows of a step: *share* of them with the teacher's labels and the others exact; None: as they come."""
        how: dict[str, Any] = {"generator": generator, "device": self.device}
        if share is None:
            return torch.randint(self.held_out, len(self.score), (BATCH,), **how)
        taught = round(share * BATCH)
        counts = ((self._taught, taught), (self._solved, BATCH - taught))
        return torch.cat([rows[torch.randint(len(rows), (count,), **how)] for rows, count in counts if count])

    @cached_property
    def _taught(self) -> Tensor:
        return self._learnt(~self.exact)

    @cached_property
    def _solved(self) -> Tensor:
        return self._learnt(self.exact)

    def _learnt(self, wanted: Tensor) -> Tensor:
        """Rows of those that are not held out."""
        rows = wanted.nonzero()[:, 0]
        rows = rows[rows >= self.held_out]
        if not len(rows):
            raise TrainError("no labels of one kind: expected the teacher's and exact ones, or no --share")
        return rows

    def seen(self, own: np.ndarray, opp: np.ndarray) -> tuple[Tensor, Tensor]:
        """The features of positions, and their empty squares."""
        features = torch.as_tensor(self.net.feature_array(own, opp)).to(self.device)
        if self.moves:
            pieces = zip(*(board_tensor(side).split(CHUNK) for side in (own, opp)), strict=True)
            more = [seen_of_moves(a.to(self.device), b.to(self.device), self.rules) for a, b in pieces]
            features = torch.cat([features, torch.cat(more).to(features) + DeepPatternNet.row(self.rules.size)], 1)
        empties = self.rules.square_count - np.bitwise_count(own | opp).astype(np.float32)
        return features, torch.from_numpy(empties).to(self.device)


def _labels(folder: Path, most: int) -> list[np.ndarray]:
    """Boards, scores and which are exact: the first of all labels in the folder, whose files are in no order."""
    parts, left = list[list[np.ndarray]](), most
    for path in sorted(folder.glob("labels-*.npz")):
        if left > 0:
            parts.append([array[:left] for array in load_arrays(path, ("own", "opp", "score", "exact"))])
            left -= len(parts[-1][0])
    if not parts:
        raise TrainError(f"no labels in {str(folder)!r}: expected a folder that `reversi train --distil` made")
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


class Shape(NamedTuple):
    """What a student is like; without a *span* its phases are the network's."""

    width: int
    units: int
    span: int | None
    moves: bool


def student_of(lesson: Lesson, shape: Shape) -> Student:
    """A student that has learnt nothing yet, on the lesson's device."""
    rows = DeepPatternNet.row(lesson.rules.size) + (rows_of_moves(lesson.rules) if shape.moves else 0)
    places = lesson.features.shape[1] - (MOVES_SEEN if lesson.moves and not shape.moves else 0)
    size, span = lesson.rules.size, shape.span or lesson.net.span
    return Student(size, rows, shape.width, shape.units, span, places).to(lesson.device)


def fitted(lesson: Lesson, student: Student, seconds: float, weight_decay: float, share: float | None = None) -> int:
    """Fit the student for so long, with *share* of the teacher's labels; the number of positions that it has seen."""
    others = [parameter for name, parameter in student.named_parameters() if name != "rows"]
    groups: list[dict[str, Any]] = [
        {"params": [student.get_parameter("rows")], "weight_decay": weight_decay},
        {"params": others},
    ]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), weight_decay=0.0, fused=lesson.device.type == "cuda")
    generator, steps, began = torch.Generator(lesson.device).manual_seed(1), 0, perf_counter()
    while (done := min(1.0, (perf_counter() - began) / seconds)) < 1 or not steps:
        for group in adam.param_groups:
            group["lr"] = RATE * min(1.0, (steps + 1) / WARM_UP) * (1 + math.cos(math.pi * done)) / 2
        how: dict[str, Any] = {"generator": generator, "device": lesson.device}
        rows = lesson.drawn(share, generator)
        shift = (2 * torch.rand(BATCH, **how) - 1) * (BLUR if done < BLURRED else 0.0)
        values = student(lesson.features[rows], lesson.empties[rows] + shift)
        loss = functional.huber_loss(values, lesson.score[rows], delta=HUBER_DELTA)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        with torch.no_grad():
            student.get_parameter("rows").clamp_(-127 / ONE, 127 / ONE)
        steps += 1
        if lesson.device.type == "cuda" and steps % 20 == 0:
            torch.cuda.synchronize()  # or the clock would run ahead of the steps
    return steps * BATCH


def judged(lesson: Lesson, student: Student, papers: list[ExactSet]) -> dict[str, Any]:
    """Mean errors in discs on what was held out, labels of the teacher and exact ones, and on solved positions."""
    rows = slice(0, lesson.held_out)
    off = (student.values(lesson.features[rows], lesson.empties[rows]) - lesson.score[rows]).abs()
    exact = lesson.exact[rows]
    found: dict[str, Any] = {"held_out": _mean(off[~exact]), "held_out_exact": _mean(off[exact])}
    for truth in papers:
        scores = torch.from_numpy(truth.scores).to(lesson.device)
        wrong = student.values(*lesson.seen(truth.own, truth.opp)) - scores
        found[f"error_{truth.empties[0]}"], found[f"bias_{truth.empties[0]}"] = _mean(wrong.abs()), _mean(wrong)
    return found


def _mean(numbers: Tensor) -> float:
    return round(float(numbers.mean()), 3)


def shape_of(text: str) -> Shape:
    """The shape of ``16x32``, ``16x32/4`` or ``16x32/4+moves``."""
    found = re.fullmatch(r"(\d+)x(\d+)(?:/(\d+))?(\+moves)?", text)
    if not found or not all(0 < int(number) <= 1024 for number in found.groups("1")[:3]):
        raise TrainError(
            f"student {quoted(text)}: expected WIDTHxUNITS or WIDTHxUNITS/SPAN, as 16x32 or 16x32/4, with +moves or without"
        )
    width, units, span, moves = found.groups()
    return Shape(int(width), int(units), None if span is None else int(span), moves is not None)


def main() -> None:
    """Fit all students that are asked for, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("student", type=Path)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--variant", default="normal")
    parser.add_argument("--students", nargs="+", default=["8x16", "16x16", "32x32"])
    parser.add_argument("--positions", type=int, help="how many of them; all by default")
    parser.add_argument("--share", type=float, help="of the teacher's labels; by default as they come")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each student")
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--wthor", help="folder with WTHOR files")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.share is not None and not 0 <= options.share <= 1:
        raise TrainError(f"--share {options.share}: expected 0 to 1")
    rules = Rules(options.size, options.variant)
    shapes = [shape_of(text) for text in options.students]
    papers = list(packaged_papers(rules))
    if options.wthor:
        papers += recorded_papers(wthor_files(options.wthor), rules, positions=4000, empties=(24,))
    moves = any(shape.moves for shape in shapes)
    lesson = Lesson(options.student, rules, options.positions, torch.device(options.device), moves=moves)
    for shape in shapes:
        student = student_of(lesson, shape)
        samples = fitted(lesson, student, options.seconds, options.weight_decay, options.share)
        told = shape._asdict() | {"span": student.span, "weight_decay": options.weight_decay, "share": options.share}
        counts = {"positions": len(lesson.score), "samples": samples}
        print(json.dumps({**told, **counts, **judged(lesson, student, papers)}), flush=True)


if __name__ == "__main__":
    main()
