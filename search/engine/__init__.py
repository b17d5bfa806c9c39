"""The alpha-beta engine and the exact solver around their kernels."""
