"""ProbCut that comes with weights: measured, written into their record, and used where the clock or the nodes are limited."""

from pathlib import Path

import pytest

from models.files import read_weights
from models.network import NetworkEvaluator
from reversi_env import Position, ReversiError, Rules, batch
from search import agents
from search.cuts import MARGIN, as_table, coefficients, from_table
from search.engine import Engine
from search.limits import Limits
from train.cuts import add_probcut

RULES = Rules(6)
START = Position.initial(RULES)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The package's 6x6 network without its own coefficients, fitted to depth 5."""
    seen = []
    path, cuts = add_probcut(
        *(NetworkEvaluator().file(RULES), tmp_path_factory.mktemp("fitted")),
        deepest=5,
        positions=40,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert sorted(seen) == [(done, 40) for done in range(1, 41)]
    return path, cuts


def test_it_is_written_into_a_copy_of_the_weights(fitted):
    path, cuts = fitted
    before, after = read_weights(NetworkEvaluator().file(RULES)), read_weights(path)
    assert all((before.tensors()[name] == array).all() for name, array in after.tensors().items())
    assert from_table(after.record["probcut"]) == cuts
    assert [(pair.deep, pair.shallow) for pair in cuts.pairs] == [(3, 1), (4, 2), (5, 1)]
    assert all(0.5 < pair.slope < 1.5 and 0.3 < cuts.deviation(pair, 20) < 10 for pair in cuts.pairs)


def test_deeper_searches_than_were_measured_are_foretold_too(fitted):
    record = coefficients(fitted[1])
    assert record["cut_depth"][3:12].tolist() == [1, 2, 1, 2, 3, 4, 3, 4, 5]
    assert record["cut_shift"][7] == record["cut_shift"][5]
    assert (record["cut_deviation"][3:25] > 0).all()
    assert record["cut_depth"][:3].tolist() == [0, 0, 0]


def test_an_engine_prunes_where_the_clock_or_the_nodes_are_limited(fitted):
    engine = Engine(f"network:weights={fitted[0]}", RULES)
    assert engine._margin_for(Limits(nodes=1000)) == engine._margin_for(Limits(time=0.1)) == MARGIN
    assert engine._margin_for(Limits(depth=6)) == 0
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


def test_agents_take_a_margin(fitted):
    spec = f"network:depth=9,exact=0,weights={fitted[0]}"
    engines = [agents.make(f"{spec},probcut={margin}").prepare(RULES) for margin in (0, 1)]
    nodes = [total("nodes", engine, Limits(depth=9, empties_exact=0)) for engine in engines]
    assert nodes[1] < 0.8 * nodes[0]


def test_a_margin_needs_coefficients(tmp_path):
    found = read_weights(NetworkEvaluator().file(RULES))
    found.record.pop("probcut", None)
    agent = agents.make(f"network:probcut=1.5,weights={found.save_in(tmp_path)}")
    with pytest.raises(ReversiError, match="ProbCut needs fitted coefficients"):
        agent.search(START)


def test_the_command(reversi, tmp_path, monkeypatch):
    monkeypatch.setattr("train.cuts.DEEPEST", {6: 3})
    monkeypatch.setattr("train.cuts.POSITIONS", 30)
    weights = NetworkEvaluator().file(RULES)
    code, out, _ = reversi("train", "--probcut", weights, "--out", tmp_path)
    assert code == 0
    assert "foretold by" in out
    assert read_weights(Path(out.rpartition("weights: ")[2].strip())).record["probcut"]
    code, _, err = reversi("train", "labels", "--probcut", weights, "--out", tmp_path)
    assert code == 2
    assert err == "reversi: --probcut with LABELS or other options of a training: expected it with --out alone\n"


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
    "change",
    [{"deep": 70}, {"deep": "x"}, {"slope": 0.0}, {"shallow": 0}, {"unknown": 1.0}, {"shift": float("nan")}],
)
def test_lines_of_a_file_are_checked(fitted, change):
    table = as_table(fitted[1])
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        from_table(table | {"pairs": [table["pairs"][0] | change]})


@pytest.mark.parametrize(
    "change",
    [{"pairs": []}, {"empties": [30, 20]}, {"empties": 3}, {"spread": {}}, {"spread": None}, {"pairs": [3]}],
)
def test_coefficients_of_a_file_are_checked(fitted, change):
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        from_table(as_table(fitted[1]) | change)
    spread = as_table(fitted[1])["spread"] | {"constant": float("inf")}
    with pytest.raises(ReversiError, match="expected finite numbers"):
        from_table(as_table(fitted[1]) | {"spread": spread})
