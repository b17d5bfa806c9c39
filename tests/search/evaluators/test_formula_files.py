"""Weight files of formulas, in the specs of evaluators and agents."""

import json

import pytest

from reversi_env import Position, Rules
from search import agents, evaluators
from search.evaluators.base import EvaluatorError
from search.evaluators.formula import formula_file

START = Position.initial(Rules(6)).play("e4")


@pytest.fixture
def saved(tmp_path):
    """A function that writes a weight file of six-factor with changes to its content and returns the path."""

    def write(name="weights.json", **changes):
        path = tmp_path / name
        evaluator = evaluators.get_evaluator("six-factor").with_weights(corner_weight=-50, table_weight=3)
        content = json.loads(formula_file(evaluator, "six-factor", {6: 0.5}, {"why": "a test"})) | changes
        path.write_text(json.dumps(content))
        return str(path)

    return write


def test_weights_and_scale_are_read_and_used_by_agents(saved):
    path = saved()
    evaluator, plain = evaluators.get_evaluator(f"six-factor:weights={path}"), evaluators.get_evaluator("six-factor")
    assert evaluator.weights == plain.weights | {"corner_weight": -50, "table_weight": 3}
    assert evaluator.scale_on(Rules(6)) == 0.5
    assert evaluator.scale_on(Rules(8)) == plain.scale_on(Rules(8))
    assert evaluator.name == f"six-factor:weights={path}"
    assert evaluator.static_value(START) != plain.static_value(START)
    assert evaluator.sha256(Rules(6)) != plain.sha256(Rules(6))
    assert agents.make_agent(f"six-factor:depth=2,table=0.1,weights={path}").evaluator.weights == evaluator.weights


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"formula": "ten-weight"}, "'ten-weight'"),
        *(({"format": "x"}, "format"), ({"weights": {}}, "weights"), ({"weights": {"corner": 1}}, "'corner'")),
        ({"weights": {"self": 1}}, "weights.json"),
        *(({"weights": {"corner_weight": number}}, "corner_weight=") for number in ("x", 10**400)),
        *(({"scale": scale}, "scale") for scale in ({"8": 10**400}, {"5": 1}, 3)),
        *((data, "weights.json") for data in (b"{", b"[]", b"\xff\xfe", b" " * (1 << 21))),
    ],
    ids=range(14),
)
def test_invalid_or_unreadable_file_error_is_one_line(saved, tmp_path, content, message):
    path = saved(**content) if isinstance(content, dict) else saved()
    if isinstance(content, bytes):
        (tmp_path / "weights.json").write_bytes(content)
    for wrong, words in ((path, message), (tmp_path, str(tmp_path)), (tmp_path / "no", str(tmp_path / "no"))):
        with pytest.raises(EvaluatorError) as raised:
            evaluators.get_evaluator(f"six-factor:weights={wrong}")
        assert words in str(raised.value)
        assert "\n" not in str(raised.value)


def test_error_for_weight_value_names_file_and_weight(saved):
    path = saved("ply.json", formula="four-attribute", weights={"ply": 0})
    with pytest.raises(EvaluatorError, match=r"ply\.json.*ply=0"):
        evaluators.get_evaluator(f"four-attribute:weights={path}")
