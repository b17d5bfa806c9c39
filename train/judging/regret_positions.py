"""Endgame positions with the exact value of every move: the truth that players are held against.

The positions are those of noisy games, the same for the same options, no two of them images of each other, and each with a choice
of two moves or more. The solver values all moves once; the result is kept in a file, so that judging a player afterwards is
nothing but looking up the moves that it chooses.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules, batch
from reversi_env.caches import cache_folder
from reversi_env.core.bitboard import PASS_SQUARE
from reversi_env.errors import shown
from reversi_env.rules import Variant
from reversi_env.writing import write_atomically
from search.solver import solve_batch
from train.errors import TrainError, check_whole
from train.labels import LabelOptions
from train.labels.sampling import sample_block

FORMAT = 1
#: Value of a square where no move is legal: below every score.
ILLEGAL = -128
#: With one empty square there is no choice; with more than this, solving all moves takes minutes.
FEWEST_EMPTIES, MOST_EMPTIES = 2, 18
DEFAULT_EMPTIES = 14
#: Positions sampled for each that is wanted, at first and at most: with few empties many have a single move.
SHARE, MOST_SHARE = 4, 64

Boards = NDArray[np.uint64]
Progress = Callable[[str, int, int], None]


def _silent(doing: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class RegretOptions:
    """Which positions: *positions* of them with each number of empty squares from ``empties[0]`` to ``empties[1]``.

    By default 2 to 14 empties, on the 4x4 board 2 to 11. Small boards have fewer positions than that near the start; all there
    are that the games come through are taken then.
    """

    size: int = 8
    variant: Variant = "normal"
    positions: int = 200
    empties: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        most = min(MOST_EMPTIES, self.rules.square_count - 5)  # refuses a game that does not exist
        if self.empties is None:
            object.__setattr__(self, "empties", (FEWEST_EMPTIES, min(DEFAULT_EMPTIES, most)))
        low, high = self.span
        if not FEWEST_EMPTIES <= low <= high <= most:
            raise TrainError(
                f"empties={low}-{high}: expected a range from {FEWEST_EMPTIES} to {most} on the {self.size}x{self.size} board"
            )
        check_whole("positions", self.positions, 1, 100_000)
        check_whole("seed", self.seed, 0, (1 << 32) - 1)

    @property
    def rules(self) -> Rules:
        """The game."""
        return Rules(self.size, self.variant)

    @property
    def span(self) -> tuple[int, int]:
        """Lowest and highest number of empty squares, both included."""
        pair = tuple(self.empties) if isinstance(self.empties, (list, tuple)) else ()
        if len(pair) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) for n in pair):
            raise TrainError(f"empties={shown(self.empties)}: expected two whole numbers, lowest and highest")
        return pair[0], pair[1]

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return json.loads(json.dumps(asdict(self)))

    @property
    def file_name(self) -> str:
        """What the file with these positions is called."""
        low, high = self.span
        return f"regret-{self.size}x{self.size}-{self.variant}-{low}-{high}-{self.positions}-{self.seed}.npz"


@dataclass(frozen=True, eq=False)
class RegretPositions:
    """Positions seen by the side to move, and what each of its moves is worth.

    ``values``: int8 (N, squares), by action: exact scores in discs for the side to move under the rules' objective, `ILLEGAL`
    where there is no move.
    """

    rules: Rules
    own: Boards
    opp: Boards
    values: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def empties(self) -> NDArray[np.int64]:
        """Empty squares of each position."""
        return self.rules.square_count - np.bitwise_count(self.own | self.opp).astype(np.int64)

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """Exact score of each position."""
        return self.values.max(axis=1).astype(np.int64)

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """Legal actions (N, squares + 1) as the environments tell them; the last, the pass, never is one here."""
        return np.concatenate([self.values != ILLEGAL, np.zeros((len(self), 1), np.bool_)], axis=1)

    @cached_property
    def observations(self) -> NDArray[np.uint8]:
        """What the environments show of each position: (N, 2, size, size), own discs and the opponent's."""
        return board_planes(self.own, self.opp, self.rules)

    @cached_property
    def digest(self) -> str:
        """Twelve digits that tell two sets of positions apart."""
        parts = (np.ascontiguousarray(array).tobytes() for array in (self.own, self.opp, self.values))
        return hashlib.sha256(str(self.rules).encode() + b"".join(parts)).hexdigest()[:12]

    def chosen_values(self, actions: ArrayLike) -> NDArray[np.int64]:
        """What the chosen actions are worth; an illegal one raises and names its position."""
        chosen = np.asarray(actions)
        if chosen.shape != (len(self),) or chosen.dtype.kind not in "ui":
            raise TrainError(
                f"actions of {chosen.dtype} and shape {chosen.shape}: expected {len(self)} whole numbers, one a position"
            )
        chosen = chosen.astype(np.int64)
        inside = (chosen >= 0) & (chosen < self.rules.square_count)
        values = self.values[np.arange(len(self)), np.where(inside, chosen, 0)].astype(np.int64)
        legal = inside & (values != ILLEGAL)
        if not legal.all():
            first = int(np.argmin(legal))
            raise TrainError(
                f"action {chosen[first]} is illegal in position {first} (own {self.own[first]:#x}, opp "
                f"{self.opp[first]:#x}): expected one of {np.flatnonzero(self.masks[first]).tolist()}"
            )
        return values


def board_planes(own: Boards, opp: Boards, rules: Rules) -> NDArray[np.uint8]:
    """Boards as the environments show them: uint8 (N, 2, size, size), own discs and the opponent's."""
    squares = np.array(list(rules.squares()), np.uint64)
    both = np.stack([own, opp], axis=1)[:, :, None]
    return ((both >> squares) & np.uint64(1)).astype(np.uint8).reshape(-1, 2, rules.size, rules.size)


def action_table(rules: Rules) -> NDArray[np.int64]:
    """The action of every square of the frame, -1 beyond the board; the pass at `PASS_SQUARE`."""
    table = np.full(PASS_SQUARE + 1, -1, np.int64)
    for action, square in enumerate(rules.squares()):
        table[square] = action
    table[PASS_SQUARE] = rules.pass_action
    return table


def move_values(
    own: Boards,
    opp: Boards,
    rules: Rules,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NDArray[np.int8]:
    """The exact value of every move, as `RegretPositions.values` has it; *progress* hears of the positions after them."""
    children = batch.expand(own, opp, rules)
    scores = solve_batch(
        children.own, children.opp, rules, threads=threads, progress=lambda done: progress(done, len(children.own))
    )
    actions = action_table(rules)[children.square]
    values = np.full((len(own), rules.square_count + 1), ILLEGAL, np.int8)
    values[children.parent, actions] = -scores
    return values[:, :-1]


def regret_positions(
    options: RegretOptions,
    folder: Path | None = None,
    *,
    threads: int | None = None,
    progress: Progress = _silent,
) -> RegretPositions:
    """The positions of *options*, from the file in *folder* or, the first time, by solving; by default the user's cache."""
    path = (folder or cache_folder("solved")) / options.file_name
    known = _read(path, options)
    if known is not None:
        return known
    progress("sampling positions", 0, 1)
    own, opp = _sampled(options, threads)
    values = move_values(
        *(own, opp, options.rules),
        threads=threads,
        progress=lambda done, total: progress("solving all moves", done, total),
    )
    positions = RegretPositions(options.rules, own, opp, values)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _content(positions, options))
    return positions


def _sampled(options: RegretOptions, threads: int | None) -> tuple[Boards, Boards]:
    """Positions with a choice, as many as are wanted with each number of empties, or all that are found."""
    low, high = options.span
    share = SHARE
    while True:
        count = share * options.positions * (high - low + 1)
        how = LabelOptions(
            *(options.size, options.variant, count, (low, high), options.seed), shard_rows=count, block_rows=count
        )
        own, opp = sample_block(how, 0, threads=threads, fewer=True)
        empties = options.rules.square_count - np.bitwise_count(own | opp).astype(np.int64)
        choice = np.bitwise_count(batch.legal_moves(own, opp, options.rules)) >= 2
        rows = [np.flatnonzero(choice & (empties == e)) for e in range(low, high + 1)]
        short = [
            len(found) < options.positions and int((empties == e).sum()) == share * options.positions
            for e, found in enumerate(rows, low)
        ]
        if not any(short) or share >= MOST_SHARE:
            chosen = np.concatenate([found[: options.positions] for found in rows])
            return own[chosen], opp[chosen]
        share *= 2


def _content(positions: RegretPositions, options: RegretOptions, digest: str | None = None) -> bytes:
    stream = io.BytesIO()
    about = json.dumps({"format": FORMAT, "digest": digest or positions.digest, **options.as_dict()})
    np.savez_compressed(stream, own=positions.own, opp=positions.opp, values=positions.values, about=np.array(about))
    return stream.getvalue()


def _read(path: Path, options: RegretOptions) -> RegretPositions | None:
    """The positions of a file; None if there is no such file, or one of another format."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as saved:
            about = json.loads(str(saved["about"]))
            positions = RegretPositions(options.rules, saved["own"], saved["opp"], saved["values"])
            if about["format"] != FORMAT:
                return None
            same = about == {"format": FORMAT, "digest": positions.digest, **options.as_dict()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile):
        same = False
    if not same:
        raise TrainError(f"file {str(path)!r} cannot be read: expected solved positions; delete it to solve them again")
    return positions
