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

from models.gpt.tokens import Vocabulary
from reversi_env.storage.atomic import write_atomically
from train.jobs.run import MANIFEST, Run, check_resumable, read_json
from train.labels.dataset import Shard, checked_bytes, require_pyarrow
from train.sequences.options import TokenOptions
from train.sequences.streams import GameStream

FORMAT = "reversi-tokens-1"


def write_tokens(
    options: TokenOptions, folder: Path, *, device: str = "cpu", progress: Callable[[int], None] = lambda games: None
) -> None:
    """Make the dataset in *folder*, or finish it there; *progress* is called with the number of finished games."""
    pyarrow, parquet = require_pyarrow()
    stream, path = GameStream(options, options.shard_games, split=options.split, device=device), folder / MANIFEST
    manifest: dict[str, Any] = {"format": FORMAT, "options": options.as_dict(), "shards": []}
    manifest["vocabulary"] = asdict(options.vocabulary)
    with Run(folder, file=MANIFEST):
        if path.exists():
            manifest = read_json(path, FORMAT)
            check_resumable(folder, manifest["options"], options.as_dict())
        shards = [Shard(**entry) for entry in manifest["shards"]]
        for number, first in enumerate(range(0, options.games, options.shard_games)):
            rows = min(options.shard_games, options.games - first)
            if number < len(shards) and (folder / shards[number].file).exists():
                checked_bytes(folder, shards[number])
            else:
                tokens, content = stream.batch(number)[:rows].cpu().numpy(), io.BytesIO()
                column = pyarrow.FixedSizeListArray.from_arrays(tokens.reshape(-1), tokens.shape[1])
                parquet.write_table(pyarrow.table({"tokens": column}), content, compression="zstd")
                data = content.getvalue()
                shard = Shard(f"shard-{number:05d}.parquet", rows, hashlib.sha256(data).hexdigest())
                write_atomically(folder / shard.file, data)
                shards[number : number + 1] = [shard]
                manifest["shards"] = [vars(one) for one in shards]
                write_atomically(path, (json.dumps(manifest, indent=1) + "\n").encode())
            progress(first + rows)


def read_tokens(folder: Path) -> NDArray[np.uint8]:
    """Return the tokens of a dataset, ``(games, length)``; a missing or damaged file raises a `TrainError`."""
    pyarrow, parquet = require_pyarrow()
    manifest = read_json(folder / MANIFEST, FORMAT)
    parts = []
    for entry in manifest["shards"]:
        table = parquet.read_table(pyarrow.BufferReader(checked_bytes(folder, Shard(**entry))))
        parts.append(table["tokens"].combine_chunks().flatten().to_numpy())
    return np.concatenate(parts).reshape(-1, Vocabulary(**manifest["vocabulary"]).length)
