"""What the packages export: all of it is there, cheap to import, and typed for those who check their own code strictly."""

import importlib
import subprocess
import sys

import pytest

from reversi_env import BLACK, Position, Rules
from tests.conftest import REPOSITORY

FACADES = ("reversi_env", "search", "models", "train")

#: What a user may write, with the types that the checker must know.
SCRIPT = """
from typing import assert_type

import models
import reversi_env
import search
from reversi_env import Position, Rules
from search import Agent, AgentSpec, Engine, Evaluator, Formula, Limits, SearchResult, evaluator


@evaluator
def slow(position: Position) -> float:
    return float(position.disc_difference())


@evaluator(compiled=True, weights={"corner": 8.0})
def fast(board, own, opp):  # type: ignore[no-untyped-def]
    return 0.0


class First(Agent):
    def choose(self, position: Position) -> int:
        return position.legal_actions()[0]


start = Position.initial(Rules(6))
assert_type(search.make_agent("network"), Agent)
assert_type(search.make_agent(AgentSpec.parse("random").with_(seed=3)).choose(start), int)
assert_type(Engine(slow).search(start, Limits(depth=2)), SearchResult)
assert_type(fast.with_weights(corner=9), Formula)
assert_type(search.get_evaluator("network"), Evaluator)
assert_type(search.solve(start).score, int)
assert_type(models.load_network().static_value(start), float)
with First() as agent:
    assert_type(agent.choose_many([start]), list[int])
environment = reversi_env.ReversiEnv(size=6)
"""


@pytest.mark.parametrize("name", FACADES)
def test_a_package_exports_what_it_says_and_documents_it(name):
    package = importlib.import_module(name)
    assert len(package.__all__) == len(set(package.__all__))
    assert set(package.__all__) <= set(dir(package))
    for exported in package.__all__:
        assert getattr(package, exported) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_packages_import_nothing_of_what_they_export():
    heavy = {"torch", "pyarrow", "search.engine", "reversi_env.notation"}
    code = f"import sys, {', '.join(FACADES)}; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.slow
def test_a_script_over_the_facades_passes_strict_type_checks(tmp_path, monkeypatch):
    """Without the types of other libraries: reading torch's alone takes minutes."""
    from mypy import api

    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.setenv("MYPYPATH", str(REPOSITORY))
    monkeypatch.chdir(tmp_path)
    options = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    out, err, status = api.run(["--strict", *options, "script.py"])
    assert (status, err) == (0, ""), out


@pytest.mark.parametrize("rules", [Rules(), Rules(6), Rules(4, "reversed")])
def test_a_position_shows_its_board_and_can_be_typed_in_again(rules):
    position = Position.initial(rules).play(Position.initial(rules).legal_moves()[0])
    assert f"\n{position.to_text()[: rules.size]}\n" in repr(position)
    assert eval(repr(position), {"Position": Position, "Rules": Rules, "WHITE": BLACK.other}) == position
