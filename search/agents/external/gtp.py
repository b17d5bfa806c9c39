"""Players that speak GTP, the Go Text Protocol (version 2, Gunnar Farnebäck), as Othello programs use it.

A command is a line; the answer begins with ``=`` (done) or ``?`` (refused) and ends with an empty line. Used here:
``boardsize``, ``clear_board``, ``play``, ``genmove``, ``quit``; where the program knows them, ``set_game`` and
``time_settings``.

Passes are explicit in GTP, but not for all Othello programs: GRhino passes by itself and refuses ``play b pass`` without
harm. A program that refuses one pass is therefore told of no other.
"""

from __future__ import annotations

from fractions import Fraction

from reversi_env import BLACK, Position, Rules
from reversi_env.errors import quoted
from reversi_env.rules import PASS_NAME
from search.agents.external.base import ExternalAgent
from search.agents.external.process import Deadline

#: Names that ``set_game`` may know the games by, the first one accepted counts.
GAME_NAMES = {
    "normal": ("Othello", "Reversi"),
    "reversed": ("Anti-Othello", "Reversed Othello", "Reversed Reversi"),
}


class GtpAgent(ExternalAgent):
    """A player that is a GTP program; see `ExternalAgent`."""

    def _handshake(self, rules: Rules) -> None:
        self._known: tuple[str, ...] | None = None  # the moves that the program has on its board
        self._takes_passes = True
        self._choose_game(rules)
        if self._reply(f"boardsize {rules.size}") is None:
            raise self._failure("refused", f"refused boardsize {rules.size}: it does not play on that board")
        if self.time is not None:
            self._reply(f"time_settings {_time_settings(self.time, rules)}")  # whether it keeps to it is its own affair

    def _choose_game(self, rules: Rules) -> None:
        if rules.start != "standard":
            raise self._failure("refused", f"cannot be told of the {rules.start} start: GTP knows one start only")
        if self._reply("known_command set_game") == "true":
            accepted = any(self._reply(f"set_game {name}") is not None for name in GAME_NAMES[rules.variant])
        else:
            accepted = False
        if rules.variant != "normal" and not accepted:
            raise self._failure("refused", f"does not play the {rules.variant} game: set_game knows it under no name")

    def _answer(self, start: Position, moves: tuple[str, ...], position: Position) -> str:
        if start != Position.initial(start.rules):
            raise self._failure("refused", "cannot be set up to a position: GTP knows moves from the start only")
        if self._known is None or moves[: len(self._known)] != self._known:
            self._required_reply("clear_board")
            self._known = ()
        reached = start.play_all(self._known)
        for move in moves[len(self._known) :]:
            self._play(reached, move)
            reached = reached.play(move)
        answer = self._required_reply(f"genmove {_colour(position)}", self.limit).strip().lower()
        if answer == "resign":
            raise self._failure("resigned", "resigned")
        self._known = (*moves, answer)
        return answer

    def _play(self, position: Position, move: str) -> None:
        command = f"play {_colour(position)} {move}"
        if move != PASS_NAME:
            self._required_reply(command)
        elif self._takes_passes:
            self._takes_passes = self._reply(command) is not None

    def _required_reply(self, command: str, seconds: float | None = None) -> str:
        answer = self._reply(command, seconds)
        if answer is None:
            raise self._failure("refused", f"refused {quoted(command)}: {self._refusal}")
        return answer

    def _reply(self, command: str, seconds: float | None = None) -> str | None:
        """The answer to a command without its mark; None if the program refuses it."""
        wait = Deadline(command, self.patience if seconds is None else seconds)
        self._send(command)
        line = ""
        while not line.strip():  # empty lines that belong to nothing
            line = self._read(wait)
        if line[0] not in "=?":
            raise self._failure("malformed", f"answered {quoted(line)} to {quoted(command)}: expected '= …' or '? …'")
        answer, rest = line[1:].strip(), line
        while rest.strip():
            rest = self._read(wait)
            answer += f"\n{rest}" if rest.strip() else ""
        if line[0] == "=":
            return answer
        self._refusal = answer
        return None


def _colour(position: Position) -> str:
    return "b" if position.turn == BLACK else "w"


def _time_settings(seconds: float, rules: Rules) -> str:
    """Main time, seconds and moves of an overtime period: whole numbers, so that 0.1 s a move is 1 s for ten moves.

    A period is no longer than a side's game: a program would have time for it all that is meant for moves that never come.
    """
    longest = rules.square_count // 2 - 2
    share = Fraction(seconds).limit_denominator(longest) or Fraction(1, longest)
    return f"0 {share.numerator} {share.denominator}"
