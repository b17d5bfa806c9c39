"""`reversi serve`: games for people and programs over HTTP and WebSocket, and the web page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; [b]0.0.0.0[/b] lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port; 0 takes any free one.", min=0, max=65535)] = 8400,
    database: Annotated[
        str | None,
        typer.Option("--database", help="SQLite file with the games; by default one in your data folder."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-w", help="Processes that search; by default one a core, 0 for a thread.", min=0, max=256
        ),
    ] = None,
    longest_think: Annotated[
        float, typer.Option("--longest-think", help="Seconds that an agent may have for a move.", min=0.05, max=600)
    ] = 5.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A name that browsers may call this server by; repeat for more."),
    ] = None,
) -> None:
    """Serve games and the web page.

    Example: reversi serve --port 8400

    Then open http://127.0.0.1:8400 in a browser, or let programs play:
    [b]reversi connect[/b], or anything that speaks docs/server.md. Games are
    written as they are played, and go on after a restart.

    Ctrl-C ends the server; people who are playing find their games again.
    """
    from play.server.options import ServerOptions, default_database
    from play.server.running import listen, url_of
    from play.server.running import serve as run
    from play.server.store import check
    from play.thinker import prepared_thinker
    from reversi_env import ReversiError, Rules

    options = ServerOptions(
        host=host,
        port=port,
        database=Path(database) if database and database != ":memory:" else database or default_database(),
        longest_think=longest_think,
        allowed_hosts=tuple(allow_host or ()),
        **({} if workers is None else {"workers": workers}),
    )
    listener = listen(options)
    try:
        check(options.database)  # before anybody is told where the server is
    except ReversiError:
        listener.close()
        raise
    prepared_thinker(None, Rules())  # the first move in the browser does not wait for a compiler
    print(f"Reversi on {url_of(listener)}  (Ctrl-C ends)", flush=True)
    print(f"games are kept in {options.database}", file=sys.stderr)
    run(options, listener)
