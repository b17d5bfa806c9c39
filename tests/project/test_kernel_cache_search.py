"""The kernel cache of the search: the next start compiles nothing and is quick, an edit of the rules reaches the search."""

import resource
import shutil
import time

import pytest

from play.first_start import MESSAGE
from tests.conftest import REPOSITORY
from tests.oracles.processes import finished, output_of, second_process_agrees

TOUCH_EVERYTHING = """
import numpy as np
import search.kernels
from reversi_env import Position, Rules, batch
from search.agents.double_alpha import DoubleAlpha
from search.engine.engine.engine import Engine
from search.engine.engine.limits import Limits
from search.engine.engine.solver import Solver, solve_all_moves, solve_batch
from search.engine.engine.table import TranspositionTable
from tests.oracles.processes import modules_of, report

results = []
for rules in (Rules(4), Rules(8, "reversed")):
    start = Position.initial(rules)
    boards = batch.random_positions(20, rules.square_count - 12, rules)
    results += solve_batch(*boards, rules, threads=1).tolist()
    position = Position(rules, int(boards[0][0]), int(boards[1][0]))
    for threads in (1, 2):
        solver = Solver(rules, threads=threads, table=TranspositionTable(1))
        results += [solver.solve(position).score, solver.solve(position, wld=True).score, solver.solve(position).pv]
        results += [solver.solve(start, node_limit=2000).move]
    results += [solve_all_moves(position)]
    for name in ("six-factor", "four-attribute"):
        for options in ({}, {"use_table": False}):
            engine = Engine(name, rules, megabytes=1, **options)
            found = engine.search(start, Limits(depth=5, empties_exact=0), multi_pv=2)
            results += [found.move, found.value, found.nodes, found.pv, engine.evaluator.static_value(position)]
        found = DoubleAlpha(name, rules, capacity=100).search(start, Limits(depth=4))
        results += [found.move, found.value, found.nodes]
print(results)

report(*modules_of(search.kernels), whole=False)
"""
FIRST_START = """
import sys
from play.cli.app import main
sys.argv = ["reversi", "analyse", "start", "--agent", "mobility", "--depth", "6"]
main()
"""
LATER_START = """
import sys
from play.cli.app import main
sys.argv = ["reversi", "analyse", "start", "--depth", "6"]
main()
"""
#: What the command cannot do without, imported and not used.
LIBRARIES = "import gymnasium, numba, pettingzoo, scipy.linalg, cyclopts"
MOBILITY = """
from reversi_env import Position
from search import evaluators
position = Position.from_text("-" * 27 + "OX------OXX" + "-" * 5 + "O" + "-" * 20)
print(evaluators.get_evaluator("mobility").static_value(position))
"""


def timed(code, **environment):
    """A fresh process that has ended, and its processor time with that of its own children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = finished(code, **environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("cache", ["of all tests", pytest.param("empty", marks=[pytest.mark.slow, pytest.mark.long])])
def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path, cache):
    """Cached kernels have crashed on reload before (recursion with literals): the same results, and nothing compiled again."""
    second_process_agrees(TOUCH_EVERYTHING, tmp_path, cache=cache, kernels=15)


@pytest.mark.slow
def test_the_first_start_compiles_in_a_while_and_says_so_and_the_second_is_quick(tmp_path):
    """Processor time, since the machine may be busy, which makes even that longer: the aims are 40 s and 1.5 s.

    A machine that is too slow for that has as many times what the libraries alone take there; the next test looks more closely.
    """
    (told, first), (again, second) = (timed(FIRST_START, REVERSI_CACHE_DIR=tmp_path) for _ in range(2))
    assert [done.stderr for done in (told, again)] == [f"{MESSAGE}\n", ""]
    answer, same = (done.stdout.partition(" nodes")[0] for done in (told, again))
    assert answer == same
    assert "discs (depth 6)" in answer
    _, libraries = timed(LIBRARIES)
    assert first < max(80, 80 * libraries)
    assert second < max(4, 4 * libraries)


@pytest.mark.slow
def test_a_later_start_of_the_command_takes_less_than_a_second_and_a_half():
    """The requirement is a time: 1.5 s for `reversi analyse start --depth 6` once its kernels are compiled.

    A machine that is too slow or too busy for that has 3.5 times what the libraries alone take there, measured in turn. The
    processor time of a process, user and system, counts where it is
    shorter than that on the wall (it is longer where a library starts threads of its own), and the best of up to five launches.
    """
    timed(LATER_START)  # the kernels are compiled now, if they were not before
    taken: dict[str, list[float]] = {LIBRARIES: [], LATER_START: []}
    for _ in range(5):
        for code, seconds in taken.items():
            began = time.perf_counter()
            done, processor_seconds = timed(code)
            seconds.append(min(processor_seconds, time.perf_counter() - began))
        assert "discs (depth 6)" in done.stdout
        libraries, command = min(taken[LIBRARIES]), min(taken[LATER_START])
        if command < max(1.5, 3.5 * libraries):
            return
    pytest.fail(str(taken))


@pytest.mark.slow
def test_an_edit_of_the_rules_reaches_the_search(tmp_path):
    """Numba alone would go on evaluating by the old rules, since no file of the search has changed."""
    for package in ("reversi_env", "search"):
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    before = output_of(MOBILITY, folder=tmp_path)
    bitboard = tmp_path / "reversi_env" / "kernels" / "bitboard.py"
    source = bitboard.read_text()
    edited = source.replace("& playable & ~(own | opp)", "& playable & ~(own | opp) & np.uint64(0xFFFF_FFFF)")
    assert edited != source
    bitboard.write_text(edited)
    assert output_of(MOBILITY, folder=tmp_path) != before
    bitboard.write_text(source)
    assert output_of(MOBILITY, folder=tmp_path) == before
