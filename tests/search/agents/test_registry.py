"""The registry of agents: its import paths, and entry points of other packages."""

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
    """A function that adds entry points of another package, all in one module."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third_party.py").write_text(COIN)
    monkeypatch.setattr(registry.evaluators.registry, "_REGISTRY", dict(evaluators.registry._REGISTRY))
    real = importlib.metadata.entry_points

    def add(**objects):
        points = [
            importlib.metadata.EntryPoint(name.replace("_", "-"), value, loading.GROUP)
            for name, value in objects.items()
        ]

        def both(**filters):
            return [*points, *real(**filters)] if filters.get("group") == loading.GROUP else real(**filters)

        monkeypatch.setattr(importlib.metadata, "entry_points", both)
        loading._entry_points.cache_clear()

    yield add
    sys.modules.pop("third_party", None)
    loading._entry_points.cache_clear()


@pytest.mark.parametrize("name", [*registry._KINDS, *registry.PROGRAMS, "network"])
def test_all_import_paths_exist_and_options_have_help(name):
    if name in ("zero", "rl", "rl-search"):
        pytest.importorskip("torch")
    kind = registry.agent_kind(name)
    assert callable(kind.maker) or callable(loading.load(kind.maker))
    assert kind.positional is None or kind.positional in kind.option_names
    assert all(one.metadata["help"] for one in fields(kind.options))


def test_entry_point_agent_is_loaded_by_name_only(entry_points):
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


def test_entry_point_evaluator_works_in_engine_and_agent(entry_points):
    entry_points(no_discs="third_party:no_discs", neither="third_party:dataclass")
    assert Engine("no-discs", preload=False).evaluator.name == agents.make_agent("no-discs:depth=1").evaluator.name
    with pytest.raises(loading.EntryPointError, match="neither"):
        agents.make_agent("neither")
