"""Tuning of heuristics: a genetic algorithm, as in report 002, and CMA-ES."""
