"""Agents: objects that choose moves, by specs such as ``six-factor:depth=4``.

* `base`: `Agent`, the base class;
* `spec`: `AgentSpec`, `make_agent`;
* `registry`: the table of names, options and import paths; entry points of other packages;
* `simple`, `searching`, `book`: the agents of this package, and opening books;
* `external`: external programs as agents (GTP, NBoard).
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
