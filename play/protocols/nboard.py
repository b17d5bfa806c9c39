"""The NBoard engine protocol, version 2 (docs/reference/protocols.md)."""

import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from time import perf_counter

from play.background import run_until
from play.game import Game
from play.thinker import SETTABLE_OPTIONS, Ponderer, Thinker, Thought
from reversi_env import Position, ReversiError, Rules
from reversi_env.errors import quoted
from reversi_env.rules import PASS_NAME
from search.agents.searching import SearchAgent

#: A hint is searched to these depths, then to the depth that was set, so that the first values come at once.
FIRST_DEPTHS = (1, 4, 8, 12, 16, 20)
_WRITTEN_PASS = "PA"


class NBoardEngine:
    """The engine's side of one session; *send* is called with every line to be sent.

    `run` takes one command at a time. `hurry` may be set by another thread to end it early. An engine that *ponders* thinks from
    `ponder` to the next command if the last move was its own.
    """

    def __init__(
        self, thinker: Thinker, send: Callable[[str], None], rules: Rules | None = None, *, ponders: bool = False
    ) -> None:
        self.thinker, self._send = thinker, send
        self.ponderer = Ponderer(thinker, ponders)
        self.game = Game(rules)
        self.hurry = threading.Event()
        self.has_quit = False
        self._depth: int | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "nboard": lambda _: self._send_name(),
            "set": self._set,
            "move": self._move,
            "hint": self._hint,
            "go": self._go,
            "analyze": self._analyze,
            "learn": lambda _: self._send("learned"),
            "ping": lambda rest: self._send(f"pong {rest}"),
            "quit": self._quit,
        }

    def run(self, line: str) -> None:
        self.ponderer.end()
        name, _, rest = line.strip().partition(" ")
        if name not in self._commands:
            if not re.fullmatch(r"(?i)[a-h][1-8]|pa", name) or rest:  # the first versions sent moves without a command
                return
            name, rest = "move", name
        try:
            self._commands[name](rest.strip())
        except ReversiError as error:
            self._send(f"status {' '.join(str(error).split())}")

    def ponder(self) -> None:
        self.ponderer.begin(self.game.position, depth=self._depth)

    def _set(self, rest: str) -> None:
        what, _, value = rest.partition(" ")
        if what == "depth":
            self._depth = _integer(value, "depth")
            self._send_name()
        elif what in SETTABLE_OPTIONS:
            self.thinker.set_option(what, value)
        elif what == "game":
            game = Game.from_ggf(value)
            self.thinker.check(game.rules)
            if game.ending is not None:
                game.undo()  # moves may be made and requested in games that were resigned, too
            self.game = game

    def _send_name(self) -> None:
        self._send(f"set myname {self.thinker.spec.name}{self._depth or ''}")

    def _move(self, rest: str) -> None:
        self.game.play(rest.partition("/")[0].strip())

    def _quit(self, _: str) -> None:
        self.has_quit = True

    def _go(self, _: str) -> None:
        position = self.game.position
        if position.is_over():
            raise ReversiError("the game is over: there is no move to make")
        if position.must_pass():
            self._send(f"=== {_WRITTEN_PASS}")
            return
        self._send("status Thinking")
        thought = self._think(position)
        self.ponderer.expect(position, thought.pv)
        self._send_values(thought)
        self._send("status")
        value = "" if thought.value is None else f"{thought.value:.2f}"
        self._send(f"=== {_written(thought.move)}/{value}/{thought.seconds:.2f}")

    def _hint(self, rest: str) -> None:
        count, position = _integer(rest or "1", "number of moves"), self.game.position
        if position.is_over() or self.hurry.is_set():
            return
        self._send("status Analyzing")
        nodes, began = 0, perf_counter()
        for depth in self._depths(position):
            thought = self._think(position, depth, max(count, 2))
            if self.hurry.is_set():
                break
            nodes += thought.nodes
            self._send_values(thought, count)
            self._send(f"nodestats {nodes} {perf_counter() - began:.2f}")
            if thought.exact or not self.thinker.has_values:
                break
        self._send("status")

    def _analyze(self, _: str) -> None:
        self._send("status Analyzing")
        positions = self.game.positions
        for number, position in reversed(list(enumerate(positions))):
            value = position.score() if position.is_over() else self._think(position).value
            if self.hurry.is_set() or value is None:
                break
            self._send(f"analysis {number} {value:.2f}")
        self._send("status")

    def _depths(self, position: Position) -> Iterator[int | None]:
        """Yield the depths of one hint: a few shallow ones, then the depth that was set; None: the limits of the spec."""
        agent = self.thinker.agent
        deepest = self._depth
        if isinstance(agent, SearchAgent):
            deepest = deepest or agent.limits.depth
            yield from (depth for depth in FIRST_DEPTHS if depth < min(deepest or 8, position.empties))
        yield deepest

    def _think(self, position: Position, depth: int | None = None, moves: int = 1) -> Thought:
        """Think in a background thread, so that a ping can end it."""
        self.thinker.prepare(position.rules)
        think = partial(self.thinker.think, position, depth=depth or self._depth, moves=moves)
        return run_until(self.hurry.is_set, think, self.thinker.stop)

    def _send_values(self, thought: Thought, count: int = 1) -> None:
        if thought.value is None:
            self._send(f"search {_written(thought.move)} 0 0 0 {self.thinker.spec} has no values")
            return
        depth = f"{thought.confidence}%" if thought.confidence else str(thought.depth)
        values = [(entry.move, entry.value) for entry in thought.moves[:count]] or [(thought.move, thought.value)]
        for move, value in values:
            line = thought.pv if thought.pv[:1] == (move,) else (move,)
            self._send(f"search {''.join(map(_written, line))} {value:.2f} 0 {depth}")


def serve(engine: NBoardEngine, lines: Iterable[str]) -> None:
    """Execute *lines* until they end or one is ``quit``; a ``ping`` interrupts the command before it."""
    commands: queue.Queue[str | None] = queue.Queue()
    lock = threading.Lock()  # keeps hurry set exactly while a ping or quit is in the queue

    def read() -> None:
        try:
            for line in lines:
                with lock:
                    commands.put(line)
                    if _ends_thinking(line):
                        engine.hurry.set()
        finally:
            with lock:
                commands.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while not engine.has_quit and (line := commands.get()) is not None:
            with lock:
                if not any(map(_ends_thinking, filter(None, commands.queue))):
                    engine.hurry.clear()
            engine.run(line)
            if commands.empty() and not engine.has_quit:
                engine.ponder()
    finally:
        engine.ponderer.end()


def _ends_thinking(line: str) -> bool:
    return line.split(maxsplit=1)[:1] in (["ping"], ["quit"])


def _written(move: str) -> str:
    return _WRITTEN_PASS if move == PASS_NAME else move.upper()


def _integer(text: str, what: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) < 1:
        raise ReversiError(f"{what} {quoted(text)}: expected an integer, 1 or more")
    return min(int(text), 60)
