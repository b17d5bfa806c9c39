"""Kernels: everything that numba compiles, and nothing else. `reversi_env.core.compiling` says how."""
