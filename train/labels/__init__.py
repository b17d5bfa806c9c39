"""Labels for learning: positions sampled from noisy games, scored by the solver or by search, kept in Parquet files.

Nothing here imports torch, and pyarrow only when files are read or written: positions can be sampled and labelled in
memory without it.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
