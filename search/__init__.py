"""Alpha-beta search for any evaluator, an exact endgame solver, and agents built on them.

* Searching a position: `Engine`, `Limits`, `SearchResult`; many of them, `search_batch`.
* Perfect play: `Solver`, `solve`, `solve_all_moves`, `solve_batch`.
* Values of positions: `evaluator` makes an evaluator from a function; `Evaluator`, `Formula`, `get_evaluator`; the module
  `search.evaluators` has all named evaluators.
* Players: `Agent`, `make_agent`, `AgentSpec`; the module `search.agents` has their names and options.
* Regret of actions in an environment: `ExactRegret`.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
