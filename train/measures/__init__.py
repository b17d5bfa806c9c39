"""Performance models 3 and 4 of report 002: how wrong an evaluator is over whole trees, and what it is worth in plies of search.

structural      structural minimax value loss
search_depth    depth and nodes at equal time, nodes to a depth, and plies of search gained
"""

from __future__ import annotations

from train.measures.search_depth import DepthOptions
from train.measures.search_depth import measure as measure_depth
from train.measures.structural import StructuralOptions
from train.measures.structural import measure as measure_structural

__all__ = ["DepthOptions", "StructuralOptions", "measure_depth", "measure_structural"]
