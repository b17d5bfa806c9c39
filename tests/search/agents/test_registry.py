"""The table of agents: its import paths, and entry points of other packages."""

import importlib.metadata
import sys
from dataclasses import fields

import pytest

from reversi_env import Position, loading
from search import agents, evaluators
from search.agents import registry
from search.engine.engine import Engine

COIN = """
from dataclasses import dataclass
from reversi_env.options import Options, option
from search import Agent, evaluator

@dataclass(frozen=True)
class CoinOptions(Options):
    side: int = option(0, low=0, high=1)

class CoinAgent(Agent):
    spec_options = CoinOptions
    def __init__(self, side):
        self.side = side
    def choose(self, position):
        return position.legal_actions()[-self.side]

@evaluator(compiled=True)
def no_discs(own, opp):
    return 0.0
"""


@pytest.fixture
def entry_points(tmp_path, monkeypatch):
    """Entry points of another package by name, all in one module."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third_party.py").write_text(COIN)
    monkeypatch.setattr(registry.evaluators.registry, "_REGISTRY", dict(evaluators.registry._REGISTRY))
    real = importlib.metadata.entry_points

    def add(**objects):
        points = [
            importlib.metadata.EntryPoint(name.replace("_", "-"), value, loading.GROUP)
            for name, value in objects.items()
        ]

        def both(**asked):
            return [*points, *real(**asked)] if asked.get("group") == loading.GROUP else real(**asked)

        monkeypatch.setattr(importlib.metadata, "entry_points", both)
        loading._entry_points.cache_clear()

    yield add
    sys.modules.pop("third_party", None)
    loading._entry_points.cache_clear()


@pytest.mark.parametrize("name", [*registry._KINDS, *registry.PROGRAMS, "network"])
def test_every_import_path_of_the_table_exists_and_every_option_has_a_help_text(name):
    if name in ("zero", "rl", "rl-search"):
        pytest.importorskip("torch")
    kind = registry.agent_kind(name)
    assert callable(kind.maker) or callable(loading.load(kind.maker))
    assert kind.positional is None or kind.positional in kind.option_names
    assert all(one.metadata["help"] for one in fields(kind.options))


def test_an_agent_of_another_package_is_loaded_by_its_name_and_nothing_else_is(entry_points):
    entry_points(coin="third_party:CoinAgent", broken="no_such_module:x")
    assert {"coin", "broken", "network"} <= set(agents.names())
    assert agents.make_agent("six-factor")
    assert "third_party" not in sys.modules
    start = Position.initial()
    assert agents.make_agent("coin:side=1").choose(start) == start.legal_actions()[-1]
    assert agents.make_agent("coin", depth=3).side == 0
    with pytest.raises(agents.AgentSpecError, match="side"):
        agents.make_agent("coin:side=2")
    with pytest.raises(loading.EntryPointError, match="no_such_module"):
        agents.make_agent("broken")


def test_an_evaluator_of_another_package_searches(entry_points):
    entry_points(no_discs="third_party:no_discs", neither="third_party:dataclass")
    assert Engine("no-discs", preload=False).evaluator.name == agents.make_agent("no-discs:depth=1").evaluator.name
    with pytest.raises(loading.EntryPointError, match="neither"):
        agents.make_agent("neither")
