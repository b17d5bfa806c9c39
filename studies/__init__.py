"""Studies: measurements of the game, of evaluators and of searches. See README.md in this folder.

A study is a module with options (`studies.options`), ``measure(options, progress) -> dict`` for programs and
``section(dicts) -> Section`` for people. Its command is made from the options. `studies.page` lists all experiments.
"""
