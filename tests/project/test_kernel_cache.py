"""The kernel cache: a second process compiles nothing, an edit in any file recompiles, compilation is announced."""

import shutil
import sys

import pytest

from reversi_env.compiler import kernel as compiling
from tests.conftest import REPOSITORY
from tests.oracles.processes import output_of, second_process_agrees

#: Programs that run many kernels of a folder, print the results, and end with the report of `tests.oracles.processes`.
PROGRAMS = {
    "rules": """
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
        for function in (batch.legal_moves, batch.is_over, batch.final_scores, batch.frontier, batch.stable_discs):
            results += [function(*boards, rules, parallel=parallel).sum()]
        results += [batch.canonical(*boards, parallel=parallel)[0].sum(), batch.position_hash(*boards, parallel=parallel).sum()]
        results += [batch.random_plies(5, rules, parallel=parallel)]
    position = Position.initial(rules)
    results += [position.perft(5), position.play("pass" if position.must_pass() else position.legal_moves()[0]).hash64()]
    results += [position.stable(), position.frontier(), position.canonical().own, position.transformed(5).own]
print([int(result) for result in results])

report(*modules_of(reversi_env.kernels), whole=False)
""",
    "environments": """
import hashlib
from reversi_env import Rules, functional
from reversi_env.envs import ReversiEnv, ReversiVectorEnv, pettingzoo
from reversi_env.kernels import episodes, states
from tests.oracles.games import last_legal
from tests.oracles.processes import report

seen = hashlib.sha256()
for observation in ("planes", "flat"):
    for opponent in (None, "random", "greedy", last_legal, ["random", last_legal]):
        for illegal in ("lose", "raise"):
            options = dict(size=4, opponent=opponent, observation=observation, illegal=illegal, colour="random", empties=2)
            env = ReversiEnv(**options)
            board, info = env.reset(seed=1)
            for _ in range(40):
                board, reward, terminated, _, info = env.step(env.sample_legal())
                seen.update(board.tobytes() + bytes(str(reward), "ascii") + env.action_masks().tobytes())
                if terminated:
                    env.reset()
            for parallel in (False, True):
                envs = ReversiVectorEnv(9, parallel=parallel, autoreset_mode="SAME_STEP", **options)
                envs.reset(seed=1)
                for _ in range(20):
                    boards, rewards, _, _, infos = envs.step(envs.sample_legal())
                    seen.update(boards.tobytes() + rewards.tobytes() + infos["action_mask"].tobytes())
game = pettingzoo.env(size=4)
game.reset(seed=1)
for _ in game.agent_iter():
    seen.update(game.state().tobytes())
    game.step(None if game.last()[2] else game.sample_legal())
for size in (4, 8):
    state = functional.init(9, Rules(size), 1, empties=3)
    state = functional.step(functional.symmetry(state, 5), functional.legal(state).argmax(-1))
    state = functional.from_boards(state.own, state.opp, state.rules)
    seen.update(functional.observe(state).tobytes() + functional.score(state).tobytes())
print(seen.hexdigest())

report(episodes, states)
""",
    "tensors": """
import hashlib
import numpy as np
from reversi_env.envs import TorchVectorEnv
from reversi_env.kernels import autoreset
from tests.oracles.processes import report

seen = hashlib.sha256()
for parallel in (False, True):
    for opponent in (None, "greedy"):
        envs = TorchVectorEnv(9, device="cpu", size=4, opponent=opponent, parallel=parallel)
        envs.reset(seed=1)
        for step in range(20):
            observations, rewards, *_ = envs.random_step() if step % 2 else envs.step([step % 16] * 9)
            boards, _ = envs.children()
            seen.update(observations.numpy().tobytes() + rewards.numpy().tobytes() + boards.numpy().tobytes())
states = envs.get_state()
words = np.zeros((autoreset.WORDS, 9), np.uint64)
autoreset.states_to_words(states, words)
back = np.zeros_like(states)
autoreset.words_to_states(words, envs.settings.game(), int(states["kind"][0]), back)
others = set(states.dtype.names) - {"potential", "game"}  # the environment stores these two
assert all((back[name] == states[name]).all() for name in others)
one = np.uint64(1)
for squares in (64, 36, 16):
    autoreset.mask_rows(np.uint64(autoreset.compact(one, squares)), one, squares)
    autoreset.plane_rows(one, one, squares)
autoreset.spread_to_bytes(one), autoreset.spread_to_float16(one)
game = envs.settings.game()
autoreset.set_game(game[0], one, 1.0, 64, 1, 0, 0, 0)
autoreset.set_start(game[0], one, one, 0, 0, -1, 0)
print(seen.hexdigest())

report(autoreset)
""",
    "search": """
import search.kernels
from reversi_env import Position, Rules, batch
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.solver import Solver, solve_all_moves, solve_batch
from search.engine.table import TranspositionTable
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
    engine = Engine("six-factor", rules, megabytes=1)
    result = engine.search(start, Limits(depth=5, empties_exact=0), multi_pv=2)
    results += [result.move, result.value, result.nodes, result.pv, engine.evaluator.static_value(position)]
print(results)

report(*modules_of(search.kernels), whole=False)
""",
}
#: Least number of reported kernels.
MIN_KERNELS = {"rules": 20, "environments": 30, "tensors": 15, "search": 15}
PERFT = "from reversi_env import Position; print(Position.initial().perft(6))"
MOBILITY = """
from reversi_env import Position
from search import evaluators
position = Position.from_text("-" * 27 + "OX------OXX" + "-" * 5 + "O" + "-" * 20)
print(evaluators.get_evaluator("mobility").static_value(position))
"""
SLOW_PROGRAMS = {"environments", "tensors"}


def cases():
    for name in PROGRAMS:
        for cache in ("of all tests", "empty"):
            marks = [pytest.mark.slow] if name in SLOW_PROGRAMS or cache == "empty" else []
            yield pytest.param(name, cache, marks=marks + [pytest.mark.long] * (cache == "empty"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cache"), [*cases()])
def test_cached_kernels_work_in_a_second_process(tmp_path, name, cache):
    """In an earlier version, cached kernels crashed on reload (recursion with literals)."""
    second_process_agrees(PROGRAMS[name], tmp_path, cache=cache, kernels=MIN_KERNELS[name])


@pytest.mark.slow
@pytest.mark.parametrize(("packages", "program"), [(["reversi_env"], PERFT), (["reversi_env", "search"], MOBILITY)])
def test_an_edit_recompiles_kernels_in_other_files(tmp_path, packages, program):
    """Numba alone would keep the old rules in kernels of unchanged files."""
    for package in packages:
        shutil.copytree(REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    before = output_of(program, folder=tmp_path)
    bitboard = tmp_path / "reversi_env" / "kernels" / "bitboard.py"
    source = bitboard.read_text()
    edited = source.replace("& playable & ~(own | opp)", "& playable & ~(own | opp) & np.uint64(0xFFFF_F7FF)")
    assert edited != source
    bitboard.write_text(edited)
    assert output_of(program, folder=tmp_path) != before
    bitboard.write_text(source)
    assert output_of(program, folder=tmp_path) == before


def test_announcing_compilation_works_without_stderr(monkeypatch):
    monkeypatch.setattr(compiling, "_announced", False)
    monkeypatch.setattr(sys, "stderr", None)
    compiling.announce_compilation()
