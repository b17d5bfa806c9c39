"""External programs as agents, started by their command line and connected by pipes.

* `process`: a running program, with deadlines; everything that it starts is ended with it;
* `base`: the agent; it follows the game, checks every answer, and restarts the program after a failure;
* `gtp`, `nboard`: the protocols, in `search.agents` by specs such as ``gtp:gtp-rhino -l 3 -b 0``.

A program that crashes, hangs, answers nonsense or plays an illegal move raises `EngineFailure`, and loses the game.
"""

from search.agents.external.process import EngineFailure

__all__ = ["EngineFailure"]
