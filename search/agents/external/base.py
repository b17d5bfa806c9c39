"""`ExternalAgent`: the base class of agents that are external programs."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import NotationError, quoted
from reversi_env.rules import PASS_NAME
from search.agents.base import Agent
from search.agents.external.process import Deadline, EngineFailure, EngineProcess, FailureKind

#: Seconds that a program may take over one move unless its spec says otherwise.
DEFAULT_LIMIT = 60.0


class ExternalAgent(Agent):
    """An agent that is an external program. It is started on first use and restarted after a failure.

    *time*: seconds per move, sent if the protocol has a command for it; *limit*: seconds per move after which it loses the game.
    A program follows a game move by move, so the arena calls `choose_after` with the whole game. `choose` looks for moves to the
    position from the last position or from the start. Without such moves it sets up the position, if the protocol can do so.
    """

    quit_command = "quit"
    merge_stderr = False
    #: Seconds per answer to any command but a move, such as to start or to set up a game.
    timeout = 60.0
    sets_up_positions = False

    def __init__(self, command: str, *, time: float | None = None, limit: float = DEFAULT_LIMIT) -> None:
        self.command, self.time, self.limit = command, time, limit
        self._process: EngineProcess | None = None
        self._rules: Rules | None = None
        self._seen: tuple[Position, tuple[str, ...]] | None = None

    @abstractmethod
    def _handshake(self, rules: Rules) -> None:
        """Agree on the game with a program that has just been started."""

    @abstractmethod
    def _answer(self, start: Position, moves: tuple[str, ...], position: Position) -> str:
        """Set the program to *position*, which *moves* lead to from *start*, and return the name of its move."""

    def prepare(self, rules: Rules) -> None:
        """Start the program and agree on the game; raise an `EngineFailure` if it does not play it, or was ended for a flood."""
        if self._process is not None and (flood := self._process.excess):
            self._end()
            raise self._failure("crash", f"{flood} between two moves")
        if self._process is not None and (not self._process.alive or rules != self._rules):
            self.close()
        if self._process is None:
            self._process = EngineProcess(self.command, merge_stderr=self.merge_stderr)
            self._rules = rules
            with self._closed_on_failure():
                self._handshake(rules)

    def choose(self, position: Position) -> int:
        """Return the program's action; raise an `EngineFailure` if there is none or it is illegal."""
        return self.choose_after(*self._moves_to(position))

    def choose_after(self, start: Position, moves: Sequence[str], position: Position | None = None) -> int:
        position, moves = position or start.play_all(moves), tuple(moves)
        if position.must_pass():
            return position.rules.pass_action
        self.prepare(position.rules)
        with self._closed_on_failure():
            name = self._answer(start, moves, position)
            action = self._checked(name, position)
        self._seen = (start, (*moves, position.rules.name_of(action)))
        return action

    def stop(self) -> None:
        """End the program; callable from any thread."""
        if (process := self._process) is not None:
            process.close()

    def close(self) -> None:
        """End the program; the next move starts it again."""
        self._end(self.quit_command)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_process": None, "_seen": None}  # a copy starts its own program

    def _send(self, line: str) -> None:
        assert self._process is not None
        self._process.send(line)

    def _read(self, wait: Deadline) -> str:
        assert self._process is not None
        return self._process.read_line(wait)

    def _failure(self, kind: FailureKind, words: str) -> EngineFailure:
        return EngineFailure(kind, f"{quoted(self.command)} {words}")

    def _checked(self, name: str, position: Position) -> int:
        try:
            action = position.rules.action_from_name(name)
        except NotationError:
            raise self._failure("malformed", f"answered {quoted(name)}: expected a move") from None
        if action not in position.legal_actions():
            legal = " ".join(position.legal_moves())
            raise self._failure("illegal", f"played {quoted(name)}: the legal moves are {legal}")
        return action

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Kill the program after a failure, without its quit command."""
        try:
            yield
        except BaseException:
            self._end()
            raise

    def _end(self, quit_command: str | None = None) -> None:
        process, self._process, self._seen = self._process, None, None
        if process is not None:
            process.close(quit_command)

    def _moves_to(self, position: Position) -> tuple[Position, tuple[str, ...]]:
        initial = Position.initial(position.rules)
        for start, moves in filter(None, (self._seen, (initial, ()))):
            if start.rules == position.rules and (way := _moves_between(start.play_all(moves), position)) is not None:
                return start, (*moves, *way)
        if self.sets_up_positions:
            return position, ()
        raise ReversiError(
            f"{quoted(self.command)} plays whole games: expected a position one move after its last move, "
            f"or the moves that lead to {position.to_text()}"
        )


def _moves_between(before: Position, after: Position) -> tuple[str, ...] | None:
    if before == after:
        return ()
    for move in before.legal_moves():
        reached = before.play(move)
        if reached == after:
            return (move,)
        if (move == PASS_NAME or reached.must_pass()) and (rest := _moves_between(reached, after)) is not None:
            return (move, *rest)
    return None
