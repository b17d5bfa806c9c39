"""Shards as Parquet files. The only module here that needs pyarrow, which it imports when it is first used.

Columns: own, opp (uint64), score (float32), empties (uint8), kind (dictionary of strings, "exact" or "search"), depth
(uint8), variant (dictionary of strings), size (uint8).
"""

from __future__ import annotations

import io
from typing import Any, get_args

import numpy as np

from reversi_env import Rules
from reversi_env.extras import extra_libraries
from reversi_env.rules import Variant
from train.labels.data import Labels
from train.labels.errors import LabelError
from train.labels.labellers import Kind

KINDS, VARIANTS = get_args(Kind), get_args(Variant)


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


def from_bytes(data: bytes, rules: Rules, name: str) -> Labels:
    """The labels of a shard's file, called *name* where it cannot be read or is of another game than *rules*."""
    pyarrow, parquet = require_pyarrow()
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
        game = [table[column].unique().to_pylist() for column in ("size", "variant")]
        exact = pyarrow.compute.equal(table["kind"].cast(pyarrow.string()), "exact")
        own, opp, score, empties, depth = (
            table[column].to_numpy() for column in ("own", "opp", "score", "empties", "depth")
        )
    except (pyarrow.ArrowException, KeyError, ValueError) as error:
        raise LabelError(f"{name} cannot be read ({error}): expected a shard of labels") from None
    if game != [[rules.size], [rules.variant]]:
        raise LabelError(f"{name} is of size {game[0]} and variant {game[1]}: expected {rules}")
    return Labels(rules, own, opp, score, empties, exact.to_numpy(), depth)
