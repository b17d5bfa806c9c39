"""Labels for learning: positions sampled from noisy games, scored by the solver or by search, kept in Parquet files.

Nothing here imports torch, and pyarrow only when files are read or written: positions can be sampled and labelled in
memory without it.
"""

from __future__ import annotations

from train.labels.data import Labels
from train.labels.errors import LabelError
from train.labels.generation import Found, Step, generate, label_positions, read
from train.labels.labellers import ExactLabeller, Labeller, SearchLabeller
from train.labels.options import LabelOptions
from train.labels.sampling import sample_positions
from train.labels.storage import Manifest, Shard, read_manifest

__all__ = [
    "ExactLabeller",
    "Found",
    "LabelError",
    "LabelOptions",
    "Labeller",
    "Labels",
    "Manifest",
    "SearchLabeller",
    "Shard",
    "Step",
    "generate",
    "label_positions",
    "read",
    "read_manifest",
    "sample_positions",
]
