"""Kernels of the networks: their forward pass inside the search."""
