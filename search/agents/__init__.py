"""Agents: what makes them, by name and options, and the classes.

* `base` – `Agent`, the class of all of them;
* `registry` – agents by specs such as ``six-factor:depth=4``; entry points of other packages;
* `players`, `double_alpha`, `book` – the agents of this package, and opening books;
* `external` – other programs as agents (GTP, NBoard).
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
