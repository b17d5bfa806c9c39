"""Alpha-beta search for any evaluator, an exact endgame solver, and agents built on them.

* Searching a position: `Engine`, `Limits`, `SearchResult`; many of them, `search_batch`.
* Perfect play: `Solver`, `solve`, `solve_all_moves`, `solve_batch`.
* Values of positions: `evaluator` makes one of a function; `Evaluator`, `Formula`, `get_evaluator`; the module
  `search.evaluators` has all that have a name.
* Players: `Agent`, `make_agent`, `AgentSpec`; the module `search.agents` has their names and options.
* A perfect judge around an environment: `ExactRegret`.

What is named here is imported when it is first used.
"""

from typing import TYPE_CHECKING

from reversi_env.lazy import lazy_names

if TYPE_CHECKING:
    from search.agent import Agent
    from search.agents import AgentSpec
    from search.agents import make_agent as make_agent
    from search.batch import search_batch
    from search.engine import Engine
    from search.evaluation import Evaluator
    from search.evaluators import get_evaluator as get_evaluator
    from search.formulas import Formula
    from search.functions import evaluator
    from search.limits import Limits, SearchResult
    from search.regret import ExactRegret
    from search.solver import Solver, solve, solve_all_moves, solve_batch

_HOMES = {
    "Agent": "search.agent",
    "AgentSpec": "search.agents",
    "Engine": "search.engine",
    "Evaluator": "search.evaluation",
    "ExactRegret": "search.regret",
    "Formula": "search.formulas",
    "Limits": "search.limits",
    "SearchResult": "search.limits",
    "Solver": "search.solver",
    "evaluator": "search.functions",
    "get_evaluator": "search.evaluators:get_evaluator",
    "make_agent": "search.agents:make_agent",
    "search_batch": "search.batch",
    "solve": "search.solver",
    "solve_all_moves": "search.solver",
    "solve_batch": "search.solver",
}
__all__ = [
    "Agent",
    "AgentSpec",
    "Engine",
    "Evaluator",
    "ExactRegret",
    "Formula",
    "Limits",
    "SearchResult",
    "Solver",
    "evaluator",
    "get_evaluator",
    "make_agent",
    "search_batch",
    "solve",
    "solve_all_moves",
    "solve_batch",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
