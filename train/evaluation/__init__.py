"""Evaluation of values, moves and policies against exact scores and fixed baselines."""
