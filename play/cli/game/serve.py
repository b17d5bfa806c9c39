"""`reversi serve`: games for people and programs over HTTP and WebSocket. `reversi connect`: play on such a server."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from play.cli.options import NOTHING, Json, Level, Size, VariantName, agent_of_level, options_of, text
from play.cli.output import print_json
from play.interrupt import INTERRUPTED
from play.server.options import ServerOptions

if TYPE_CHECKING:
    from play.client.client import Client, ClientPlayer, Ticket
    from play.game import Game
    from reversi_env.rules import Colour, Variant

ServeChoice: Any = options_of(ServerOptions, named={"allowed_hosts": "allowed_host", "proxies": "proxy"})


def serve(*, chosen: ServeChoice = NOTHING) -> None:
    """Run the game server and the web page.

    Example: reversi serve --port 8400

    Then open http://127.0.0.1:8400 in a browser, or let programs play with
    reversi connect or with the protocol of docs/reference/server.md. Games are stored
    after every move and survive a restart. Ctrl-C stops the server.
    """
    from play.server.addresses import url_for_others
    from play.server.http.process import listen, server_for, url_of
    from reversi_env import ReversiError

    defaults = {"wthor": os.environ.get("REVERSI_DATA") or None, "precompiles": chosen.get("workers") != 0}
    options = ServerOptions(**{**defaults, **chosen})
    listener = listen(options)
    try:
        server = server_for(options)  # before the address is printed
    except ReversiError:
        listener.close()
        raise
    print(f"Serving Reversi on {url_of(listener)} (stop with Ctrl-C)", flush=True)
    if address := url_for_others(*listener.getsockname()[:2]):
        print(f"other machines can connect to {address}", flush=True)
    print(f"games are stored in {options.file()}", file=sys.stderr)
    if options.wthor is not None:
        print(f"the recorded games in {options.wthor} are counted in the background", file=sys.stderr)
    server.run(sockets=[listener])  # until Ctrl-C or SIGTERM


def _refuse_option(_: object, ticket: str | None) -> None:
    """Raise an error for an option in place of a ticket; one of 64 tickets begins with a hyphen."""
    if ticket is not None and ticket.startswith("--"):
        raise ValueError("expected a ticket or a link")


def connect(
    server: Annotated[str, Parameter(help="Server address HOST[:PORT], such as 127.0.0.1:8400.")],
    /,
    *,
    level: Level = None,
    agent: Annotated[
        str | None, text("Agent (computer player) that plays in your place.", "--agent", metavar="SPEC")
    ] = None,
    opponent: Annotated[
        str, text("Opponent: an agent of the server, or the word friend for a person.", metavar="SPEC")
    ] = "human:level=1",
    join: Annotated[
        str | None,
        text("Join a game, or come back to it, by its link or ticket.", "--join", "-j", metavar="TICKET"),
        Parameter(allow_leading_hyphen=True, validator=_refuse_option),
    ] = None,
    colour: Annotated[Literal["black", "white"], Parameter(("--colour", "-c"), help="Your side.")] = "black",
    size: Size = 8,
    variant: VariantName = "normal",
    as_json: Json = False,
) -> None:
    """Play a game on a server, yourself or with an agent.

    Examples: reversi connect 192.168.1.20 --opponent friend

              reversi connect 127.0.0.1 --level 4 --opponent human:level=1

    Without --level or --agent you play in this terminal. With --opponent friend
    the command prints a link, and a command with a ticket, for your friend to
    join. After Ctrl-C or a lost connection it prints the command, with your own
    ticket, that brings you back.
    """
    from play.client.client import Client, Ticket, server_url
    from play.client.players import Computer, Person
    from play.terminal.screen import Screen
    from reversi_env import Colour
    from search.agents.spec import make_agent

    client = Client(server_url(server))
    mine = Colour.BLACK if colour == "black" else Colour.WHITE
    spec = agent_of_level(agent, level)
    player: ClientPlayer = Person(Screen()) if spec is None else Computer(make_agent(spec), as_json)
    ticket = Ticket.read(join) if join else _created(client, mine, opponent, size, variant)
    try:
        game = client.play(ticket, player)
    except (KeyboardInterrupt, EOFError):
        who = "" if spec is None else f" --agent {shlex.quote(spec)}"
        print(f"\nreversi: rejoin with: reversi connect {server}{who} --join {ticket}", file=sys.stderr)
        sys.exit(INTERRUPTED)
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
    from play.terminal.evaluation_text import outcome_text
    from reversi_env.rules import BLACK, WHITE

    if not as_json:
        print(f"Game over: {outcome_text(game)}")
        return
    winner, discs = game.winner(), {str(colour): game.position.discs(colour) for colour in (BLACK, WHITE)}
    ended = {"winner": None if winner is None else str(winner), "ending": game.ending or "played"}
    print_json({"game": ticket.game, "role": role, "moves": list(game.moves), **discs, "score": game.score(), **ended})
