"""ProbCut that comes with weights: measured, written into their record, and used where the clock or the nodes are limited."""

from pathlib import Path

import pytest

from models.evaluator import NetworkEvaluator
from models.patterns import read_weights
from reversi_env import Position, ReversiError, Rules
from search import agents
from search.engine.engine import Engine
from search.engine.limits import Limits
from search.engine.probcut import MARGIN, as_table, from_table
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
    engine = Engine(f"network:weights={path}", RULES)  # prunes where the clock or the nodes are limited
    assert engine.margin_for(Limits(nodes=1000)) == engine.margin_for(Limits(time=0.1)) == MARGIN
    assert engine.margin_for(Limits(depth=6)) == 0


def test_a_margin_needs_coefficients(tmp_path):
    found = read_weights(NetworkEvaluator().file(RULES))
    found.record.pop("probcut", None)
    agent = agents.make_agent(f"network:probcut=1.5,weights={found.save_in(tmp_path)}")
    with pytest.raises(ReversiError, match="ProbCut"):
        agent.search(START)


def test_coefficients_of_a_former_version_are_refused_with_what_to_do(former):
    with pytest.raises(ReversiError, match=rf"{former.name}.*reversi train probcut"):
        Engine(f"network:weights={former}", RULES)
    assert agents.make_agent(f"network:probcut=0,depth=1,weights={former}").search(START).move


@pytest.mark.slow
def test_the_command(reversi, tmp_path, monkeypatch, former):
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
