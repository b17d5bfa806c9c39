"""ProbCut coefficients of weights: measured, stored in their record, used in searches limited by time or nodes."""

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
#: Coefficients in the format before deviations depended on the empty squares.
OLD_FORMAT = [{"deep": 3, "shallow": 1, "slope": 1.0, "shift": 0.0, "deviation": 2.0, "positions": 30}]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The packaged 6x6 network with coefficients fitted to depth 5."""
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
def old_format(tmp_path_factory):
    """The packaged 6x6 network with coefficients in the old format."""
    network = read_weights(NetworkEvaluator().file(RULES))
    network.record["probcut"] = OLD_FORMAT
    return network.save_in(tmp_path_factory.mktemp("former"))


@pytest.mark.slow
def test_coefficients_are_written_into_a_copy_of_the_weights(fitted):
    path, cuts = fitted
    before, after = read_weights(NetworkEvaluator().file(RULES)), read_weights(path)
    assert all((before.tensors()[name] == array).all() for name, array in after.tensors().items())
    assert from_table(after.record["probcut"]) == cuts
    assert [(pair.deep, pair.shallow) for pair in cuts.pairs] == [(3, 1), (4, 2), (5, 1)]
    assert all(0.5 < pair.slope < 1.5 and 0.3 < cuts.deviation(pair, 20) < 10 for pair in cuts.pairs)
    engine = Engine(f"network:weights={path}", RULES)  # prunes if time or nodes are limited
    assert engine.margin_for(Limits(nodes=1000)) == engine.margin_for(Limits(time=0.1)) == MARGIN
    assert engine.margin_for(Limits(depth=6)) == 0


def test_a_margin_needs_coefficients(tmp_path):
    network = read_weights(NetworkEvaluator().file(RULES))
    network.record.pop("probcut", None)
    agent = agents.make_agent(f"network:probcut=1.5,weights={network.save_in(tmp_path)}")
    with pytest.raises(ReversiError, match="ProbCut"):
        agent.search(START)


def test_coefficients_of_an_old_format_are_refused(old_format):
    with pytest.raises(ReversiError, match=rf"{old_format.name}.*reversi train probcut"):
        Engine(f"network:weights={old_format}", RULES)
    assert agents.make_agent(f"network:probcut=0,depth=1,weights={old_format}").search(START).move


@pytest.mark.slow
def test_probcut_command(reversi, tmp_path, monkeypatch, old_format):
    monkeypatch.setattr("train.fitting.probcut.MAX_DEPTH", {6: 3})
    monkeypatch.setattr("train.fitting.probcut.POSITIONS", 30)
    code, out, _ = reversi("train", "probcut", old_format, "--out", tmp_path)
    assert code == 0
    assert "deep" in out
    repaired = Path(out.rpartition("weights: ")[2].strip())
    assert Engine(f"network:weights={repaired}", RULES).margin_for(Limits(nodes=1000)) == MARGIN
    code, _, err = reversi("train", "probcut", old_format, "--out", old_format)
    assert code == 2
    assert old_format.name in err


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
def test_invalid_coefficients_are_refused(fitted, change, of_a_pair):
    table = as_table(fitted[1])
    assert from_table(table | {"spread": FINITE})
    changed = {"pairs": [table["pairs"][0] | change]} if of_a_pair else change
    with pytest.raises(ReversiError, match="ProbCut coefficients"):
        from_table(table | changed)
