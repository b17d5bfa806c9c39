"""The first start: what is missing is compiled by other processes, a person is told, and nothing depends on those processes."""

import pytest

from play import first_start
from play.first_start import compile_ahead, parts_of
from reversi_env.compiler.kernel import NotCompiled
from search.agents.spec import make_agent


@pytest.fixture
def compiled(monkeypatch):
    """The parts that processes were asked to compile."""
    asked = []

    def apart(parts):
        asked.extend(parts)
        return parts

    monkeypatch.setattr(first_start, "_compile_apart", apart)
    return asked


def test_what_is_missing_is_compiled_apart_and_told_and_what_is_there_is_only_loaded(compiled, capsys):
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
    with pytest.raises(NotCompiled):  # one part is compiled here, and told too
        compile_ahead(["solver:"], load)
    assert (compiled, capsys.readouterr().err) == ([], f"{first_start.MESSAGE}\n")


def test_the_parts_of_agents():
    agents = [make_agent(spec) for spec in ("network:depth=2", "six-factor", "network:depth=4", "random", "exact")]
    assert parts_of(agents) == ["search:network", "solver:network", "search:six-factor", "solver:"]


def test_a_process_that_fails_changes_nothing():
    parts = ["nonsense:", "search:no-such-evaluator"]
    assert list(first_start._compile_apart(parts)) == parts
