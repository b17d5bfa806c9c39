"""Players that speak the NBoard protocol, version 2 (Chris Welty's, of NBoard and NTest; Edax and others know it too).

Commands are lines and most have no answer. The game is sent whole, as GGF, before every move: the program never has to be
in step with us. Used here: ``nboard 2``, ``set depth``, ``set game``, ``ping``/``pong``, ``go`` (answered by
``=== e6//…``), ``quit``. Programs write on either output, and much that is only for show; it is read over.
"""

from __future__ import annotations

import re

from reversi_env import Position, Rules
from reversi_env.errors import quoted
from reversi_env.notation import Game, write_ggf
from search.agents.external.base import DEFAULT_LIMIT, ExternalAgent
from search.agents.external.process import Deadline

DEFAULT_DEPTH = 8
#: The move is the first thing behind the mark; its value and its time follow after slashes or spaces.
_MOVE = re.compile(r"===\s*([^\s/]*)")


class NBoardAgent(ExternalAgent):
    """A player that is an NBoard program, searching to *depth* where it keeps to that; see `ExternalAgent`."""

    merge_stderr = True
    sets_up_positions = True

    def __init__(
        self, command: str, *, time: float | None = None, limit: float = DEFAULT_LIMIT, depth: int = DEFAULT_DEPTH
    ) -> None:
        super().__init__(command, time=time, limit=limit)
        self.depth = depth

    def _handshake(self, rules: Rules) -> None:
        self._pings = 0
        self._send("nboard 2")
        self._send(f"set depth {self.depth}")
        self._ping()

    def _answer(self, start: Position, moves: tuple[str, ...], position: Position) -> str:
        self._send(f"set game {self._record(start, moves)}")
        self._ping()
        wait = Deadline("go", self.limit)
        self._send("go")
        while (match := _MOVE.match(self._read(wait))) is None:
            pass
        return match[1]

    def _record(self, start: Position, moves: tuple[str, ...]) -> str:
        """The game so far; the clock (TI: minutes and seconds) is the time of thirty moves, for programs that look at it."""
        tags = {}
        if self.time is not None:
            whole = max(1, round(self.time * start.rules.square_count / 2))
            tags["TI"] = f"{whole // 60:02d}:{whole % 60:02d}"
        return write_ggf(Game(start, moves, tags=tags))

    def _ping(self) -> None:
        """Wait until the program has read all that was sent, and is silent."""
        self._pings += 1
        wait = Deadline(f"ping {self._pings}", self.patience)
        self._send(wait.command)
        while (line := self._read(wait)).strip() != f"pong {self._pings}":
            if line.startswith("==="):
                raise self._failure("malformed", f"moved without being asked: {quoted(line)}")
