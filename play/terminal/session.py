"""`Session`: a game in a terminal, between people and agents."""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from models.human import LEVELS
from play.game import Game
from play.interrupt import INTERRUPTED, abandonable, interruptible
from play.terminal import saved_games as storage
from play.terminal.evaluation_text import bar_text, hint_text, outcome_text, value_lines
from play.terminal.screen import Screen
from play.thinker import Thinker, Thought, default_agent
from reversi_env import Position, ReversiError
from reversi_env.errors import count_noun, quoted
from reversi_env.notation.openings import name_of_positions
from reversi_env.rendering import render_ansi
from reversi_env.rules import BLACK, WHITE, Colour
from search.agents.external.process import EngineFailure
from search.engine.limits import certainty

HELP = """\
Type a square such as d3 to play there. Other words, or their first letters:
  hint            the best move          values      the value of every move
  eval            a bar of who is ahead  board       show the board again
  undo            take your move back    redo        make it again
  save FILE       save as GGF, or as bare moves if FILE ends in .txt
  save! FILE      the same, and replace an existing file
  load FILE       continue a saved game (load FILE 3: the third in the file)
  new white       a new game as white, black or both; new: as before
  swap            change sides           level 3     change the computer's level
  go              let the computer move for you
  moves           the moves so far       resign      give up
  quit            leave; the game is saved for: reversi play --resume
A side that cannot move passes automatically. Ctrl-C while the computer
thinks makes it move at once."""

_SIDES = {"black": {BLACK}, "white": {WHITE}, "both": {BLACK, WHITE}}
#: Default opponent of a person: a beginner can win against it.
EASIEST = "human:level=1"
#: Lines below a board and its news: the side to move, the opening, the bar, the prompt.
LINES_BELOW = 6


class Session:
    """A game on a screen until its end or until the player leaves; *resumed* is the file of a resumed game."""

    def __init__(self, game: Game, settings: storage.Settings, screen: Screen, resumed: Path | None = None) -> None:
        self.game, self.settings, self.screen = game, settings, screen
        self._file, self._resumed = storage.session_file(), resumed
        self._paused = False
        self._shows_bar = settings.shows_bar
        self._thinkers: dict[tuple[str, bool], Thinker] = {}
        self._saved_as: str | None = None
        self._keeps = True
        self._turn_began = perf_counter()
        self._commands: dict[str, Callable[..., object]] = {
            "hint": self._hint,
            "values": self._values,
            "eval": self._eval,
            "undo": self._undo,
            "redo": self._redo,
            "board": self._show_board,
            "save": self._save,
            "save!": partial(self._save, replace=True),
            "load": self._load,
            "new": self._new,
            "swap": self._swap,
            "level": self._level,
            "go": self._go,
            "moves": lambda *_: self.screen.show(self.game.to_transcript() or "no moves yet"),
            "resign": self._resign,
            "help": lambda *_: self.screen.show(HELP),
            "quit": self._quit,
        }
        self._news: list[str] = []
        self._was_drawn = False
        screen.complete_with(lambda: [*self.game.position.legal_moves(), *self._commands])

    @property
    def _is_watched(self) -> bool:
        return not self.settings.people

    def run(self) -> int:
        """Play, and return the exit status: 0, or that of an interrupted command after Ctrl-C."""
        for agent in filter(None, (*self.settings.agents.values(), self.settings.adviser)):
            self._thinker(agent).check(self.game.rules)
        self._greet()
        self._keep()
        if self._keeps and self._resumed and self._resumed != self._file:
            self._resumed.unlink(missing_ok=True)  # the game is in this session's own file now
        try:
            for agent in filter(None, self.settings.agents.values()):
                self._thinker(agent).prepare(self.game.rules)  # may compile, before the game begins
            self._show_board()
            while not (self.game.is_over() and self._is_watched):
                self._step()
        except EOFError:
            self._report_saved_game()
            return 0
        except KeyboardInterrupt:
            self.screen.show()
            self._report_saved_game()
            return INTERRUPTED
        return 0

    def _step(self) -> None:
        agent = self.settings.agents[self.game.turn]
        if self._paused or agent is None or self.game.is_over():
            self._command(self.screen.read(self._prompt()))
        else:
            self._agent_moves(agent)

    # --- moves ------------------------------------------------------------------------------------

    def _agent_moves(self, agent: str) -> None:
        position = self.game.position
        try:
            thought, interrupted = self._thought(self._thinker(agent), position)
        except EngineFailure as failure:  # an external program has ended, or was killed because it cannot be stopped
            self.screen.show(str(failure), "error")
            self._paused = True
            return
        value = ""
        if thought.value is not None and self._shows_bar:
            sure = certainty(thought.confidence, thought.depth)
            value = f": {thought.value:+.1f} discs, {sure}, {thought.seconds:.1f} s"
        self._tell(f"{position.turn} ({shown_name(agent)}) plays {thought.move}{value}")
        self._make(thought.move, thought.seconds, thought.value)
        if self._is_watched:
            self._paused = interrupted
            sleep(0 if interrupted else self.settings.pause)

    def _make(self, move: str, seconds: float | None = None, value: float | None = None) -> None:
        """Play *move* and the forced passes after it, save the game and show the board."""
        seconds, value = (None if figure is None else round(figure, 2) for figure in (seconds, value))
        self.game.play(move, seconds=seconds, evaluation=value)
        self._after_moves()

    def _after_moves(self) -> None:
        while self.game.play_forced_pass():
            mover = self.game.mover(len(self.game.moves) - 1)
            whom = "you have" if mover in self.settings.people else f"{mover} has"
            verb = "you pass" if mover in self.settings.people else f"{mover} passes"
            self._tell(f"{whom} no move: {verb}")
        self._changed()

    def _changed(self) -> None:
        self._keep()
        self._show_board()
        self._turn_began = perf_counter()

    # --- output -----------------------------------------------------------------------------------

    def _greet(self) -> None:
        rules = self.game.rules
        aim = "most discs win" if rules.variant == "normal" else "fewest discs win"
        agents = (self.settings.agents[colour] for colour in (BLACK, WHITE))
        black, white = (f"the computer ({shown_name(agent)})" if agent else "you" for agent in agents)
        help_text = "Ctrl-C pauses." if self._is_watched else "Type help for help."
        self.screen.show(f"{rules.size}x{rules.size}, {aim}. Black: {black}. White: {white}.\n{help_text}")
        if EASIEST in self.settings.agents.values() and not self._is_watched:
            self.screen.show(
                "A beginner can beat level 1. Type level 2, or up to level 10, for a stronger opponent.", "faint"
            )
        if not self.game.moves and storage.resumable_games():
            self.screen.show("There is an unfinished game. Resume it with: reversi play --resume", "faint")

    def _tell(self, news: str) -> None:
        """Show a message now, and below the next drawing of the board."""
        self.screen.show(news, "bold")
        self._news.append(news)

    def _show_board(self, *_: str) -> None:
        """Draw the board, in place of the last one where the terminal can, with the news below it."""
        game = self.game
        *board, status = render_ansi(game.position, game.last_action, colour=self.screen.colour).splitlines()
        news, self._news = self._news, []
        cleared = self._was_drawn and self.screen.clear(len(board) + len(news) + LINES_BELOW)
        self._was_drawn = True
        self.screen.show("\n".join(["", *board]))
        for message in news if cleared else []:
            self.screen.show(message, "bold")
        if game.is_over():
            self.screen.show(f"Game over: {outcome_text(game)}", "bold")
            return
        self.screen.show(status)
        if opening := name_of_positions(game.positions):
            self.screen.show(f"Opening: {opening}", "faint")
        if self._shows_bar:
            self._show_bar()

    def _show_bar(self) -> None:
        thought = self._advice()
        if thought.value is not None:
            bar = bar_text(thought.value, self.game.turn, block_characters=self.screen.colour)
            self.screen.show(f"{bar} ({certainty(thought.confidence, thought.depth)})")

    def _prompt(self) -> str:
        if self.game.is_over():
            return "new, undo, save or quit> "
        return f"{self.game.turn}{' (paused: press Enter to continue)' if self._paused else ''}> "

    # --- commands ---------------------------------------------------------------------------------

    def _command(self, line: str) -> None:
        words = line.split()
        if not words:
            self._paused = False
            return
        try:
            if re.fullmatch("pass|[a-z][0-9]", line.strip().lower()):
                self._check_running()
                self._make(words[0], perf_counter() - self._turn_began)
            else:
                self._matching_command(words[0])(*words[1:])
        except ReversiError as error:
            self.screen.show(str(error), "error")

    def _check_running(self) -> None:
        if self.game.is_over():
            raise ReversiError("the game is over: expected new, undo, save or quit")

    def _matching_command(self, word: str) -> Callable[..., object]:
        name = {"?": "help", "exit": "quit"}.get(word.lower(), word.lower())
        if name in self._commands:
            return self._commands[name]
        fitting = [command for command in self._commands if command.startswith(name) and command != "save!"]
        if len(fitting) == 1:
            return self._commands[fitting[0]]
        move = next(iter(self.game.position.legal_moves()), "d3")
        expected = f"one of {', '.join(fitting)}" if fitting else f"a move such as {move}, or help"
        raise ReversiError(f"{quoted(word)} is neither a move nor a command: expected {expected}")

    def _hint(self, *_: str) -> None:
        self.screen.show(f"hint: {hint_text(self._advice())}")

    def _values(self, *_: str) -> None:
        for line in value_lines(self._advice(moves=64), block_characters=self.screen.colour):
            self.screen.show(line)

    def _eval(self, *_: str) -> None:
        self._shows_bar = not self._shows_bar
        if not self._shows_bar:
            self.screen.show("evaluation bar off")
        elif not self.game.is_over():
            self._show_bar()

    def _undo(self, *_: str) -> None:
        taken = self.game.undo_to(self.settings.people or {BLACK, WHITE})
        self._tell(f"taken back: {' '.join(reversed(taken))}" if taken else "the game continues")
        self._changed()

    def _redo(self, *_: str) -> None:
        self._tell(f"made again: {' '.join(self.game.redo_to(self.settings.people or {BLACK, WHITE}))}")
        self._changed()

    def _save(self, *words: str, replace: bool = False) -> None:
        name = " ".join(words)
        path = storage.save(self._named_players(), name or None, replace=replace or name == self._saved_as)
        self._saved_as = str(path)
        self.screen.show(f"saved to {path}")

    def _load(self, *words: str) -> None:
        if not words:
            raise ReversiError("load without a file: expected load FILE, or load FILE N")
        numbered = len(words) > 1 and words[-1].isascii() and words[-1].isdigit() and len(words[-1]) < 10
        name = " ".join(words[:-1] if numbered else words)
        number = int(words[-1]) if numbered else 1
        game, count = storage.load(name, number, self.game)
        for agent in filter(None, self.settings.agents.values()):
            self._thinker(agent).check(game.rules)
        self.game, self._saved_as = game, None
        which = f"game {number} of {count} in " if count > 1 else ""
        self._tell(f"loaded {count_noun(len(game.moves), 'move')} from {which}{name}")
        self._after_moves()

    def _new(self, side: str | None = None, *_: str) -> None:
        if side is not None:
            fitting = [people for name, people in _SIDES.items() if name.startswith(side.lower())]
            if len(fitting) != 1:
                raise ReversiError(f"colour {quoted(side)}: expected black, white or both")
            self._seat(fitting[0])
        self.game = Game(self.game.start)
        self._saved_as = None
        self._changed()

    def _swap(self, *_: str) -> None:
        people = self.settings.people
        if len(people) != 1:
            raise ReversiError("swap: expected a game against the computer")
        self._seat({colour.other for colour in people})
        self._keep()
        self.screen.show(f"you are {next(iter(self.settings.people))} now")

    def _seat(self, people: set[Colour]) -> None:
        """Give these sides to *people* and the others to an agent."""
        agents = self.settings.agents
        opponent = next(filter(None, agents.values()), None) or self.settings.opponent or default_agent(self.game.rules)
        self._thinker(opponent).check(self.game.rules)
        self.settings.opponent = opponent
        self.settings.agents = {colour: None if colour in people else opponent for colour in (BLACK, WHITE)}

    def _level(self, text: str = "", *_: str) -> None:
        if not text.isdecimal() or not 1 <= int(text) <= 10:
            raise ReversiError(f"level {quoted(text)}: expected level 1 to 10")
        spec = f"human:level={int(text)}"
        self.settings.opponent = spec
        self.settings.agents = {colour: agent and spec for colour, agent in self.settings.agents.items()}
        self._keep()
        self.screen.show(f"the computer plays at level {text} now")

    def _go(self, *_: str) -> None:
        self._check_running()
        self._paused = False
        agent = self.settings.agents[self.game.turn]
        self._agent_moves(agent or self.settings.opponent or default_agent(self.game.rules))

    def _resign(self, *_: str) -> None:
        people = self.settings.people or {self.game.turn}
        self.game.end("resigned", self.game.turn if self.game.turn in people else next(iter(people)))
        self._changed()

    def _quit(self, *_: str) -> None:
        raise EOFError  # as at the end of the input

    # --- agents -----------------------------------------------------------------------------------

    def _thinker(self, spec: str, *, advises: bool = False) -> Thinker:
        """Return the agent of a spec; an adviser has a separate one, so that its table does not help the opponent."""
        key = spec, advises
        if key not in self._thinkers:
            self._thinkers[key] = Thinker(spec)
        return self._thinkers[key]

    def _advice(self, moves: int = 1) -> Thought:
        self._check_running()
        adviser = self.settings.adviser or default_agent(self.game.rules)
        return self._thought(self._thinker(adviser, advises=True), self.game.position, moves, advises=True)[0]

    def _thought(
        self, thinker: Thinker, position: Position, moves: int = 1, *, advises: bool = False
    ) -> tuple[Thought, bool]:
        """Return the agent's move, or the best so far, and whether Ctrl-C ended the search."""
        abandonable(lambda: thinker.prepare(position.rules))  # may compile; Ctrl-C leaves the game unchanged
        began = perf_counter()
        who, ending = ("the adviser", "answer now") if advises else (position.turn, "move now")
        return interruptible(
            lambda: thinker.think(position, time=self.settings.time, moves=moves),
            thinker.stop,
            lambda: f"{who} is thinking, {perf_counter() - began:.0f} s (Ctrl-C: {ending})",
        )

    # --- saving the game --------------------------------------------------------------------------

    def _named_players(self) -> Game:
        self.game.black, self.game.white = (self.settings.agents[side] or "human" for side in (BLACK, WHITE))
        return self.game

    def _keep(self) -> None:
        if not self._keeps:
            return
        try:
            storage.save_in_progress(self._file, self._named_players(), self.settings)
        except OSError as error:
            self._keeps = False
            print(f"reversi: the game is not saved, so --resume cannot continue it: {error}", file=sys.stderr)

    def _report_saved_game(self) -> None:
        if self._keeps and self.game.moves and not self.game.is_over():
            self.screen.show("Game saved. Resume it with: reversi play --resume", "faint")


def shown_name(agent: str) -> str:
    """Return the name of an agent for people: a level by its number and title, any other by its spec."""
    level = re.fullmatch(r"human:(?:level=)?([0-9]+)", agent)
    return f"level {level[1]} of {len(LEVELS)}, {LEVELS[int(level[1]) - 1].title}" if level else agent
