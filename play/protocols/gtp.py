"""GTP, the Go Text Protocol version 2, as Othello programs use it (docs/reference/protocols.md).

As in Go, moves of one colour may follow each other, whatever the turn; a colour may then play where it could if it were its turn.
A pass may be left out.
"""

import re
from collections.abc import Callable, Iterable
from time import perf_counter, process_time

from play.thinker import Ponderer, Thinker, Thought
from play.time_control import TimeControl
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rendering import render_ansi
from reversi_env.rules import BLACK, PASS_NAME, WHITE, Colour, Variant

PROTOCOL_VERSION = "2"
NAME = "Reversi Lab"

#: Characters that are no part of any message: all control characters but the tab and the line end.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_VERTEX = r"([a-hj-z])([1-9]|1[0-9]|2[0-5])"
_NUMBER = r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+)"
_COLOURS = {"b": BLACK, "black": BLACK, "w": WHITE, "white": WHITE}
_GAMES: dict[str, Variant] = {"Othello": "normal", "Anti-Othello": "reversed"}
_OTHER_NAMES: dict[str, Variant] = {"reversi": "normal", "reversed reversi": "reversed"}


class GtpError(ReversiError):
    """The error message of a command that cannot be carried out."""


class GtpEngine:
    """The engine's side of one session: `answer` takes a line, and returns the text to be sent back.

    An engine that *ponders* thinks from `ponder` to the next line if the last move was its own.
    """

    def __init__(
        self, thinker: Thinker, rules: Rules | None = None, *, version: str = "", ponders: bool = False
    ) -> None:
        self.thinker = thinker
        self.ponderer = Ponderer(thinker, ponders)
        self.rules = rules or Rules()
        self.has_quit = False
        self._version = version
        self._positions = [Position.initial(self.rules)]
        self._clocks: dict[Colour, TimeControl] = {}
        self._settings: TimeControl | None = None
        self._commands: dict[str, Callable[..., str | None]] = {
            "protocol_version": lambda *_: PROTOCOL_VERSION,
            "name": lambda *_: NAME,
            "version": lambda *_: self._version,
            "known_command": lambda name, *_: str(name in self._commands).lower(),
            "list_commands": lambda *_: "\n".join(sorted(self._commands)),
            "help": lambda *_: "\n".join(sorted(self._commands)),
            "quit": self._quit,
            "boardsize": self._boardsize,
            "query_boardsize": lambda *_: str(self.rules.size),
            "clear_board": self._clear_board,
            "komi": self._komi,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": self._reg_genmove,
            "undo": self._undo,
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "final_score": self._final_score,
            "showboard": self._showboard,
            "list_games": lambda *_: "\n".join(_GAMES),
            "set_game": self._set_game,
            "cputime": lambda *_: f"{process_time():.2f}",
            "reversi-values": self._values,
            "reversi-set": self._set,
        }

    @property
    def position(self) -> Position:
        return self._positions[-1]

    def answer(self, line: str) -> str | None:
        """Return the response to a line, with its final empty line; None if the protocol requires no response."""
        self.ponderer.end()
        words = _CONTROL.sub("", line.replace("\t", " ")).partition("#")[0].split()
        if not words:
            return None
        number = words.pop(0) if words[0].isascii() and words[0].isdigit() else ""
        try:
            mark, text = "=", self._run(*words)
        except ReversiError as error:  # of the protocol, or of an agent that failed
            mark, text = "?", " ".join(str(error).split())
        return f"{mark}{number} {text}".rstrip(" ") + "\n\n"

    def ponder(self) -> None:
        self.ponderer.begin(self.position, clock=self._clocks.get(self.position.turn.other))

    def _run(self, name: str = "", *arguments: str) -> str:
        if name not in self._commands:
            raise GtpError("unknown command")
        try:
            return self._commands[name](*arguments) or ""
        except TypeError as error:
            if error.__traceback__ and error.__traceback__.tb_next is None:  # wrong number of arguments
                raise GtpError("syntax error") from None
            raise

    def _quit(self, *_: str) -> None:
        self.has_quit = True

    def _boardsize(self, text: str, *_: str) -> None:
        self._begin(_integer(text), self.rules.variant, "unacceptable size")

    def _set_game(self, word: str, *words: str) -> None:
        name = " ".join((word, *words)).lower()
        games = {title.lower(): variant for title, variant in _GAMES.items()} | _OTHER_NAMES
        if name not in games:
            raise GtpError("unsupported game")
        self._begin(self.rules.size, games[name], "unsupported game")

    def _begin(self, size: int, variant: Variant, refusal: str) -> None:
        try:
            rules = Rules(size, variant)
            self.thinker.check(rules)
        except ReversiError:
            raise GtpError(refusal) from None
        self.rules = rules
        self._restart()

    def _clear_board(self, *_: str) -> None:
        self._restart()
        self.thinker.prepare(self.rules)  # now, while no clock is running

    def _restart(self) -> None:
        self._positions = [Position.initial(self.rules)]
        self._restart_clocks()

    def _restart_clocks(self) -> None:
        self._clocks = {} if self._settings is None else dict.fromkeys((BLACK, WHITE), self._settings)

    def _komi(self, text: str, *_: str) -> None:
        _matching(_NUMBER, text)  # accepted and ignored: Othello has no komi

    def _play(self, colour: str, vertex: str, *_: str) -> None:
        position, move = self._seen_by(_colour(colour)), vertex.lower()
        if move == PASS_NAME:
            if position.legal_board():
                raise GtpError(f"illegal move: pass for {colour}: expected {_squares(position)}")
            self._positions.append(_other_to_move(position))
            return
        if not re.fullmatch(_VERTEX, move):
            raise GtpError(f"syntax error: {quoted(vertex)}: expected a square, such as d3, or pass")
        try:
            self._positions.append(position.play(move))
        except ReversiError:
            expected = _squares(position) or "a pass"
            raise GtpError(f"illegal move: {vertex} for {colour}: expected {expected}") from None

    def _genmove(self, colour: str, *_: str) -> str:
        side = _colour(colour)
        position = self._seen_by(side)
        began = perf_counter()
        thought = self._chosen(position, side)
        if side in self._clocks:
            self._clocks[side] = self._clocks[side].after(perf_counter() - began)
        passes = thought.move == PASS_NAME
        self._positions.append(_other_to_move(position) if passes else position.play(thought.move))
        self.ponderer.expect(position, thought.pv)
        return _vertex(thought.move)

    def _reg_genmove(self, colour: str, *_: str) -> str:
        side = _colour(colour)
        return _vertex(self._chosen(self._seen_by(side), side).move)

    def _chosen(self, position: Position, side: Colour) -> Thought:
        if not position.legal_board():
            return Thought(PASS_NAME)
        return self.thinker.think(position, clock=self._clocks.get(side))

    def _undo(self, *_: str) -> None:
        if len(self._positions) == 1:
            raise GtpError("cannot undo")
        self._positions.pop()

    def _seen_by(self, colour: Colour) -> Position:
        return self.position if self.position.turn == colour else _other_to_move(self.position)

    def _time_settings(self, main: str, period: str, moves: str, *_: str) -> None:
        main_time, period_time, stones = _seconds(main), _seconds(period), _integer(moves)
        unlimited = period_time > 0 and stones == 0
        self._settings = None if unlimited else TimeControl(main_time, period_time if stones else 0.0, stones)
        if self._settings is not None and main_time == 0 and stones:
            self._settings = TimeControl(period_time, period_time, stones, stones)
        self._restart_clocks()

    def _time_left(self, colour: str, time: str, moves: str, *_: str) -> None:
        side, left, stones = _colour(colour), _seconds(time), _integer(moves)
        settings = self._settings or TimeControl(left)
        self._clocks[side] = TimeControl(left, settings.period, settings.moves, stones)

    def _final_score(self, *_: str) -> str:
        if not self.position.is_over():
            raise GtpError("cannot score")
        score = self.position.score(BLACK)
        return f"{'B' if score > 0 else 'W'}+{abs(score)}" if score else "0"

    def _showboard(self, *_: str) -> str:
        lines = render_ansi(self.position).splitlines()
        return "\n" + "\n".join(line for line in lines if line.strip())  # an empty line would end the answer

    def _set(self, name: str, value: str, *_: str) -> None:
        self.thinker.set_option(name, value)

    def _values(self, count: str = "64", *_: str) -> str:
        """Return the values of the best moves for the side to move, in discs (a private command)."""
        wanted = _integer(count)
        if self.position.is_over() or not self.thinker.has_values or not wanted:
            raise GtpError("no values")
        thought = self.thinker.think(self.position, moves=max(2, wanted))
        return "\n".join(f"{_vertex(entry.move)} {entry.value:+.2f}" for entry in thought.moves[:wanted])


def _squares(position: Position) -> str:
    return "" if position.must_pass() or position.is_over() else ", ".join(position.legal_moves())


def serve(engine: GtpEngine, lines: Iterable[str], send: Callable[[str], None]) -> None:
    """Answer *lines* until they end or one is ``quit``, and ponder in between."""
    try:
        for line in lines:
            answer = engine.answer(line)
            if answer is not None:
                send(answer)
            if engine.has_quit:
                return
            engine.ponder()
    finally:
        engine.ponderer.end()


def _other_to_move(position: Position) -> Position:
    return Position(position.rules, position.opp, position.own, position.turn.other)


def _vertex(move: str) -> str:
    return move if move == PASS_NAME else move.upper()


def _colour(text: str) -> Colour:
    return _COLOURS[_matching("b|w|black|white", text.lower())]


def _integer(text: str) -> int:
    return int(_matching("[0-9]{1,9}", text))


def _seconds(text: str) -> float:
    return max(0.0, float(_matching(_NUMBER, text)))


def _matching(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        raise GtpError("syntax error")
    return text
