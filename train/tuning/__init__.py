"""Weights of a heuristic found by search: a genetic algorithm as report 002 used, and CMA-ES, against a stated objective.

space       which weights vary, and within what
objectives  what is wanted: games won, or small errors against exact scores
optimisers  who looks for it: pymoo's genetic algorithm, cma's evolution strategy
runs        all of it in a folder, resumable
"""
