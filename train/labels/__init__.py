"""Datasets of labelled positions: sampled from noisy games, scored by the solver or by search, stored in Parquet files.

Positions can be sampled and labelled in memory without torch and pyarrow.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
