"""Weights of a heuristic found by search: a genetic algorithm as report 002 used, and CMA-ES, against a stated objective.

space       which weights vary, and within what
objectives  what is wanted: games won, or small errors against exact scores
optimisers  who looks for it: pymoo's genetic algorithm, cma's evolution strategy
runs        all of it in a folder, resumable
"""

from __future__ import annotations

from train.tuning.objectives import LabelError, Objective, WinRate
from train.tuning.optimisers import OPTIMISERS
from train.tuning.runs import Generation, Tuned, TuneOptions, tune
from train.tuning.space import Space, space_of

__all__ = [
    "OPTIMISERS",
    "Generation",
    "LabelError",
    "Objective",
    "Space",
    "TuneOptions",
    "Tuned",
    "WinRate",
    "space_of",
    "tune",
]
