"""Experiments: the statistics of the game, what the five reports measured, tuning, and performance models 3 and 4.

Each is a module with options, ``measure(options) -> dict`` for programs and ``section(dicts) -> Section`` for people. `suite`
lists them with the settings of ``docs/experiments.md``.

    breadth, nodes, winner, branching       statistics of the game
    report_000 … report_004                 the reports' experiments, their figures beside ours
    label_tuning                            weights tuned against exact scores
    counting, duels, style, document        what they share
    suite                                   all of them in one document
"""
