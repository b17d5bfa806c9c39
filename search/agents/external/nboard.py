"""Agents that are NBoard programs: version 2 of Chris Welty's protocol, for NBoard, NTest, Edax and others.

Commands are lines, and most have no answer. The whole game is sent as GGF before every move. Commands: ``nboard 2``,
``set depth``, ``set game``, ``ping``/``pong``, ``go`` (answered by ``=== e6//…``), ``quit``. Programs write to both outputs;
other lines are skipped.
"""

import re

from reversi_env import Position, Rules
from reversi_env.errors import quoted
from reversi_env.notation import Game, write_ggf
from search.agents.external.base import DEFAULT_LIMIT, ExternalAgent
from search.agents.external.process import Deadline

DEFAULT_DEPTH = 8
#: The move follows the mark; its value and its time follow after slashes or spaces.
_MOVE = re.compile(r"===\s*([^\s/]*)")


class NBoardAgent(ExternalAgent):
    """An agent that is an NBoard program; *depth* is the search depth that it is set to."""

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
        """Return the game so far as GGF; the clock (TI: minutes and seconds) has the time of half a game's moves."""
        tags = {}
        if self.time is not None:
            seconds = max(1, round(self.time * start.rules.square_count / 2))
            tags["TI"] = f"{seconds // 60:02d}:{seconds % 60:02d}"
        return write_ggf(Game(start, moves, tags=tags))

    def _ping(self) -> None:
        """Wait until the program has handled all commands sent so far."""
        self._pings += 1
        wait = Deadline(f"ping {self._pings}", self.timeout)
        self._send(wait.command)
        while (line := self._read(wait)).strip() != f"pong {self._pings}":
            if line.startswith("==="):
                raise self._failure("malformed", f"sent the move {quoted(line)} without a `go`")
