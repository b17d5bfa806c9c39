"""Agents that are GTP programs: the Go Text Protocol (version 2, Gunnar Farnebäck), as Othello programs use it.

A command is a line; the answer begins with ``=`` (done) or ``?`` (refused) and ends with an empty line. Commands:
``boardsize``, ``clear_board``, ``play``, ``genmove``, ``quit``, and ``set_game`` and ``time_settings`` if the program has them.

Passes are explicit in GTP, but some Othello programs pass automatically: GRhino refuses ``play b pass``. A program that refuses one
pass is sent no other.
"""

from fractions import Fraction

from reversi_env import BLACK, Position, Rules
from reversi_env.errors import quoted
from reversi_env.rules import PASS_NAME
from search.agents.external.base import ExternalAgent
from search.agents.external.process import Deadline

#: Names of the games for ``set_game``, tried in this order.
GAME_NAMES = {"normal": ("Othello", "Reversi"), "reversed": ("Anti-Othello", "Reversed Othello", "Reversed Reversi")}


class GtpAgent(ExternalAgent):
    """An agent that is a GTP program."""

    def _handshake(self, rules: Rules) -> None:
        self._played: tuple[str, ...] | None = None  # the moves on the program's board
        self._takes_passes = True
        self._choose_game(rules)
        if self._reply(f"boardsize {rules.size}") is None:
            raise self._failure("refused", f"refused boardsize {rules.size}: it does not play on that board")
        if self.time is not None:
            self._reply(f"time_settings {_time_settings(self.time, rules)}")

    def _choose_game(self, rules: Rules) -> None:
        if rules.start != "standard":
            raise self._failure("refused", f"cannot play from the {rules.start} start: GTP has one start only")
        accepted = self._reply("known_command set_game") == "true" and any(
            self._reply(f"set_game {name}") is not None for name in GAME_NAMES[rules.variant]
        )
        if rules.variant != "normal" and not accepted:
            raise self._failure("refused", f"does not play the {rules.variant} game: set_game refused all its names")

    def _answer(self, start: Position, moves: tuple[str, ...], position: Position) -> str:
        if start != Position.initial(start.rules):
            raise self._failure("refused", "cannot be set up to a position: GTP has moves from the start only")
        if self._played is None or moves[: len(self._played)] != self._played:
            self._required_reply("clear_board")
            self._played = ()
        reached = start.play_all(self._played)
        for move in moves[len(self._played) :]:
            self._play(reached, move)
            reached = reached.play(move)
        answer = self._required_reply(f"genmove {_colour(position)}", self.limit).strip().lower()
        if answer == "resign":
            raise self._failure("resigned", "resigned")
        self._played = (*moves, answer)
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
        """Return the answer to a command without its mark; None if the program refuses it."""
        wait = Deadline(command, self.timeout if seconds is None else seconds)
        self._send(command)
        line = ""
        while not line.strip():  # skip empty lines between answers
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
    """Return main time, seconds and moves of an overtime period, all integers: 0.1 s per move is 1 s for ten moves.

    A period is no longer than a side's game, so that the program does not spend time meant for moves after the end.
    """
    max_moves = rules.square_count // 2 - 2
    share = Fraction(seconds).limit_denominator(max_moves) or Fraction(1, max_moves)
    return f"0 {share.numerator} {share.denominator}"
