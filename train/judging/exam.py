"""The exam: static values and one-ply moves against the truth, on positions of real games that no training saw.

Positions are those of the WTHOR database with a given number of empty squares; exact scores come from the solver, once,
and are kept in a file. The network is judged as it is. Each published heuristic is first multiplied by the number that
makes it best, by least squares through the origin on these very positions: it is the most that can be said for it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env import Position, ReversiError, Rules, batch
from reversi_env.caches import cache_folder
from reversi_env.errors import shown
from reversi_env.notation import read_wthor
from reversi_env.writing import write_atomically
from search import evaluators
from search.solver import Solver, solve_batch
from search.table import Table
from train.judging.rescaling import least_squares_scale

#: Numbers of empty squares that are examined.
EMPTIES = (10, 12, 14, 16, 18, 20)
#: Share of the positions that are examined with so many empties: they take ever longer to solve.
SHARES = {16: 0.5, 18: 0.3, 20: 0.2}
#: With more empties than this, one position at a time is solved by all threads, with a table that holds it.
BATCH_EMPTIES = 16
TABLE = 128
#: Positions solved between two visits to the disk.
CHUNK = 512

_ENTRY = np.dtype([("own", np.uint64), ("opp", np.uint64), ("score", np.int8)])
Progress = Callable[[str, int, int], None]


class ExamError(ReversiError):
    """An exam that cannot be held: no games, or not enough of them."""


@dataclass(frozen=True)
class Mark:
    """How well one evaluator did on the positions with so many empty squares, in discs.

    ``error``: mean absolute difference between its value times ``scale`` and the exact score. ``regret``: what the move
    with the best value one ply ahead gives away, on average; ``best_moves``: how often it gives away nothing.
    """

    empties: int
    evaluator: str
    scale: float
    error: float
    error_deviation: float
    correlation: float
    regret: float
    best_moves: float


@dataclass(frozen=True)
class Paper:
    """The positions with so many empty squares: how many, and the mean absolute score, the error of the value 0."""

    empties: int
    positions: int
    mean_score: float


@dataclass(frozen=True)
class Exam:
    """All marks; evaluators in the order given, the network first."""

    size: int
    variant: str
    papers: tuple[Paper, ...]
    marks: tuple[Mark, ...]

    def mark(self, evaluator: str, empties: int) -> Mark:
        """One mark."""
        return next(mark for mark in self.marks if (mark.evaluator, mark.empties) == (evaluator, empties))

    def names(self) -> tuple[str, ...]:
        """The evaluators."""
        return tuple(dict.fromkeys(mark.evaluator for mark in self.marks))

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return asdict(self)


# --- positions ------------------------------------------------------------------------------------


def wthor_files(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """The ``.wtb`` files in *folder*, by default that of the variable REVERSI_DATA, or in ``wthor`` below it."""
    given = folder if folder is not None else os.environ.get("REVERSI_DATA")
    if given is None:
        raise ExamError("no games: expected a folder with WTHOR files (*.wtb), by --wthor or the variable REVERSI_DATA")
    found = sorted(Path(given).glob("*.wtb")) or sorted((Path(given) / "wthor").glob("*.wtb"))
    if not found:
        raise ExamError(f"no WTHOR files in {str(given)!r}: expected *.wtb there, or in a folder wthor below it")
    return found


def sample(files: Sequence[Path], empties: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """*count* different positions (own, opp) with so many empties from all games, the same for the same seed.

    Positions that are images of each other count as one.
    """
    boards = [read_wthor(path).positions(empties) for path in files]
    own, opp = (np.concatenate(side) for side in zip(*boards, strict=True))
    images = np.stack(batch.canonical(own, opp)[:2], axis=-1)
    _, first = np.unique(images, axis=0, return_index=True)
    if first.size < count:
        raise ExamError(f"{first.size} positions with {empties} empty squares: expected at least {count}")
    chosen = np.random.default_rng((seed, empties)).permutation(np.sort(first))[:count]
    return own[chosen], opp[chosen]


# --- truth ----------------------------------------------------------------------------------------


class ExactScores:
    """Exact scores by position, kept in a file for the next time; what is solved is not lost when something stops it."""

    def __init__(self, rules: Rules, folder: Path | None = None, threads: int | None = None) -> None:
        self.rules, self.threads = rules, threads or os.cpu_count() or 1
        self.path = (folder or cache_folder("solved")) / f"exact-{rules.size}x{rules.size}-{rules.variant}.npy"
        self._known = self._read()
        self._solver: Solver | None = None

    def of(self, own: np.ndarray, opp: np.ndarray, progress: Callable[[int, int], None]) -> np.ndarray:
        """Scores for the side to move, int64; *progress* is told how many of those not yet known are solved."""
        keys = list(zip(own.tolist(), opp.tolist(), strict=True))
        todo = sorted({key for key in keys if key not in self._known})
        done = 0
        try:
            for key, score in self._solved(todo):
                self._known[key] = score
                done += 1
                progress(done, len(todo))
                if done % CHUNK == 0:
                    self._write()
        finally:
            if done % CHUNK:
                self._write()
        return np.array([self._known[key] for key in keys], np.int64)

    def _solved(self, keys: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], int]]:
        """Positions of equally many empties with their scores."""
        for start in range(0, len(keys), CHUNK):
            part = keys[start : start + CHUNK]
            if self.rules.square_count - (part[0][0] | part[0][1]).bit_count() <= BATCH_EMPTIES:
                own, opp = np.array(part, np.uint64).T
                yield from zip(part, solve_batch(own, opp, self.rules, threads=self.threads).tolist(), strict=True)
                continue
            if self._solver is None:
                self._solver = Solver(self.rules, threads=self.threads, table=Table(TABLE))
            for key in part:
                yield key, self._solver.solve(Position(self.rules, *key)).score

    def _read(self) -> dict[tuple[int, int], int]:
        try:
            entries = np.load(self.path, allow_pickle=False)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, EOFError):
            entries = None
        if entries is None or entries.dtype != _ENTRY:
            raise ExamError(
                f"file {str(self.path)!r} cannot be read: expected exact scores; delete it to solve them again"
            )
        keys = zip(entries["own"].tolist(), entries["opp"].tolist(), strict=True)
        return dict(zip(keys, entries["score"].tolist(), strict=True))

    def _write(self) -> None:
        entries = np.empty(len(self._known), _ENTRY)
        keys = np.array(list(self._known), np.uint64).reshape(-1, 2)
        entries["own"], entries["opp"], entries["score"] = keys[:, 0], keys[:, 1], list(self._known.values())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, _npy(entries))


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


# --- marks ----------------------------------------------------------------------------------------


def greedy_moves(evaluator: Any, own: np.ndarray, opp: np.ndarray, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
    """The positions (own, opp) after the move with the best value one ply ahead, seen by the next side to move.

    A game that ends there counts its score. Of equally good moves the first on the board is played.
    """
    children = batch.expand(own, opp, rules)
    values = evaluator.static_values(children.own, children.opp, rules)
    over = batch.is_over(children.own, children.opp, rules)
    values[over] = batch.final_scores(children.own[over], children.opp[over], rules)
    order = np.lexsort((children.square, values, children.parent))  # the lowest for the opponent first
    chosen = order[np.searchsorted(children.parent[order], np.arange(own.size))]
    return children.own[chosen], children.opp[chosen]


def examine(
    names: Sequence[str],
    files: Sequence[Path],
    rules: Rules | None = None,
    *,
    positions: int = 1000,
    empties: Sequence[int] = EMPTIES,
    seed: int = 0,
    scores: ExactScores | None = None,
    progress: Progress = lambda doing, done, total: None,
) -> Exam:
    """Examine the evaluators *names* on positions of the games in *files*; formulas are rescaled, networks are not.

    *positions* with each number of empties up to 14, and fewer (`SHARES`) above.
    """
    rules = rules or Rules()
    if rules.size != 8:
        raise ExamError(f"an exam on {rules.size}x{rules.size}: expected 8x8, the board of the recorded games")
    if positions < 2:
        raise ExamError(f"{shown(positions)} positions: expected 2 or more")
    judges = [evaluators.get(name) for name in names]
    for judge in judges:
        judge.record(rules)  # what is missing is missed now, not after the solving
    truth = scores or ExactScores(rules)
    papers, marks = [], []
    for number in empties:
        own, opp = sample(files, number, max(2, round(SHARES.get(number, 1) * positions)), seed)
        exact = truth.of(own, opp, partial(progress, f"{number} empties"))
        papers.append(Paper(number, own.size, float(np.abs(exact).mean())))
        played = [greedy_moves(judge, own, opp, rules) for judge in judges]
        next_own, next_opp = (np.concatenate(side) for side in zip(*played, strict=True))
        after = truth.of(next_own, next_opp, partial(progress, f"{number} empties, moves"))
        for name, judge, replies in zip(names, judges, np.split(after, len(judges)), strict=True):
            values = judge.static_values(own, opp, rules)
            marks.append(_mark(name, values, exact, exact + replies, number, rules))
    return Exam(rules.size, rules.variant, tuple(papers), tuple(marks))


def _mark(name: str, values: np.ndarray, exact: np.ndarray, regret: np.ndarray, empties: int, rules: Rules) -> Mark:
    scale = least_squares_scale(values, exact) if name in evaluators.formulas() else 1.0
    errors = np.abs(np.clip(scale * values, -rules.square_count, rules.square_count) - exact)
    return Mark(
        empties,
        name,
        scale,
        float(errors.mean()),
        float(errors.std(ddof=1) / np.sqrt(errors.size)),
        float(np.corrcoef(values, exact)[0, 1]) if np.ptp(values) and np.ptp(exact) else 0.0,
        float(regret.mean()),
        float((regret == 0).mean()),
    )
