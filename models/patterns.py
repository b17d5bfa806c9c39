"""The patterns of a `PatternNet`, for those who train: kernels are generated from them, so they live among the kernels."""

from models.core.patterns import EMPTIES_A_PHASE, SYMMETRIES, Pattern, PatternSet, patterns_of

__all__ = ["EMPTIES_A_PHASE", "SYMMETRIES", "Pattern", "PatternSet", "patterns_of"]
