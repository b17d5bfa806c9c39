"""The exam: static values and one-ply moves of evaluators, measured on exactly solved positions of games outside the training data.

The positions are packaged ones, or those of WTHOR files, which are solved once and cached. Each published heuristic is first scaled
by least squares through the origin on the same positions, which favours it; networks are not.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reversi_env import Rules, batch
from reversi_env.errors import TrainError, count_noun
from reversi_env.notation import read_wthor
from reversi_env.storage.packaged import packaged_bytes
from search import evaluators
from search.evaluators.base import Evaluator
from train.evaluation.endgames import solve_cached
from train.evaluation.exact_set import Boards, ExactSet
from train.evaluation.means import Interval, plain
from train.jobs.logs import Progress, load_arrays, no_progress

#: Packaged solved positions, one file per game, made by studies/evaluators/exam_positions.py of commit 8d62fa35.
PACKAGED = Path(__file__).parent / "positions"

#: Numbers of empty squares that are examined.
EMPTIES = (10, 12, 14, 16, 18, 20)
#: Maximum empties with which the scores of a file count as exact, whatever its header says.
MAX_DEPTH = 40
#: Share of the positions with many empties, which take longer to solve.
POSITION_SHARES = {16: 0.5, 18: 0.3, 20: 0.2}


@dataclass(frozen=True)
class ExamResult:
    """Results of one evaluator on the positions with some number of empties, in discs.

    ``error``: mean absolute difference between its value times ``scale`` and the exact score; ``bias``: mean difference.
    ``regret``: mean loss of the move with the best value one ply ahead; ``best_moves``: share of these moves without loss. Both are
    None if only the positions are solved. Standard errors and 95 % intervals assume that no two positions are of one game.
    """

    empties: int
    evaluator: str
    scale: float
    error: float
    error_standard_error: float
    error_interval: Interval
    correlation: float
    bias: float
    bias_interval: Interval
    regret: float | None = None
    regret_standard_error: float | None = None
    regret_interval: Interval | None = None
    best_moves: float | None = None
    best_moves_interval: Interval | None = None


@dataclass(frozen=True)
class ExamSet:
    """The positions with some number of empties: their number and their mean absolute score, the error of the value 0."""

    empties: int
    positions: int
    mean_score: float


@dataclass(frozen=True)
class Exam:
    """All results; evaluators in their order in the call."""

    size: int
    variant: str
    sets: tuple[ExamSet, ...]
    results: tuple[ExamResult, ...]

    def result(self, evaluator: str, empties: int) -> ExamResult:
        return next(one for one in self.results if (one.evaluator, one.empties) == (evaluator, empties))

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.evaluator for one in self.results))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"results": [plain(asdict(one)) for one in self.results]}


def examine(examined: Sequence[Evaluator | str], rules: Rules, exact_sets: Iterable[ExactSet]) -> Exam:
    """Examine evaluators on sets of positions, each with one number of empties; formulas are scaled."""
    by_name = {one if isinstance(one, str) else one.name: evaluators.get_evaluator(one) for one in examined}
    for evaluator in by_name.values():
        evaluator.static_values(*batch.start(1, rules), rules)  # an error comes before minutes of solving
    sets, results = list[ExamSet](), list[ExamResult]()
    for exact in exact_sets:
        empties = int(exact.empties[0])
        sets.append(ExamSet(empties, len(exact), float(np.abs(exact.scores).mean())))
        results += [_result(name, evaluator, exact, empties) for name, evaluator in by_name.items()]
    return Exam(rules.size, rules.variant, tuple(sets), tuple(results))


def _result(name: str, evaluator: Evaluator, exact: ExactSet, empties: int) -> ExamResult:
    errors = exact.errors(evaluator)
    error, bias = exact.sample.mean(errors.absolute), exact.sample.mean(errors.values - errors.scores)
    static = (
        *(errors.scale, error.mean, error.standard_error, error.interval),
        *(errors.correlation, bias.mean, bias.interval),
    )
    if exact.values is None:
        return ExamResult(empties, name, *static)
    played = exact.judge(exact.one_ply_actions(evaluator)).overall
    regret = played.regret, played.regret_standard_error, played.regret_interval
    return ExamResult(empties, name, *static, *regret, played.optimal, played.optimal_interval)


def wthor_files(folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the ``.wtb`` files in *folder*, by default that of the variable REVERSI_DATA, or in ``wthor`` below it."""
    name = os.environ.get("REVERSI_DATA") if folder is None else folder
    if name is None:
        raise TrainError(
            "no games: expected a folder with WTHOR files (*.wtb), by --wthor or the variable REVERSI_DATA"
        )
    for place in (Path(name), Path(name) / "wthor"):
        if files := sorted(path for path in place.glob("*") if path.suffix.lower() == ".wtb"):
            return files
    raise TrainError(f"no WTHOR files in {str(name)!r}: expected *.wtb there, or in its subfolder wthor")


def wthor_sample(files: Sequence[Path], empties: int, count: int, seed: int = 0) -> tuple[Boards, Boards]:
    """Return *count* different positions (own, opp) of recorded games, one per game, the same for the same seed."""
    boards = [read_wthor(path).positions(empties) for path in files]
    own, opp = (np.concatenate(side) for side in zip(*boards, strict=True))
    different = _different(own, opp)
    if different.size < count:
        raise TrainError(
            f"{count_noun(different.size, 'position')} with {empties} empty squares: expected at least {count}"
        )
    chosen = np.random.default_rng((seed, empties)).permutation(different)[:count]
    return own[chosen], opp[chosen]


def _different(own: Boards, opp: Boards) -> np.ndarray:
    """Return the rows of the first of each set of symmetric images."""
    return np.sort(np.unique(np.stack(batch.canonical(own, opp)[:2], axis=-1), axis=0, return_index=True)[1])


def recorded_sets(
    files: Sequence[Path],
    rules: Rules,
    *,
    positions: int = 1000,
    empties: Sequence[int] | None = None,
    seed: int = 0,
    folder: Path | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Iterator[ExactSet]:
    """Yield positions of the games in *files*: *positions* per number of empties up to 14, fewer (`POSITION_SHARES`) above.

    They are solved once and stored in *folder*, by default the user's cache. In the normal game, positions with more empties have
    the exact scores of the files, without values of moves.
    """
    if rules.size != 8:
        raise TrainError(f"recorded games on {rules.size}x{rules.size}: expected 8x8, the board of WTHOR files")
    if positions < 2:
        raise TrainError(f"{count_noun(positions, 'position')}: expected 2 or more")
    solving: dict[str, Any] = {"threads": threads, "progress": progress}
    solved = _solved_empties(files) if rules.variant == "normal" else None
    for number in empties or (*EMPTIES, *([] if solved is None else [solved])):
        if number == solved:
            yield recorded_scores(files, positions, seed)
            continue
        count = _count_at(positions, number)
        own, opp = boards = wthor_sample(files, number, count, seed)
        digest = hashlib.sha256(own.tobytes() + opp.tobytes()).hexdigest()[:12]
        name = f"recorded-{rules.size}x{rules.size}-{rules.variant}-{number}-{count}-{digest}"
        about, settings = {"empties": number, "positions": digest}, {**solving, "doing": f"{number} empties"}
        yield solve_cached(name, rules, about, lambda boards=boards: (*boards, None), folder, **settings)  # type: ignore[misc]


def _solved_empties(files: Sequence[Path]) -> int | None:
    """Return the empties from which on all files have exact scores, if these are more than are solved here."""
    depths = {read_wthor(path).header.depth for path in files}
    return max(depths) if len(depths) == 1 and EMPTIES[-1] < max(depths) < MAX_DEPTH else None


def recorded_scores(files: Sequence[Path], count: int, seed: int) -> ExactSet:
    """Return *count* different positions, or all, with the exact scores of the files; the same for the same seed."""
    columns = zip(*(read_wthor(path).solved_positions() for path in files), strict=True)
    own, opp, score = (np.concatenate(column) for column in columns)
    different = _different(own, opp)
    if different.size < 2:
        raise TrainError(f"{count_noun(different.size, 'position')} whose scores the files have: expected at least 2")
    chosen = np.random.default_rng((seed, len(different))).permutation(different)[:count]
    return ExactSet(Rules(), own[chosen], opp[chosen], score[chosen].astype(np.int64))


def packaged_endgames(rules: Rules) -> ExactSet:
    """Return the packaged solved positions of a game: some hundred per even number of empty squares from 10 to 20.

    They come from tournament games on 8x8 normal, and else from self-play games of the network.
    """
    path = PACKAGED / f"{rules.size}x{rules.size}-{rules.variant}.npz"
    if not path.exists():
        raise TrainError(f"no solved positions for {rules.size}x{rules.size}: expected 6x6 or 8x8")
    packaged_bytes(path)
    return ExactSet.of_values(rules, *load_arrays(path, ("own", "opp", "values"), optional=("games",)))


def packaged_sets(
    rules: Rules, *, positions: int | None = None, empties: Sequence[int] | None = None, seed: int = 0
) -> Iterator[ExactSet]:
    """Yield the packaged positions: all, or *positions* per number of empties up to 14, fewer (`POSITION_SHARES`) above."""
    packaged = packaged_endgames(rules)
    existing = np.unique(packaged.empties).tolist()
    for number in existing if empties is None else empties:
        rows = np.flatnonzero(packaged.empties == number)
        count = len(rows) if positions is None else _count_at(positions, number)
        if not rows.size:
            raise TrainError(
                f"{number} empty squares: expected some of {', '.join(map(str, existing))}, which the package has, or WTHOR files"
            )
        if count > len(rows):
            raise TrainError(
                f"{count} positions with {number} empty squares: expected no more than the package has, {len(rows)}, or WTHOR files"
            )
        yield packaged.rows(np.random.default_rng((seed, number)).permutation(rows)[:count])


def _count_at(positions: int, empties: int) -> int:
    return max(2, round(POSITION_SHARES.get(empties, 1) * positions))
