"""Studies: questions about the game and about ways to search and train, answered by measuring. See README.md beside this file.

A study is a module with options (`studies.options`), ``measure(options, progress) -> dict`` for programs and
``section(dicts) -> Section`` for people. Its command is made from the options. `document` lists those of docs/lab/experiments.md.
"""
