"""Datasets of tokens: a folder with Parquet shards of a `GameStream` and a manifest of their hashes."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reversi_env.errors import TrainError
from reversi_env.storage.atomic import write_atomically
from train.jobs.run import MANIFEST, Run, check_resumable, read_json
from train.labels.dataset import Shard, checked_bytes, require_pyarrow
from train.sequences.options import TokenOptions

FORMAT = "reversi-tokens-1"


def write_tokens(
    options: TokenOptions, folder: Path, *, device: str = "cpu", progress: Callable[[int], None] = lambda games: None
) -> list[Shard]:
    """Make the dataset in *folder*, or finish it there; *progress* is called with the number of finished games."""
    from train.sequences.streams import GameStream

    stream = GameStream(
        *(options.variants, options.vocabulary, options.shard_games),
        seed=options.seed,
        device=device,
        split=options.split,
        prefix=options.prefix,
        source=options.source,
    )
    require_pyarrow()
    with Run(folder, file=MANIFEST):
        shards = _shards(folder, options) if (folder / MANIFEST).exists() else []
        for number in range(-(-options.games // options.shard_games)):
            if number < len(shards) and (folder / shards[number].file).exists():
                checked_bytes(folder, shards[number])
            else:
                rows = min(options.shard_games, options.games - number * options.shard_games)
                data = _to_bytes(stream.batch(number)[:rows].cpu().numpy())
                shard = Shard(f"shard-{number:05d}.parquet", rows, hashlib.sha256(data).hexdigest())
                write_atomically(folder / shard.file, data)
                shards[number : number + 1] = [shard]
                _write_manifest(folder, options, shards)
            progress(min(options.games, (number + 1) * options.shard_games))
    return shards


def read_tokens(folder: Path) -> NDArray[np.uint8]:
    """Return the tokens of a dataset, ``(games, length)``; a missing or damaged file raises a `TrainError`."""
    pyarrow, parquet = require_pyarrow()
    options = TokenOptions.from_dict(read_json(folder / MANIFEST, FORMAT)["options"])
    parts = []
    for shard in _shards(folder, options):
        table = parquet.read_table(pyarrow.BufferReader(checked_bytes(folder, shard)))
        parts.append(
            table["tokens"].combine_chunks().flatten().to_numpy().reshape(shard.rows, options.vocabulary.length)
        )
    return np.concatenate(parts)


def _to_bytes(tokens: NDArray[np.uint8]) -> bytes:
    """Return the file of a shard: a column of lists of equal length."""
    pyarrow, parquet = require_pyarrow()
    column, stream = pyarrow.FixedSizeListArray.from_arrays(tokens.reshape(-1), tokens.shape[1]), io.BytesIO()
    parquet.write_table(pyarrow.table({"tokens": column}), stream, compression="zstd")
    return stream.getvalue()


def _write_manifest(folder: Path, options: TokenOptions, shards: list[Shard]) -> None:
    vocabulary, files = asdict(options.vocabulary), [vars(shard) for shard in shards]
    content: dict[str, Any] = {
        "format": FORMAT,
        "options": options.as_dict(),
        "vocabulary": vocabulary,
        "shards": files,
    }
    write_atomically(folder / MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


def _shards(folder: Path, options: TokenOptions) -> list[Shard]:
    """Return the shards of a manifest, which must have the same options."""
    content = read_json(folder / MANIFEST, FORMAT)
    try:
        shards = [Shard(str(one["file"]), int(one["rows"]), str(one["sha256"])) for one in content["shards"]]
        stored = dict(content["options"])
    except (LookupError, TypeError, ValueError) as error:
        raise TrainError(
            f"{str(folder / MANIFEST)!r} cannot be read ({error}): expected a manifest of {FORMAT}"
        ) from None
    check_resumable(folder, stored, options.as_dict(), extendable=())
    return shards
