"""`Labels`: labelled positions in memory, and the folder of a dataset: a manifest and shards in Parquet files."""

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
from train.jobs.run import MANIFEST, as_hashes, check_resumable, read_json
from train.labels.labellers import labeller_plan
from train.labels.options import LabelOptions


@dataclass(frozen=True, eq=False)
class Labels:
    """Positions and their scores, as arrays of equal length.

    ``own``, ``opp``: boards of the side to move and of the other side. ``score``: discs for the side to move under the
    objective of ``rules``. ``exact``: whether the score is that of perfect play. ``depth``: plies of the search, the number of
    empties where it is exact.
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
            raise TrainError(f"columns of {lengths} rows: expected equal lengths")

    def __len__(self) -> int:
        return len(self.own)

    def select(self, rows: ArrayLike) -> Labels:
        """Return the rows of a boolean mask or of indices."""
        return Labels(self.rules, *(getattr(self, name)[np.asarray(rows)] for name in COLUMNS))

    @staticmethod
    def concatenate(parts: Sequence[Labels]) -> Labels:
        """Return all rows of *parts*, which must be of the same game."""
        if not parts:
            raise TrainError("no labels to concatenate: expected one part or more")
        games = {part.rules for part in parts}
        if len(games) > 1:
            raise TrainError(f"labels of different games, {', '.join(sorted(map(str, games)))}: expected those of one")
        return Labels(parts[0].rules, *(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


#: The arrays of `Labels`, in order.
COLUMNS = tuple(field.name for field in fields(Labels) if field.name != "rules")


FORMAT = "reversi-labels-1"
#: The numeric columns of a shard and their types.
NUMBERS = {"own": np.uint64, "opp": np.uint64, "score": np.float32, "empties": np.uint8, "depth": np.uint8}
KINDS, VARIANTS = ("exact", "search"), get_args(Variant)


@dataclass(frozen=True)
class Shard:
    """One file of a dataset."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of a folder: the options, the finished shards, and hashes of the weights of the evaluators."""

    options: LabelOptions
    shards: tuple[Shard, ...] = ()
    evaluators: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows of the finished shards."""
        return sum(shard.rows for shard in self.shards)

    @property
    def complete(self) -> bool:
        return len(self.shards) == self.options.shards

    def to_json(self) -> str:
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
    """Return the manifest of a folder; an unreadable manifest raises a `TrainError`."""
    path = folder / MANIFEST
    if not path.exists():
        raise TrainError(f"{str(folder)!r} has no {MANIFEST}: expected a folder written by `reversi label`")
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
    """Return the hashes of the weights of player and labeller, by name; an unusable evaluator raises."""
    plan = labeller_plan(options.labeller)
    names = {options.player} | ({plan.evaluator} if plan.evaluator and plan.depth else set())
    hashes = {name: evaluators.get_evaluator(name).sha256(options.rules) for name in sorted(names)}
    if plan.evaluator and not plan.depth:
        hashes |= make_agent(plan.evaluator).content_hashes(options.rules)
    return hashes


def open_folder(folder: Path, options: LabelOptions, hashes: Mapping[str, str]) -> Manifest:
    """Return the manifest of a folder with the same options and weights, or write a new one."""
    is_new = not (folder / MANIFEST).exists()
    if is_new and any(folder.glob("*.parquet")):
        raise TrainError(f"{str(folder)!r} has Parquet files but no {MANIFEST}: expected an empty folder")
    manifest = Manifest(options) if is_new else read_manifest(folder)
    if not manifest.shards:  # nothing to resume
        manifest = Manifest(options, evaluators=hashes)
        write_atomically(folder / MANIFEST, manifest.to_json().encode())
    check_resumable(folder, manifest.options.as_dict(), options.as_dict())
    check_resumable(folder, as_hashes(manifest.evaluators), as_hashes(hashes))
    return manifest


def shards_in_place(folder: Path, manifest: Manifest) -> set[int]:
    """Return the numbers of the shards whose files exist; a corrupted file raises a `TrainError`."""
    existing = {number for number, shard in enumerate(manifest.shards) if (folder / shard.file).exists()}
    for number in existing:
        checked_bytes(folder, manifest.shards[number])
    return existing


def rows_in_place(folder: Path) -> int:
    """Return the number of rows of the existing shards of a folder, 0 for a new one; they are not checked."""
    if not (folder / MANIFEST).exists():
        return 0
    return sum(shard.rows for shard in read_manifest(folder).shards if (folder / shard.file).exists())


def checked_bytes(folder: Path, shard: Shard) -> bytes:
    """Return the content of a shard's file; a missing or corrupted file raises a `TrainError`."""
    path = folder / shard.file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise TrainError(
            f"{str(path)!r} is missing: expected all shards of the manifest; run the same command again"
        ) from None
    if hashlib.sha256(data).hexdigest() != shard.sha256:
        raise TrainError(
            f"{str(path)!r} is damaged, its SHA-256 is not that of the manifest: expected the file as it was "
            f"written; delete it and run the same command again"
        )
    return data


def add_shard(folder: Path, manifest: Manifest, shard: int, labels: Labels) -> Manifest:
    """Write a shard into the folder and return the manifest with it."""
    data = to_bytes(labels)
    entry = Shard(f"shard-{shard:05d}.parquet", len(labels), hashlib.sha256(data).hexdigest())
    write_atomically(folder / entry.file, data)
    shards = manifest.shards
    if entry not in shards[shard : shard + 1]:
        manifest = replace(manifest, shards=(*shards[:shard], entry, *shards[shard + 1 :]))
        write_atomically(folder / MANIFEST, manifest.to_json().encode())
    return manifest


def require_pyarrow() -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; raise `MissingExtra` where they are not installed."""
    with extra_libraries():
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    return pyarrow, pyarrow.parquet


def to_bytes(labels: Labels) -> bytes:
    """Return the file of a shard. Equal labels give equal bytes, from the same version of pyarrow."""
    pyarrow, parquet = require_pyarrow()
    rows = len(labels)

    def categories(indices: np.ndarray, names: tuple[str, ...]) -> Any:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices.astype(np.int8)), list(names))

    columns = {
        "own": labels.own,
        "opp": labels.opp,
        "score": labels.score,
        "empties": labels.empties,
        "kind": categories(np.where(labels.exact, KINDS.index("exact"), KINDS.index("search")), KINDS),
        "depth": labels.depth,
        "variant": categories(np.full(rows, VARIANTS.index(labels.rules.variant)), VARIANTS),
        "size": np.full(rows, labels.rules.size, np.uint8),
    }
    stream = io.BytesIO()
    repeated = [name for name in columns if name not in ("own", "opp")]
    parquet.write_table(pyarrow.table(columns), stream, compression="zstd", use_dictionary=repeated)
    return stream.getvalue()


def read_shard(folder: Path, shard: Shard, rules: Rules) -> Labels:
    """Return the labels of a shard; a file that cannot be read or is of another game raises a `TrainError`."""
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
    for row in np.flatnonzero(~_is_valid(labels))[:1]:
        content = ", ".join(f"{column} {getattr(labels, column)[row]}" for column in COLUMNS)
        raise TrainError(f"{name}, row {row}, has {content}: expected a position of {rules} with a possible score")
    return labels


def _is_valid(labels: Labels) -> NDArray[np.bool_]:
    """Return which rows are positions with a possible score."""
    own, opp, squares = labels.own, labels.opp, labels.rules.square_count
    discs = own | opp
    is_position = ((own & opp) == 0) & ((discs & ~np.uint64(labels.rules.playable)) == 0)
    is_position &= np.bitwise_count(discs) + labels.empties == squares
    return is_position & np.isfinite(labels.score) & (~labels.exact | (np.abs(labels.score) <= squares))
