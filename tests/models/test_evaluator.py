"""The evaluator and agent `network`: weights by game or file, kernels cached between processes, concurrent loads."""

import shutil

import pytest
from numba.np.numpy_support import from_dtype

from models import evaluator as network_module
from models.evaluator import NetworkEvaluator
from models.files import WeightsError
from models.kernels import deep as deep_value
from models.kernels import linear as pattern_value
from reversi_env import Position, Rules
from reversi_env.compiler import kernel as compiling
from search import agents, evaluators
from search.agents.spec import make_agent
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.kernels.evaluate import UNIT, static_values
from studies.textbook import negamax
from tests.conftest import REPOSITORY
from tests.oracles.patterns import random_network, some_boards
from tests.oracles.processes import output_of


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A weight file for 4x4 reversed, deep like the packaged ones: every kind needs its own compilation of the search."""
    return random_network("deep", 4, 5, "reversed").save_in(tmp_path_factory.mktemp("weights"))


def test_values_equal_those_of_the_file_which_is_read_once(tmp_path, monkeypatch):
    weights, rules = random_network("linear", 4, variant="reversed"), Rules(4, "reversed")
    path = weights.save_in(tmp_path)
    network = evaluators.get_evaluator(f"network:weights={path}")
    (own, opp), compiled = some_boards(4, 50), weights.compiled()
    expected = static_values(compiled.record, own, opp).tolist()
    assert network.static_values(own, opp, rules).tolist() == expected
    monkeypatch.setattr("models.evaluator.read_weights", lambda path: pytest.fail("read again"))
    assert network.static_value(Position(rules, int(own[0]), int(opp[0]))) == expected[0]
    assert network.record(rules) is network.record(rules)
    assert network.weights(rules).record == {"seed": 0}
    assert network.identity(rules) == path.read_bytes()


@pytest.mark.parametrize("rules", [Rules(4), Rules(8, "reversed")], ids=str)
def test_weights_of_another_game_are_rejected(small, rules):
    with pytest.raises(WeightsError, match=f"{small.name}.*4x4 reversed"):
        evaluators.get_evaluator(f"network:weights={small}").record(rules)
    with pytest.raises(WeightsError, match="4x4 reversed"):
        make_agent(f"network:depth=2,weights={small}").choose(Position.initial(rules))


def test_missing_or_ambiguous_packaged_weights_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr("models.evaluator.FOLDER", tmp_path)
    with pytest.raises(WeightsError, match="4x4 reversed"):
        NetworkEvaluator().record(Rules(4, "reversed"))
    for number in "12":
        (tmp_path / f"4x4-reversed-{number}.safetensors").touch()
    with pytest.raises(WeightsError, match="2 "):
        NetworkEvaluator().record(Rules(4, "reversed"))


def test_network_agent_takes_weights_and_search_options(small):
    agent = make_agent(f"network:depth=3,time=2,weights={small},table=0.1,seed=4")
    assert (agent.limits.depth, agent.limits.time) == (3, 2)
    assert agent.evaluator.name == f"network:weights={small}"
    assert make_agent("network").limits.depth == agents.DEFAULT_DEPTH
    assert make_agent("network").evaluator is evaluators.get_evaluator("network")
    with pytest.raises(WeightsError, match="nowhere"):
        make_agent("network:weights=nowhere").choose(Position.initial())


@pytest.mark.parametrize("kind", ["deep", pytest.param("linear", marks=[pytest.mark.slow, pytest.mark.long])])
def test_engine_value_equals_negamax_of_network(kind, tmp_path):
    """The engine, with compiled and rounded evaluations, agrees with plain negamax of the static values."""
    rules = Rules(4, "reversed")
    network = evaluators.get_evaluator(f"network:weights={random_network(kind, 4, 5, rules.variant).save_in(tmp_path)}")
    engine, values, position = Engine(network, rules, megabytes=0.1), set(), Position.initial(rules)
    for _ in range(3):
        result = engine.search(position, Limits(depth=3, empties_exact=0))
        assert result.value == pytest.approx(negamax(position, 3, network.static_value).value, abs=1 / UNIT)
        values.add(result.value)
        position = position.play_all(result.pv[:2])
    assert len(values) == 3


SEARCH = """
import sys
import numpy as np
blocker = np.ones(int(sys.argv[2]), np.uint8)  # so that the weights lie elsewhere
from reversi_env import Position, Rules
from reversi_env.batch import random_positions
from search import evaluators
from search.kernels import endgame, evaluate, midgame
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.solver import Solver
from search.engine.table import TranspositionTable
network = evaluators.get_evaluator("network:weights=" + sys.argv[1])
rules = Rules(4, "reversed")
engine = Engine(network, rules, megabytes=0.1)
result = engine.search(Position.initial(rules), Limits(depth=6, empties_exact=0))
print(result.move, result.value, result.nodes, network.static_value(Position.initial(rules)))
print(int(network.record(rules)["deep_rows"][0, 0]))
own, opp = random_positions(1, 43, seed=1)
solver = Solver(evaluator="network", table=TranspositionTable(1))
solution = solver.solve(Position(Rules(), int(own[0]), int(opp[0])))
print(solution.score, solution.nodes, bool(solver.thread_states["negamax"][0]))
kernels = (midgame.search_root, evaluate._static_values, endgame._solve)
print(sum(kernel.stats.cache_misses.total() for kernel in kernels))
"""


@pytest.mark.slow
def test_cached_kernels_contain_no_addresses(small):
    """Addresses of weights and of the solver's search differ between processes, so kernels must read them at run time."""
    first, second = (output_of(SEARCH, small, blocked) for blocked in (1, 50_000_000))
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert first[2] == second[2]
    assert first[2].endswith("True")
    assert second[3] == "0"  # no kernel was compiled again


def test_edit_of_any_network_file_changes_the_fingerprint(tmp_path, monkeypatch):
    """Kernels of the search depend on all files of the network's kernels, not only on the evaluator's file."""
    for module, record in ((deep_value, "DEEP_NET"), (pattern_value, "PATTERN_NET")):
        result = compiling.TYPE_FINGERPRINTS[from_dtype(getattr(module, record))]
        assert result == compiling.source_fingerprint(module.__file__)
    for folder in compiling.KERNEL_FOLDERS:
        shutil.copytree(REPOSITORY / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "_PROJECT_ROOT", tmp_path)
    fingerprint, file = compiling.source_fingerprint.__wrapped__, tmp_path / "models" / "kernels" / "deep.py"
    before = fingerprint(str(file))
    with (file.parent / "accumulator.py").open("a") as helper:
        helper.write("# another line\n")
    assert fingerprint(str(file)) != before


def test_concurrent_loads_keep_the_first_weights(monkeypatch):
    """A search uses the weights by address, so a second load must not replace them and free their memory."""
    evaluator, used, read = NetworkEvaluator(None), [], network_module.read_weights

    def reading(path):
        monkeypatch.setattr(network_module, "read_weights", read)
        used.append(evaluator.record(Rules(6)))  # as another thread that finishes first
        return read(path)

    monkeypatch.setattr(network_module, "read_weights", reading)
    assert [evaluator.record(Rules(6)) is used[0] for _ in range(2)] == [True, True]
