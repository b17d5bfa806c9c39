"""`reversi connect`: play on a server, as a person in this terminal or by an agent."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from play.commands.options import Json, Size, VariantName, VariantOption, print_json
from play.commands.serve import INSTALL

if TYPE_CHECKING:
    from play.client import Client, Ticket
    from play.game import Game
    from reversi_env.rules import Colour

HELP = """Commands: a square such as d3; undo; resign; moves; help; quit (come back with the ticket)."""


class ColourOption(StrEnum):
    """The side to play."""

    black = "black"
    white = "white"


def connect(
    server: Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="A server, as [b]127.0.0.1:8400[/b].")],
    level: Annotated[
        int | None,
        typer.Option(
            "--level", "-l", help="Let an agent of this level play, 1 to 4; a person plays without.", min=1, max=4
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The agent that plays here; [b]six-factor[/b] with --level.")
    ] = None,
    opponent: Annotated[
        str, typer.Option("--opponent", "-o", help="An agent of the server, or [b]friend[/b] to wait for somebody.")
    ] = "six-factor:level=1",
    join: Annotated[
        str | None, typer.Option("--join", "-j", help="Ticket or invitation link of a game to join or come back to.")
    ] = None,
    colour: Annotated[ColourOption, typer.Option("--colour", "-c", help="The side to play.")] = ColourOption.black,
    size: Size = 8,
    variant: VariantName = VariantOption.normal,
    as_json: Json = False,
) -> None:
    """Play on a server to the end of the game.

    Example: reversi connect 127.0.0.1 --level 4 --opponent six-factor:level=1

    Without --level or --agent a person plays, in this terminal. A game with
    a friend prints a ticket, which the friend gives to [b]--join[/b]; your own
    ticket brings you back after a lost connection or Ctrl-C.
    """
    from play.commands.interruptible import INTERRUPTED
    from reversi_env import Colour, ReversiError

    try:
        from play.client import Client, Ticket, server_url
    except ModuleNotFoundError as error:
        raise ReversiError(f"{INSTALL} (missing: {error.name})") from None

    client = Client(server_url(server))
    mine = Colour.BLACK if colour is ColourOption.black else Colour.WHITE
    player = _player(level, agent, as_json)
    ticket = Ticket.read(join) if join else _created(client, mine, opponent, size, variant.value)
    try:
        game = client.play(ticket, player)
    except (KeyboardInterrupt, EOFError):
        print(f"\nreversi: come back with: reversi connect {server} --join {ticket}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _report(game, player.role, ticket, as_json)


def _created(client: Client, mine: Colour, opponent: str, size: int, variant: str) -> Ticket:
    from reversi_env import Rules

    rules = Rules(size, variant)  # type: ignore[arg-type]
    ticket, theirs = client.create(rules, mine, None if opponent == "friend" else opponent)
    if theirs is not None:
        print(f"your friend joins with: reversi connect {client.url} --join {theirs}", file=sys.stderr, flush=True)
    return ticket


def _player(level: int | None, agent: str | None, quiet: bool) -> Any:
    """The agent, or the person at this terminal."""
    from search.agents import make

    if level is None and agent is None:
        return _person()
    return _computer(make(agent or "six-factor", level=level), quiet)


def _computer(agent: Any, quiet: bool) -> Any:
    from play.client import Player

    class Computer(Player):
        """An agent of this machine."""

        role = ""

        def joined(self, role: str) -> None:
            self.role = role
            if not quiet:
                print(f"playing {role}", file=sys.stderr)

        def note(self, text: str) -> None:
            print(text, file=sys.stderr)

        def saw(self, game: Game, role: str) -> None:
            if not quiet and game.moves:
                print(f"{len(game.moves):3} {game.mover(len(game.moves) - 1)} {game.last_move}", file=sys.stderr)

        def decide(self, game: Game) -> dict[str, Any]:
            move = game.rules.name_of(agent.choose(game.position))
            return {"type": "move", "move": move, "ply": len(game.moves)}

    return Computer()


def _person() -> Any:
    from play.client import Player
    from play.terminal.screen import Screen

    screen = Screen()

    class Person(Player):
        """Somebody at this terminal."""

        role = ""

        def joined(self, role: str) -> None:
            self.role = role
            screen.show(f"You play {role}. {HELP}")

        def note(self, text: str) -> None:
            screen.show(text, "error")

        def saw(self, game: Game, role: str) -> None:
            _show(screen, game)

        def decide(self, game: Game) -> dict[str, Any]:
            if not game.moves:
                _show(screen, game)
            while True:
                word = screen.read(f"{game.turn}> ").lower()
                if word in ("undo", "resign"):
                    return {"type": word}
                if word in ("quit", "exit"):
                    raise EOFError
                if word in game.position.legal_moves():
                    return {"type": "move", "move": word, "ply": len(game.moves)}
                legal = f"legal moves: {' '.join(game.position.legal_moves())}"
                unknown = word not in ("", "moves", "help")
                screen.show(HELP if word == "help" else f"{word!r} is no legal move; {legal}" if unknown else legal)

        def grants_undo(self) -> bool:
            return screen.read("your opponent asks to take back; allow? [y/n] ").lower().startswith("y")

    return Person()


def _show(screen: Any, game: Game) -> None:
    from reversi_env.rendering.ansi import render_ansi

    screen.show("\n" + render_ansi(game.position, game.last_action, colour=screen.colour))


def _report(game: Game, role: str, ticket: Ticket, as_json: bool) -> None:
    """The score, for people or programs; in discs for black, the empty squares to the winner."""
    from reversi_env.rules import BLACK, WHITE

    winner, score = game.winner(), game.score(BLACK)
    black, white = game.position.discs(BLACK), game.position.discs(WHITE)
    if as_json:
        result = {
            "game": ticket.game,
            "role": role,
            "moves": list(game.moves),
            "black": black,
            "white": white,
            "score": score,
            "winner": None if winner is None else str(winner),
            "ending": game.ending or "played",
        }
        print_json(result)
        return
    how = {"resigned": " by resignation", "timeout": " on time"}.get(game.ending or "", "")
    outcome = "a draw" if winner is None else f"{winner} wins{how}"
    print(f"{outcome}: black {black}, white {white} (score {score:+d} for black)")
