"""Evaluators: functions that value positions, by name or made by users.

* `base` – `Evaluator`, the class of all of them;
* `registry` – evaluators by name, with the published heuristics;
* `formula` – the heuristics as formulas with weights, and their files;
* `function` – evaluators made from functions of users.
"""

import lazy_loader

# The names of __init__.pyi, imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
