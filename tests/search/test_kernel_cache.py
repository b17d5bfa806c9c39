"""The search kernels from the on-disk cache: recursion and caching have crashed second processes before."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

SEARCH_EVERYTHING = """
import importlib, pkgutil
from numba.core.dispatcher import Dispatcher
import search.core
from reversi_env import Position, Rules, batch
from reversi_env.core.compiling import Builds
from search.engine import Engine
from search.limits import Limits
from search.solver import Solver, solve_batch

results = []
for rules in (Rules(6), Rules(6, "reversed")):
    for name in ("six-factor", "discs"):
        engine = Engine(name, rules, megabytes=1)
        found = engine.search(Position.initial(rules), Limits(depth=4, empties_exact=0), multi_pv=2)
        results += [found.move, found.value, found.nodes]
    own, opp = batch.random_positions(4, 18, rules, seed=1)
    results += solve_batch(own, opp, rules, threads=1).tolist()
    solver = Solver(rules, threads=2)
    results += [solver.solve(Position(rules, int(own[0]), int(opp[0]))).score]
print(results)
misses = [
    kernel.__name__
    for module in pkgutil.iter_modules(search.core.__path__, "search.core.")
    for value in vars(importlib.import_module(module.name)).values()
    for kernel in (value if isinstance(value, Builds) else [value])
    if isinstance(kernel, Dispatcher) and kernel.stats.cache_misses
]
print(len(misses))
"""
SOLVE = """
from reversi_env import Position, Rules
from search.solver import solve
print(solve(Position.initial(Rules(4))).score)
"""


def run(code, folder=REPOSITORY, **environment):
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(folder)} | environment
    result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path):
    first, second = (run(SEARCH_EVERYTHING, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first[0] == second[0]
    assert int(first[1]) > 10
    assert int(second[1]) == 0


def test_an_edit_of_the_rules_reaches_the_solver(tmp_path):
    """The solver's own files do not change; numba alone would go on with the old rules."""
    for package in ("reversi_env", "search"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    assert run(SOLVE, tmp_path) == ["-10"]
    bitboard = tmp_path / "reversi_env" / "core" / "bitboard.py"
    source = bitboard.read_text()
    edited = source.replace("& playable & ~(own | opp)", "& playable & ~(own | opp) & np.uint64(0xFFFF_FFFF_FFFB_FFFF)")
    assert edited != source
    bitboard.write_text(edited)
    assert run(SOLVE, tmp_path) != ["-10"]
