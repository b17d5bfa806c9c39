"""Puzzles: positions near the end with one best move and a clear margin, and how many of the levels for people miss it.

Candidates come from noisy games, as those of `reversi label` do, and all their moves are solved. A position is a puzzle if one
move is best by `PuzzleOptions.margin` discs or more, some level misses it, and the game is open: not won whatever is played, nor
lost. Where few levels miss it, the move must decide the game too: any other would turn a win into less, or a draw into a loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from models.human import LEVELS, RATINGS, HumanAgent
from reversi_env import Position, Rules
from reversi_env.errors import ReversiError, TrainError
from reversi_env.notation.obf import Problem, read_obf, write_obf_line
from reversi_env.storage.atomic import write_atomically
from train.evaluation.exact_set import ILLEGAL, move_values
from train.evaluation.options import PuzzleOptions
from train.jobs.logs import JsonLines, Progress, no_progress
from train.jobs.run import Run, as_hashes
from train.labels import sample_positions

#: The package's own puzzles, a file a game.
FOLDER = Path(__file__).parent / "puzzles"
#: Where a run keeps what it has found, and what it writes at its end.
LOG, FILE = "puzzles.jsonl", "puzzles.obf"
#: Puzzles that at most so many levels miss are decided by their move.
EASY = 4
#: A game is open while the best move does not lose by more than this, nor any other win by more.
OPEN = 12


@dataclass(frozen=True)
class Puzzle:
    """A position, its only best move by name, what that is worth in discs, by how much no other is, and how many levels miss it."""

    position: Position
    move: str
    value: int
    margin: int
    missed: int

    @property
    def rating(self) -> int:
        """How hard it is, on the scale of `models.human.RATINGS`: between the level above those that miss it and the one below."""
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
    """Make puzzles in *folder*, or go on with them; fewer than are wanted where there are no more. `FILE` has them at the end."""
    rules, log = options.rules, JsonLines(folder / LOG)
    levels = [HumanAgent(number, options.seed) for number in range(1, len(LEVELS) + 1)]
    content_hashes = {name: value for level in levels for name, value in level.content_hashes(rules).items()}
    with Run(folder, options, as_hashes(content_hashes), begun=lambda: bool(log)):
        batches = log.read()
        chosen = _chosen(batches, options)
        while len(chosen) < options.count and len(batches) < options.candidates.shards:
            progress("puzzles", len(chosen), options.count)
            own, opp = sample_positions(options.candidates, len(batches), threads=threads)
            found = _puzzles(own, opp, move_values(own, opp, rules, threads=threads), options, levels)
            batches.append([puzzle.line() for puzzle in found])
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
    clear = (second > ILLEGAL) & (best - second >= options.margin) & (best >= -OPEN) & (second <= OPEN)
    for row in np.flatnonzero(clear):
        position = Position(rules, int(own[row]), int(opp[row]))
        action = int(values[row].argmax())
        missed = sum(level.choose(position) != action for level in levels)
        decides = np.sign(best[row]) > np.sign(second[row])
        if missed > EASY or (missed and decides):
            yield Puzzle(position, rules.name_of(action), int(best[row]), int(best[row] - second[row]), missed)


def _chosen(batches: Iterable[list[str]], options: PuzzleOptions) -> list[str]:
    """The lines of the puzzles that are taken, in the order in which they were found."""
    taken: list[str] = []
    alike: dict[str, int] = {}
    for line in (line for found in batches for line in found):
        missed = line.rpartition(" ")[2]
        if len(taken) < options.count and alike.get(missed, 0) < options.max_per_difficulty:
            taken.append(line)
            alike[missed] = alike.get(missed, 0) + 1
    return taken


def _read(source: Path | Iterable[str], rules: Rules) -> Iterator[Puzzle]:
    return (Puzzle.of(problem) for problem in read_obf(source, rules))


@cache
def packaged_puzzles(rules: Rules) -> tuple[Puzzle, ...]:
    """The puzzles that come with the package for that game, in no order; none where it has none."""
    path = FOLDER / f"{rules.size}x{rules.size}-{rules.variant}.obf"
    try:
        return tuple(_read(path, rules)) if path.exists() else ()
    except ReversiError as error:
        raise TrainError(f"{str(path)!r} cannot be read ({error}): expected the package's puzzles") from None
