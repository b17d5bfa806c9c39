"""Puzzles: endgame positions with one clearly best move, and the number of human-like levels that miss it.

Candidates come from noisy games like those of `reversi label`, and all their moves are solved. A position is a puzzle if one move
is best by `PuzzleOptions.margin` discs or more, some level misses it, and the game is open. If few levels miss it, the move must
also decide the game: any other turns a win into less, or a draw into a loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from models.human import LEVELS, RATINGS, HumanAgent
from reversi_env import Position, Rules
from reversi_env.errors import TrainError
from reversi_env.notation.obf import Problem, read_obf, write_obf_line
from reversi_env.storage.atomic import write_atomically
from reversi_env.storage.packaged import packaged_bytes
from train.evaluation.exact_set import ILLEGAL, move_values
from train.evaluation.options import PuzzleOptions
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.run import Run, as_hashes
from train.labels import sample_positions

#: The packaged puzzles, one file per game.
FOLDER = Path(__file__).parent / "puzzles"
#: The log of a run, and its result.
LOG, FILE = "puzzles.jsonl", "puzzles.obf"
#: In a puzzle that at most this many levels miss, the best move must decide the game.
MAX_EASY_MISSES = 4
#: A game is open if the best move loses by at most this, in discs, and no other move wins by more.
MAX_OPEN_SCORE = 12


@dataclass(frozen=True)
class Puzzle:
    """A position, its best move by name, the move's value and its margin over the others in discs, and the levels that miss it."""

    position: Position
    move: str
    value: int
    margin: int
    missed: int

    @property
    def rating(self) -> int:
        """The difficulty on the scale of `models.human.RATINGS`: the mean of the strongest level that misses it and the next."""
        ends = RATINGS[max(0, self.missed - 1)], RATINGS[min(self.missed, len(RATINGS) - 1)]
        return round(sum(ends) / 2)

    def line(self) -> str:
        about = f"margin {self.margin}, missed by {self.missed}"
        return write_obf_line(Problem(self.position, ((self.move, self.value),), about))

    @classmethod
    def of(cls, problem: Problem) -> Puzzle:
        try:
            [(move, value)], words = problem.scores, problem.comment.replace(",", "").split()
            return cls(problem.position, move, value, int(words[1]), int(words[-1]))
        except (ValueError, IndexError):
            raise TrainError(
                f"puzzle {write_obf_line(problem)!r}: expected one move and a comment 'margin 4, missed by 3'"
            ) from None


def make_puzzles(
    options: PuzzleOptions, folder: Path, *, threads: int | None = None, progress: Progress = no_progress
) -> list[Puzzle]:
    """Make puzzles in *folder*, or resume there, and write them to `FILE`; fewer than required if the candidates run out."""
    rules, log = options.rules, JsonLines(folder / LOG)
    levels = [HumanAgent(number, options.seed) for number in range(1, len(LEVELS) + 1)]
    content_hashes = {name: value for level in levels for name, value in level.content_hashes(rules).items()}
    with Run(folder, options, as_hashes(content_hashes), begun=lambda: bool(log)):
        batches = log.read()
        chosen = _chosen(batches, options)
        while len(chosen) < options.count and len(batches) < options.candidates.shards:
            progress("puzzles", len(chosen), options.count)
            own, opp = sample_positions(options.candidates, len(batches), threads=threads)
            puzzles = _puzzles(own, opp, move_values(own, opp, rules, threads=threads), options, levels)
            batches.append([puzzle.line() for puzzle in puzzles])
            log.append(batches[-1])
            chosen = _chosen(batches, options)
        write_atomically(folder / FILE, "".join(f"{line}\n" for line in chosen).encode())
    progress("puzzles", len(chosen), options.count)
    return list(_read(chosen, rules))


def _puzzles(
    own: np.ndarray, opp: np.ndarray, values: np.ndarray, options: PuzzleOptions, levels: Iterable[HumanAgent]
) -> Iterator[Puzzle]:
    rules = options.rules
    ordered = np.sort(values.astype(np.int64), axis=1)
    best, second = ordered[:, -1], ordered[:, -2]
    is_open = (best >= -MAX_OPEN_SCORE) & (second <= MAX_OPEN_SCORE)
    for row in np.flatnonzero(is_open & (second > ILLEGAL) & (best - second >= options.margin)):
        position = Position(rules, int(own[row]), int(opp[row]))
        action = int(values[row].argmax())
        missed = sum(level.choose(position) != action for level in levels)
        decides = np.sign(best[row]) > np.sign(second[row])
        if missed > MAX_EASY_MISSES or (missed and decides):
            yield Puzzle(position, rules.name_of(action), int(best[row]), int(best[row] - second[row]), missed)


def _chosen(batches: Iterable[list[str]], options: PuzzleOptions) -> list[str]:
    """Return the lines of the first puzzles, at most `PuzzleOptions.max_per_difficulty` of each difficulty."""
    chosen: list[str] = []
    by_difficulty = Counter[str]()
    for line in chain.from_iterable(batches):
        missed = line.rpartition(" ")[2]
        if len(chosen) < options.count and by_difficulty[missed] < options.max_per_difficulty:
            chosen.append(line)
            by_difficulty[missed] += 1
    return chosen


def _read(source: Path | Iterable[str], rules: Rules) -> Iterator[Puzzle]:
    return (Puzzle.of(problem) for problem in read_obf(source, rules))


@cache
def packaged_puzzles(rules: Rules) -> tuple[Puzzle, ...]:
    """Return the packaged puzzles of a game, in no particular order; an empty tuple for a game without any."""
    path = FOLDER / f"{rules.size}x{rules.size}-{rules.variant}.obf"
    return tuple(_read(packaged_bytes(path).decode().splitlines(), rules)) if path.exists() else ()
