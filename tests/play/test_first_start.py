"""The first start: missing kernels are compiled by other processes, with a message; their failure changes nothing."""

import pytest

from play import first_start
from play.first_start import compile_ahead, parts_of
from reversi_env.compiler.kernel import NotCompiled
from search.agents.spec import make_agent


@pytest.fixture
def compiled(monkeypatch):
    """The parts that other processes had to compile."""
    parts_asked = []

    def apart(parts):
        parts_asked.extend(parts)
        return parts

    monkeypatch.setattr(first_start, "_compile_apart", apart)
    return parts_asked


def test_missing_kernels_are_compiled_with_a_message(compiled, capsys):
    def load():
        loads.append(1)
        if not compiled:
            raise NotCompiled("search_root")

    loads = []
    compile_ahead(["search:network", "solver:network"], lambda: None)
    assert (compiled, capsys.readouterr().err) == ([], "")
    compile_ahead(["search:network", "solver:network"], load)
    assert (loads, compiled) == ([1, 1], ["search:network", "solver:network"])
    assert capsys.readouterr().err == f"{first_start.MESSAGE}\n"
    compiled.clear()
    with pytest.raises(NotCompiled):  # a single part is compiled here, with the message
        compile_ahead(["solver:"], load)
    assert (compiled, capsys.readouterr().err) == ([], f"{first_start.MESSAGE}\n")


def test_parts_of_agents_are_listed_once():
    agents = [make_agent(spec) for spec in ("network:depth=2", "six-factor", "network:depth=4", "random", "exact")]
    assert parts_of(agents) == ["search:network", "solver:network", "search:six-factor", "solver:"]


def test_failing_compilation_processes_change_nothing():
    parts = ["nonsense:", "search:no-such-evaluator"]
    assert list(first_start._compile_apart(parts)) == parts
