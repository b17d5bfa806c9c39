"""Players that are other programs: started by their command line, spoken to over pipes, never trusted.

* `process` – one running program: lines in, lines out, deadlines, and an end that leaves nothing behind;
* `player` – the agent over it: it follows the game, checks every answer, and starts the program again after a failure;
* `gtp`, `nboard` – the two protocols; `search.agents` has them by text, ``gtp:gtp-rhino -l 3 -b 0``.

A program that crashes, hangs, talks nonsense or plays an illegal move raises `EngineFailure`; whoever runs the game takes
that as the loss of the game.
"""

from search.agents.external.process import EngineFailure

__all__ = ["EngineFailure"]
