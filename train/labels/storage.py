"""The folder of a data set: shards, a manifest, and what an interruption may leave behind.

A shard is put in its place as a whole (`reversi_env.writing`), then its hash into the manifest, in the same way. A process
killed at any moment therefore leaves finished shards, and perhaps one that the manifest does not know, which is made again.
There are no times or names of machines in any file, so that a data set made in one go and one made in ten are the same to the
byte.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

from reversi_env.writing import write_atomically
from train.fingerprints import weights_sha256
from train.labels.errors import LabelError
from train.labels.labellers import labeller_plan
from train.labels.options import LabelOptions
from train.run import as_hashes, check_same, read_json

FORMAT = "reversi-labels-1"
MANIFEST = "manifest.json"


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
    evaluators: tuple[tuple[str, str], ...] = ()

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
            "evaluators": dict(self.evaluators),
            "rows": self.rows,
            "complete": self.complete,
            "shards": [vars(shard) for shard in self.shards],
        }
        return json.dumps(content, indent=1) + "\n"


def file_of(shard: int) -> str:
    """The name of a shard's file."""
    return f"shard-{shard:05d}.parquet"


def new_manifest(options: LabelOptions) -> Manifest:
    """The manifest of a data set of which nothing is done yet."""
    names = {options.player, labeller_plan(options.labeller).evaluator} - {None}
    return Manifest(options, (), tuple((name, weights_sha256(name, options.rules)) for name in sorted(map(str, names))))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder, or a `LabelError` that says what is wrong with it."""
    path = folder / MANIFEST
    if not path.exists():
        raise LabelError(f"{str(folder)!r} has no {MANIFEST}: expected a folder that `reversi label` made")
    content = read_json(path, FORMAT)
    try:
        shards = tuple(Shard(str(s["file"]), int(s["rows"]), str(s["sha256"])) for s in content["shards"])
        evaluators = tuple((str(name), str(sha256)) for name, sha256 in content["evaluators"].items())
        return Manifest(LabelOptions.from_dict(content["options"]), shards, evaluators)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise LabelError(
            f"{str(path)!r} cannot be read ({error}): expected a manifest of the format {FORMAT}"
        ) from None


def open_folder(folder: Path, options: LabelOptions) -> Manifest:
    """The manifest to go on with: the folder's own if it was made with the same options, a new one in a new folder."""
    fresh = new_manifest(options)
    if not (folder / MANIFEST).exists():
        if any(folder.glob("*.parquet")):
            raise LabelError(f"{str(folder)!r} has Parquet files but no {MANIFEST}: expected an empty folder")
        write_atomically(folder / MANIFEST, fresh.to_json().encode())
        return fresh
    known = read_manifest(folder)
    if not known.shards:  # nothing to go on from
        write_atomically(folder / MANIFEST, fresh.to_json().encode())
        return fresh
    check_same(folder, known.options.as_dict(), options.as_dict())
    check_same(folder, as_hashes(dict(known.evaluators)), as_hashes(dict(fresh.evaluators)))
    return known


def is_done(folder: Path, manifest: Manifest, shard: int) -> bool:
    """Whether a shard is in its place, its bytes as the manifest has them; damaged ones raise."""
    if shard >= len(manifest.shards):
        return False
    if not (folder / file_of(shard)).exists():
        return False
    checked_bytes(folder, manifest.shards[shard])
    return True


def rows_in_place(folder: Path) -> int:
    """Rows of the shards of a folder that are there; 0 where nothing was begun. Their bytes are not looked at."""
    if not (folder / MANIFEST).exists():
        return 0
    return sum(shard.rows for shard in read_manifest(folder).shards if (folder / shard.file).exists())


def checked_bytes(folder: Path, shard: Shard, *, verify: bool = True) -> bytes:
    """A shard's bytes; a `LabelError` with its name if it is missing or, with *verify*, not as it was written."""
    path = folder / shard.file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise LabelError(f"{str(path)!r} is missing: expected it; run the same `reversi label` again") from None
    if verify and hashlib.sha256(data).hexdigest() != shard.sha256:
        raise LabelError(
            f"{str(path)!r} is damaged, its SHA-256 is not that of the manifest: expected the file as it was "
            f"written; delete it and run the same `reversi label` again"
        )
    return data


def add_shard(folder: Path, manifest: Manifest, shard: int, data: bytes) -> Manifest:
    """Put a shard into the folder; the manifest that knows it."""
    path = folder / file_of(shard)
    entry = Shard(path.name, len(manifest.options.rows(shard)), hashlib.sha256(data).hexdigest())
    write_atomically(path, data)
    known = manifest.shards
    if entry not in known[shard : shard + 1]:
        manifest = replace(manifest, shards=(*known[:shard], entry, *known[shard + 1 :]))
        write_atomically(folder / MANIFEST, manifest.to_json().encode())
    return manifest
