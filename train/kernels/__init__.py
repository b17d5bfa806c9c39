"""Compiled kernels of sampling and fitting."""
