"""Players of a `play.client.client.Client`: a person at the terminal, or an agent."""

import sys
from itertools import takewhile
from typing import Any

from play.client.client import ClientPlayer
from play.game import Game
from play.terminal.screen import Screen
from reversi_env.rendering.text import render_ansi
from search.agents.base import Agent

HELP = "Type a square such as d3, or undo, resign, moves (so far), help, quit (you can come back); Enter lists legal moves."


class Computer(ClientPlayer):
    """An agent of this machine; if *quiet*, it reports errors only."""

    def __init__(self, agent: Agent, quiet: bool) -> None:
        self._agent, self._quiet = agent, quiet
        self._shown: tuple[str, ...] = ()

    def on_notice(self, text: str) -> None:
        print(text, file=sys.stderr)

    def on_state(self, game: Game) -> None:
        """Print the new moves; there are several after a pass or a lost connection."""
        if self._quiet:
            return
        pairs = zip(self._shown, game.moves, strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if common < len(self._shown):
            print(f"    taken back to move {common}", file=sys.stderr)
        for ply in range(common, len(game.moves)):
            print(f"{ply + 1:3} {game.mover(ply)} {game.moves[ply]}", file=sys.stderr)
        self._shown = game.moves

    def decide(self, game: Game) -> dict[str, Any]:
        move = game.rules.name_of(self._agent.choose(game.position))
        return {"type": "move", "move": move, "ply": len(game.moves)}


class Person(ClientPlayer):
    """A person at *screen*."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown: tuple[str, ...] | None = None

    def on_joined(self, role: str) -> None:
        super().on_joined(role)
        self._screen.show(f"You play {role}. {HELP}")

    def on_notice(self, text: str) -> None:
        self._screen.show(text, "error")

    def on_state(self, game: Game) -> None:
        self._shown = game.moves
        self._screen.show("\n" + render_ansi(game.position, game.last_action, colour=self._screen.colour))

    def decide(self, game: Game) -> dict[str, Any]:
        """Ask until there is an answer; raise EOFError if the person leaves."""
        if self._shown != game.moves:
            self.on_state(game)
        legal = game.position.legal_moves()
        while True:
            word = self._screen.read(f"{game.turn}> ").lower()
            if word in ("undo", "resign"):
                return {"type": word}
            if word in ("quit", "exit"):
                raise EOFError
            if word in legal:
                return {"type": "move", "move": word, "ply": len(game.moves)}
            problem = f"{word!r} is no legal move; " if word else ""
            texts = {"help": HELP, "moves": game.to_transcript() or "no moves yet"}
            self._screen.show(texts.get(word) or f"{problem}legal moves: {' '.join(legal)}")

    def grants_undo(self) -> bool:
        return self._screen.read("your opponent asks to take a move back; allow it? [y/n] ").lower().startswith("y")
