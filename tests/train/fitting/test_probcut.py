"""ProbCut that comes with weights: measured, written into their record, and used where the clock or the nodes are limited."""

from pathlib import Path

import pytest

from models.evaluator import NetworkEvaluator
from models.patterns import read_weights
from reversi_env import Position, ReversiError, Rules, batch
from search import agents
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN, as_table, coefficients, from_table
from train.fitting.probcut import add_probcut

RULES = Rules(6)
START = Position.initial(RULES)
FINITE = {"constant": 1.0, "deep": 0.1, "shallow": -0.1, "empties": -0.03, "empties_squared": 0.0}
#: Coefficients as they were written before deviations depended on the empty squares.
FORMER = [{"deep": 3, "shallow": 1, "slope": 1.0, "shift": 0.0, "deviation": 2.0, "positions": 30}]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The package's 6x6 network with other coefficients than its own, fitted to depth 5."""
    seen = []
    path, cuts = add_probcut(
        *(NetworkEvaluator().file(RULES), tmp_path_factory.mktemp("fitted")),
        deepest=5,
        positions=40,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert sorted(seen) == [(done, 80) for done in range(1, 81)]
    return path, cuts


@pytest.fixture(scope="module")
def former(tmp_path_factory):
    """The package's 6x6 network with coefficients of the former form."""
    found = read_weights(NetworkEvaluator().file(RULES))
    found.record["probcut"] = FORMER
    return found.save_in(tmp_path_factory.mktemp("former"))


@pytest.mark.slow
def test_it_is_written_into_a_copy_of_the_weights(fitted):
    path, cuts = fitted
    before, after = read_weights(NetworkEvaluator().file(RULES)), read_weights(path)
    assert all((before.tensors()[name] == array).all() for name, array in after.tensors().items())
    assert from_table(after.record["probcut"]) == cuts
    assert [(pair.deep, pair.shallow) for pair in cuts.pairs] == [(3, 1), (4, 2), (5, 1)]
    assert all(0.5 < pair.slope < 1.5 and 0.3 < cuts.deviation(pair, 20) < 10 for pair in cuts.pairs)


@pytest.mark.slow
def test_deeper_searches_than_were_measured_are_foretold_too(fitted):
    record = coefficients(fitted[1])
    assert record["cut_depth"][3:12].tolist() == [1, 2, 1, 2, 3, 4, 3, 4, 5]
    assert record["cut_shift"][7] == record["cut_shift"][5]
    assert (record["cut_deviation"][2:25] > 0).all()
    assert record["cut_depth"][:3].tolist() == [0, 0, 0]


@pytest.mark.slow
def test_an_engine_prunes_where_the_clock_or_the_nodes_are_limited(fitted):
    engine = Engine(f"network:weights={fitted[0]}", RULES)
    assert engine.margin_for(Limits(nodes=1000)) == engine.margin_for(Limits(time=0.1)) == MARGIN
    assert engine.margin_for(Limits(depth=6)) == 0
    plain = Engine(f"network:weights={fitted[0]}", RULES)
    plain.set_probcut(0.0)
    limits = Limits(nodes=100_000, empties_exact=0)
    assert total("depth", engine, limits) > total("depth", plain, limits)
    limits = Limits(depth=5, empties_exact=0)
    assert total("nodes", engine, limits) == total("nodes", plain, limits)


def total(what, engine, limits):
    """Sum over some positions of the middle of the game."""
    found = 0
    for a, b in zip(*batch.random_positions(6, 10, RULES, seed=2), strict=True):
        engine.clear()
        found += getattr(engine.search(Position(RULES, int(a), int(b)), limits), what)
    return found


@pytest.mark.slow
def test_agents_take_a_margin(fitted):
    spec = f"network:depth=9,exact=0,weights={fitted[0]}"
    engines = [agents.make_agent(f"{spec},probcut={margin}").engine(RULES) for margin in (0, 1)]
    nodes = [total("nodes", engine, Limits(depth=9, empties_exact=0)) for engine in engines]
    assert nodes[1] < 0.8 * nodes[0]


def test_a_margin_needs_coefficients(tmp_path):
    found = read_weights(NetworkEvaluator().file(RULES))
    found.record.pop("probcut", None)
    agent = agents.make_agent(f"network:probcut=1.5,weights={found.save_in(tmp_path)}")
    with pytest.raises(ReversiError, match="ProbCut needs fitted coefficients"):
        agent.search(START)


def test_coefficients_of_a_former_version_are_refused_with_what_to_do(former):
    with pytest.raises(ReversiError, match=rf"{former.name}.*reversi train probcut"):
        Engine(f"network:weights={former}", RULES)
    assert agents.make_agent(f"network:probcut=0,depth=1,weights={former}").search(START).move


@pytest.mark.slow
def test_the_command(reversi, tmp_path, monkeypatch, former):
    """It mends a file that an engine refuses, too."""
    monkeypatch.setattr("train.fitting.probcut.MAX_DEPTH", {6: 3})
    monkeypatch.setattr("train.fitting.probcut.POSITIONS", 30)
    code, out, _ = reversi("train", "probcut", former, "--out", tmp_path)
    assert code == 0
    assert "deep" in out
    mended = Path(out.rpartition("weights: ")[2].strip())
    assert Engine(f"network:weights={mended}", RULES).margin_for(Limits(nodes=1000)) == MARGIN
    code, _, err = reversi("train", "probcut", former, "--out", former)
    assert code == 2
    assert former.name in err


@pytest.mark.slow
def test_what_was_pruned_is_not_taken_for_the_whole_tree(fitted):
    """A search to a fixed depth after one by nodes has the value that it has on an engine that never pruned."""
    used, fresh = (Engine(f"network:weights={fitted[0]}", RULES) for _ in range(2))
    for a, b in zip(*batch.random_positions(6, 10, RULES, seed=3), strict=True):
        position = Position(RULES, int(a), int(b))
        used.search(position, Limits(nodes=100_000, empties_exact=0))
        fresh.clear()
        limits = Limits(depth=6, empties_exact=0)
        assert used.search(position, limits).value == fresh.search(position, limits).value


@pytest.mark.parametrize(
    ("change", "of_a_pair"),
    [
        *((change, True) for change in ({"deep": 70}, {"deep": "x"}, {"deep": 3.5}, {"slope": 0.0}, {"shallow": 0})),
        *((change, True) for change in ({"unknown": 1.0}, {"shift": float("nan")}, {"shift": 1e300})),
        *((change, False) for change in ({"pairs": []}, {"pairs": [3]}, {"empties": [30, 20]}, {"empties": 3})),
        *((change, False) for change in ({"spread": {}}, {"spread": FINITE | {"deep": float("inf")}})),
    ],
)
@pytest.mark.slow
def test_coefficients_of_a_file_are_checked(fitted, change, of_a_pair):
    table = as_table(fitted[1])
    assert from_table(table | {"spread": FINITE})
    changed = {"pairs": [table["pairs"][0] | change]} if of_a_pair else change
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        from_table(table | changed)
