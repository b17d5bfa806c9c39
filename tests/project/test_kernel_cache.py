"""The kernel cache: the next start does not recompile, an edit anywhere does, and the first compilation is announced."""

import os
import pty
import shutil
import subprocess
import sys

import pytest

from reversi_env.compiler import kernel as compiling
from tests.conftest import REPOSITORY
from tests.oracles.processes import output_of, second_process_agrees

TOUCH_EVERYTHING = """
import numpy as np
import reversi_env.kernels
from reversi_env import Position, Rules, batch
from tests.oracles.processes import modules_of, report

results = []
for rules in (Rules(4), Rules(8)):
    for parallel in (False, True):
        boards = batch.random_positions(50, 6, rules, parallel=parallel)
        children = batch.expand(*boards, rules, parallel=parallel)
        parents = [board[children.parent] for board in boards]
        results += [batch.play(children.square, *parents, rules, parallel=parallel)[0].sum()]
        results += [batch.flips(children.square, *parents, rules, parallel=parallel).sum()]
        for question in (batch.legal_moves, batch.is_over, batch.final_scores, batch.frontier, batch.stable_discs):
            results += [question(*boards, rules, parallel=parallel).sum()]
        results += [batch.canonical(*boards, parallel=parallel)[0].sum(), batch.position_hash(*boards, parallel=parallel).sum()]
        results += [batch.random_plies(5, rules, parallel=parallel)]
    position = Position.initial(rules)
    results += [position.perft(5), position.play("pass" if position.must_pass() else position.legal_moves()[0]).hash64()]
    results += [position.stable(), position.frontier(), position.canonical().own, position.transformed(5).own]
print([int(result) for result in results])

report(*modules_of(reversi_env.kernels), whole=False)
"""
#: One small kernel.
LEGAL_MOVES = "from reversi_env import Position; print(Position.initial().legal_moves())"
PERFT = "from reversi_env import Position; print(Position.initial().perft(6))"


@pytest.mark.parametrize("cache", ["of all tests", pytest.param("empty", marks=[pytest.mark.slow, pytest.mark.long])])
def test_every_kernel_works_from_the_cache_in_a_second_process(tmp_path, cache):
    """Cached kernels have crashed on reload before (recursion with literals): the same results, and nothing compiled again."""
    second_process_agrees(TOUCH_EVERYTHING, tmp_path, cache=cache, kernels=20)


@pytest.mark.slow
def test_an_edit_in_one_file_reaches_kernels_in_the_others(tmp_path):
    """Numba alone would go on running the old rules in `perft`, whose own file has not changed.

    The same from one layer to the next is in tests/search.
    """
    copy = shutil.copytree(
        REPOSITORY / "reversi_env", tmp_path / "reversi_env", ignore=shutil.ignore_patterns("__pycache__")
    )
    assert output_of(PERFT, folder=tmp_path) == ["8200"]
    bitboard = copy / "kernels" / "bitboard.py"
    source = bitboard.read_text()
    edited = source.replace("& playable & ~(own | opp)", "& playable & ~(own | opp) & np.uint64(0x7FFF_FFFF_FFFF_F7FF)")
    assert edited != source
    bitboard.write_text(edited)
    assert output_of(PERFT, folder=tmp_path) != ["8200"]
    bitboard.write_text(source)
    assert output_of(PERFT, folder=tmp_path) == ["8200"]


@pytest.mark.slow
def test_a_cpu_without_wide_vectors_counts_the_same(tmp_path):
    """The scalar bodies are what such a CPU compiles; forced here by asking numba for a generic target."""
    assert output_of(PERFT, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", REVERSI_CACHE_DIR=tmp_path) == ["8200"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="needs a pseudo-terminal")
def test_compilation_is_announced_on_a_terminal_and_only_there(tmp_path, tmp_path_factory):
    spare = tmp_path_factory.mktemp("spare")  # where kernels lie if a disk was full once
    environment = os.environ | {"REVERSI_CACHE_DIR": str(tmp_path), "TMPDIR": str(spare), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", LEGAL_MOVES]
    announcements = []
    for _ in range(2):
        master, terminal = pty.openpty()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=terminal, check=True)
        os.close(terminal)
        try:
            announcements.append(os.read(master, 1000).decode())
        except OSError:  # Linux says EIO when the terminal is closed and nothing was written
            announcements.append("")
        os.close(master)
    assert announcements[0].count("compiling kernels") == 1
    assert announcements[1] == ""
    shutil.rmtree(tmp_path)
    quiet = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""


def test_what_has_no_standard_error_compiles_too(monkeypatch):
    monkeypatch.setattr(compiling, "_announced", False)
    monkeypatch.setattr(sys, "stderr", None)
    compiling.announce_compilation()


WITHOUT_INTERNALS = """
import sys, warnings
sys.modules["reversi_env.compiler.inner"] = None
with warnings.catch_warnings(record=True) as reported:
    from reversi_env import Position, envs
print([warning.category.__name__ for warning in reported], Position.initial().perft(6))
games = envs.ReversiVectorEnv(2, opponent="random")
games.reset(seed=1)
print(games.step(games.sample_legal())[1].tolist())
"""


@pytest.mark.slow
def test_without_the_internals_of_numba_kernels_are_plain_njit_functions(tmp_path):
    """A version of numba that lacks a name costs time at the start, and nothing else."""
    assert output_of(WITHOUT_INTERNALS, REVERSI_CACHE_DIR=tmp_path) == ["['NumbaWarning'] 8200", "[0.0, 0.0]"]
    assert not list(tmp_path.rglob("perft*"))


INNER_AND_OUTER = """
from reversi_env.compiler.inner import InnerEntry
from reversi_env.compiler.kernel import kernel

@kernel
def inner(number):
    if number < 0:
        raise ValueError("below zero")
    return number + 1

@kernel
def outer(number):
    return 2 * inner(number)

print(outer(3), [isinstance(known.entry_point, InnerEntry) for known in inner.overloads.values()])
for function in outer, inner:
    try:
        function(-1)
    except ValueError as error:
        print(error)
print(inner(4), outer(5), inner(6))

from numba.core.typeinfer import TypeInferer
typed, copy = [], TypeInferer.copy
TypeInferer.copy = lambda *arguments, **options: typed.append(1) or copy(*arguments, **options)

@kernel
def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

print(fibonacci(10), len(typed))
"""


def test_a_kernel_for_other_kernels_is_built_for_python_when_python_calls_it(tmp_path):
    """Its errors come out in both, from the compiler as from the cache. What calls itself is typed once more, not at every call."""
    program = tmp_path / "program.py"
    program.write_text(INNER_AND_OUTER)
    code = f"import runpy; runpy.run_path({str(program)!r})"
    rest = ["below zero", "below zero", "5 12 7"]
    assert output_of(code, REVERSI_CACHE_DIR=tmp_path) == ["8 [True]", *rest, "55 1"]
    assert output_of(code, REVERSI_CACHE_DIR=tmp_path) == ["8 []", *rest, "55 0"]
