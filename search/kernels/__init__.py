"""Kernels of the search: the transposition table, the exact solver, the midgame search and the evaluators."""
