"""Evaluators: static values of positions, by name or from functions of users.

* `base`: `Evaluator`, the base class;
* `registry`: evaluators by name;
* `published`: the heuristics of the reports and their weights;
* `formula`: `Formula`, a heuristic with weights, and its files;
* `function`: `evaluator`, which makes evaluators from functions.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
