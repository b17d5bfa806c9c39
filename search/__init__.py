"""Alpha-beta search for any evaluator, an exact endgame solver, and agents built on them.

* Searching a position: `Engine`, `Limits`, `SearchResult`; many of them, `search_batch`.
* Perfect play: `Solver`, `solve`, `solve_all_moves`, `solve_batch`.
* Values of positions: `evaluator` makes one of a function; `Evaluator`, `Formula`, `get_evaluator`; the module
  `search.evaluators` has all that have a name.
* Players: `Agent`, `make_agent`, `AgentSpec`; the module `search.agents` has their names and options.
* A perfect judge around an environment: `ExactRegret`.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
