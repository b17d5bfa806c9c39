"""Labels for learning: positions sampled from noisy games, scored by the solver or by search, kept in Parquet files.

Nothing here imports torch, and pyarrow only when files are read or written: positions can be sampled and labelled in
memory without it.
"""

from __future__ import annotations

from train.labels.dataset import Labels, Manifest, Shard, read_manifest
from train.labels.generation import generate, label_positions, read
from train.labels.options import LabelOptions
from train.labels.sampling import sample_positions

__all__ = [
    "LabelOptions",
    "Labels",
    "Manifest",
    "Shard",
    "generate",
    "label_positions",
    "read",
    "read_manifest",
    "sample_positions",
]
