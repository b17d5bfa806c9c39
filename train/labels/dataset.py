"""`Labels`: labelled positions in memory."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reversi_env import Rules
from reversi_env.errors import TrainError, extra_libraries
from reversi_env.rules import Variant
from reversi_env.storage.atomic import write_atomically
from search import evaluators
from search.agents.spec import make_agent
from train.jobs.run import MANIFEST, as_hashes, check_same, read_json
from train.labels.labellers import labeller_plan
from train.labels.options import LabelOptions


@dataclass(frozen=True, eq=False)
class Labels:
    """Positions and their scores, as arrays of equal length.

    ``own``, ``opp``: boards of the side to move and of the other side. ``score``: discs for the side to move under the
    objective of ``rules``. ``empties``: empty squares. ``exact``: whether the score is that of perfect play.
    ``depth``: plies searched, the empties where it is exact.
    """

    rules: Rules
    own: NDArray[np.uint64]
    opp: NDArray[np.uint64]
    score: NDArray[np.float32]
    empties: NDArray[np.uint8]
    exact: NDArray[np.bool_]
    depth: NDArray[np.uint8]

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in COLUMNS}
        if len(set(lengths.values())) != 1:
            raise TrainError(f"columns of {lengths} rows: expected as many in all")

    def __len__(self) -> int:
        return len(self.own)

    def select(self, rows: ArrayLike) -> Labels:
        """The rows of a boolean mask, or those with the given numbers, in their order."""
        chosen = np.asarray(rows)
        return Labels(self.rules, *(getattr(self, name)[chosen] for name in COLUMNS))

    @staticmethod
    def concatenate(parts: Sequence[Labels]) -> Labels:
        """All rows of *parts*, one after the other; they must be of the same game."""
        if not parts:
            raise TrainError("no labels to concatenate: expected one part or more")
        games = {part.rules for part in parts}
        if len(games) > 1:
            raise TrainError(f"labels of different games, {', '.join(sorted(map(str, games)))}: expected those of one")
        return Labels(parts[0].rules, *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


#: The arrays of `Labels`, in order.
COLUMNS = tuple(field.name for field in fields(Labels) if field.name != "rules")


# --- folder of a dataset ---------------------------------------------------------------------------


FORMAT = "reversi-labels-1"
#: The columns that are numbers, and of which kind.
NUMBERS = {"own": np.uint64, "opp": np.uint64, "score": np.float32, "empties": np.uint8, "depth": np.uint8}
KINDS, VARIANTS = ("exact", "search"), get_args(Variant)


@dataclass(frozen=True)
class Shard:
    """One file of a data set: its name, its rows, and the hash of its bytes."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a folder holds: the options, the shards that are done, and hashes of the weights of the evaluators used."""

    options: LabelOptions
    shards: tuple[Shard, ...] = ()
    evaluators: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of all shards that are done."""
        return sum(shard.rows for shard in self.shards)

    @property
    def complete(self) -> bool:
        """Whether all shards are done."""
        return len(self.shards) == self.options.shards

    def to_json(self) -> str:
        """The text of ``manifest.json``."""
        content = {
            "format": FORMAT,
            "options": self.options.as_dict(),
            "evaluators": self.evaluators,
            "rows": self.rows,
            "complete": self.complete,
            "shards": [vars(shard) for shard in self.shards],
        }
        return json.dumps(content, indent=1) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, or a `TrainError` that says what is wrong with it."""
    path = folder / MANIFEST
    if not path.exists():
        raise TrainError(f"{str(folder)!r} has no {MANIFEST}: expected a folder that `reversi label` made")
    content = read_json(path, FORMAT)
    try:
        shards = tuple(Shard(str(s["file"]), int(s["rows"]), str(s["sha256"])) for s in content["shards"])
        evaluators = {str(name): str(sha256) for name, sha256 in content["evaluators"].items()}
        return Manifest(LabelOptions.from_dict(content["options"]), shards, evaluators)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise TrainError(
            f"{str(path)!r} cannot be read ({error}): expected a manifest of the format {FORMAT}"
        ) from None


def weight_hashes(options: LabelOptions) -> dict[str, str]:
    """Hashes of the weights of those who play and label, by name; one that cannot be used raises."""
    plan = labeller_plan(options.labeller)
    names = {options.player} | ({plan.evaluator} if plan.evaluator and plan.depth else set())
    hashes = {name: evaluators.get_evaluator(name).sha256(options.rules) for name in sorted(names)}
    if plan.evaluator and not plan.depth:
        hashes |= make_agent(plan.evaluator).content_hashes(options.rules)
    return hashes


def open_folder(folder: Path, options: LabelOptions, hashes: Mapping[str, str]) -> Manifest:
    """The manifest to go on with: the folder's own if it was made with the same options and weights, a new one in a new folder."""
    is_new = not (folder / MANIFEST).exists()
    if is_new and any(folder.glob("*.parquet")):
        raise TrainError(f"{str(folder)!r} has Parquet files but no {MANIFEST}: expected an empty folder")
    known = Manifest(options) if is_new else read_manifest(folder)
    if not known.shards:  # nothing to go on from
        fresh = Manifest(options, evaluators=hashes)
        write_atomically(folder / MANIFEST, fresh.to_json().encode())
        return fresh
    check_same(folder, known.options.as_dict(), options.as_dict())
    check_same(folder, as_hashes(known.evaluators), as_hashes(hashes))
    return known


def shards_in_place(folder: Path, manifest: Manifest) -> set[int]:
    """The shards whose files are there, their bytes as the manifest has them; damaged ones raise."""
    there = {number for number, shard in enumerate(manifest.shards) if (folder / shard.file).exists()}
    for number in there:
        checked_bytes(folder, manifest.shards[number])
    return there


def rows_in_place(folder: Path) -> int:
    """Rows of the shards of a folder that are there; 0 where nothing was begun. Their bytes are not looked at."""
    if not (folder / MANIFEST).exists():
        return 0
    return sum(shard.rows for shard in read_manifest(folder).shards if (folder / shard.file).exists())


def checked_bytes(folder: Path, shard: Shard) -> bytes:
    """A shard's bytes; a `TrainError` with its name if it is missing or not as it was written."""
    path = folder / shard.file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise TrainError(f"{str(path)!r} is missing: expected it; run the same `reversi label` again") from None
    if hashlib.sha256(data).hexdigest() != shard.sha256:
        raise TrainError(
            f"{str(path)!r} is damaged, its SHA-256 is not that of the manifest: expected the file as it was "
            f"written; delete it and run the same `reversi label` again"
        )
    return data


def add_shard(folder: Path, manifest: Manifest, shard: int, labels: Labels) -> Manifest:
    """Put a shard into the folder; the manifest that knows it."""
    data = to_bytes(labels)
    entry = Shard(f"shard-{shard:05d}.parquet", len(labels), hashlib.sha256(data).hexdigest())
    write_atomically(folder / entry.file, data)
    known = manifest.shards
    if entry not in known[shard : shard + 1]:
        manifest = replace(manifest, shards=(*known[:shard], entry, *known[shard + 1 :]))
        write_atomically(folder / MANIFEST, manifest.to_json().encode())
    return manifest


# --- shards ---------------------------------------------------------------------------------------


def require_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet, or a `MissingExtra` where they are not installed."""
    with extra_libraries():
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def to_bytes(labels: Labels) -> bytes:
    """The file of a shard. Equal labels give equal bytes, from the same version of pyarrow."""
    pyarrow, parquet = require_pyarrow()
    rows = len(labels)

    def words(indices: np.ndarray, names: tuple[str, ...]) -> Any:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices.astype(np.int8)), list(names))

    columns = {
        "own": labels.own,
        "opp": labels.opp,
        "score": labels.score,
        "empties": labels.empties,
        "kind": words(np.where(labels.exact, KINDS.index("exact"), KINDS.index("search")), KINDS),
        "depth": labels.depth,
        "variant": words(np.full(rows, VARIANTS.index(labels.rules.variant)), VARIANTS),
        "size": np.full(rows, labels.rules.size, np.uint8),
    }
    stream = io.BytesIO()
    # boards hardly repeat: a dictionary of them would only be tried and thrown away
    few = [name for name in columns if name not in ("own", "opp")]
    parquet.write_table(pyarrow.table(columns), stream, compression="zstd", use_dictionary=few)
    return stream.getvalue()


def read_shard(folder: Path, shard: Shard, rules: Rules) -> Labels:
    """The labels of a shard's file; one that cannot be read or is of another game than *rules* is named."""
    pyarrow, parquet = require_pyarrow()
    data, name = checked_bytes(folder, shard), str(folder / shard.file)
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
        game = [table[column].unique().to_pylist() for column in ("size", "variant")]
        exact = pyarrow.compute.equal(table["kind"].cast(pyarrow.string()), "exact")
        own, opp, score, empties, depth = (
            table[column].to_numpy().astype(kind, casting="safe") for column, kind in NUMBERS.items()
        )
    except (pyarrow.ArrowException, KeyError, ValueError, TypeError) as error:
        raise TrainError(f"{name} cannot be read ({error}): expected a shard of labels") from None
    if game != [[rules.size], [rules.variant]]:
        raise TrainError(f"{name} is of size {game[0]} and variant {game[1]}: expected {rules}")
    labels = Labels(rules, own, opp, score, empties, exact.to_numpy(), depth)
    if (wrong := _wrong_row(labels)) is not None:
        row = ", ".join(f"{column} {getattr(labels, column)[wrong]}" for column in COLUMNS)
        raise TrainError(
            f"{name}, row {wrong}, has {row}: expected a position of {rules} with a score that it can have"
        )
    return labels


def _wrong_row(labels: Labels) -> int | None:
    """The first row that is no position with a score: estimates are finite, exact scores are those of some end of a game."""
    own, opp, most = labels.own, labels.opp, labels.rules.square_count
    within = np.isfinite(labels.score) & (~labels.exact | (np.abs(labels.score) <= most))
    playable = np.uint64(labels.rules.playable)
    sound = (
        ((own & opp) == 0) & (((own | opp) & ~playable) == 0) & (np.bitwise_count(own | opp) + labels.empties == most)
    )
    wrong = np.flatnonzero(~(within & sound))
    return int(wrong[0]) if len(wrong) else None
