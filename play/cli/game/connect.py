"""`reversi connect`: play on a server, as a person in this terminal or by an agent."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from play.cli.options import Json, Size, VariantName
from play.cli.output import print_json

if TYPE_CHECKING:
    from play.client import Client, ClientPlayer, Ticket
    from play.game import Game
    from reversi_env.rules import Colour, Variant


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
        str, typer.Option("--opponent", help="An agent of the server, or [b]friend[/b] to wait for somebody.")
    ] = "six-factor:level=1",
    join: Annotated[
        str | None, typer.Option("--join", "-j", help="Ticket or invitation link of a game to join or come back to.")
    ] = None,
    colour: Annotated[Literal["black", "white"], typer.Option("--colour", "-c", help="The side to play.")] = "black",
    size: Size = 8,
    variant: VariantName = "normal",
    as_json: Json = False,
) -> None:
    """Play on a server to the end of the game.

    Example: reversi connect 127.0.0.1 --level 4 --opponent six-factor:level=1

    Without --level or --agent a person plays, in this terminal. A game with
    a friend prints a ticket, which the friend gives to [b]--join[/b], and a link
    for a browser: so anybody plays your agent. Your own ticket brings you
    back after a lost connection or Ctrl-C.
    """
    from play.cli.interrupt import INTERRUPTED
    from play.client import Client, Ticket, server_url
    from play.client_players import Computer, Person
    from play.terminal.screen import Screen
    from reversi_env import Colour
    from search.agents import make_agent

    client = Client(server_url(server))
    mine = Colour.BLACK if colour == "black" else Colour.WHITE
    if level is None and agent is None:
        player: ClientPlayer = Person(Screen())
    else:
        player = Computer(make_agent(agent or "six-factor", level=level), as_json)
    ticket = Ticket.read(join) if join else _created(client, mine, opponent, size, variant)
    try:
        game = client.play(ticket, player)
    except (KeyboardInterrupt, EOFError):
        who = (f" --agent {shlex.quote(agent)}" if agent else "") + (f" --level {level}" if level is not None else "")
        print(f"\nreversi: come back with: reversi connect {server}{who} --join {ticket}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    _report(game, player.role, ticket, as_json)


def _created(client: Client, mine: Colour, opponent: str, size: int, variant: Variant) -> Ticket:
    from reversi_env import Colour, Rules

    rules = Rules(size, variant)
    ticket, theirs = client.create(rules, mine, None if opponent == "friend" else opponent)
    if theirs is not None:
        print(f"your friend joins with: reversi connect {client.url} --join {theirs}", file=sys.stderr)
        link = f"{client.url}/#join={theirs.game}.{'white' if mine is Colour.BLACK else 'black'}.{theirs.token}"
        print(f"or in a browser: {link}", file=sys.stderr, flush=True)
    return ticket


def _report(game: Game, role: str, ticket: Ticket, as_json: bool) -> None:
    """The score, for people or programs; in discs for black, the empty squares to the winner."""
    from reversi_env.rules import BLACK, WHITE

    winner, score = game.winner(), game.score(BLACK)
    black, white = game.position.discs(BLACK), game.position.discs(WHITE)
    if as_json:
        result = {"game": ticket.game, "role": role, "moves": list(game.moves), "black": black, "white": white}
        ended = {"winner": None if winner is None else str(winner), "ending": game.ending or "played"}
        print_json({**result, "score": score, **ended})
        return
    how = {"resigned": " by resignation", "timeout": " on time"}.get(game.ending or "", "")
    outcome = "a draw" if winner is None else f"{winner} wins{how}"
    print(f"{outcome}: black {black}, white {white} (score {score:+d} for black)")
