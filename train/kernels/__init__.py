"""Kernels of the training code: everything numba compiles here, and nothing else."""
