"""`reversi serve`: games for people and programs over HTTP and WebSocket, and the web page."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext

import typer

from play.cli.job_options import given, options_from


@options_from("play.server.options:ServerOptions", named={"allowed_hosts": "allow_host", "proxies": "proxy"})
def serve(context: typer.Context) -> None:
    """Serve games and the web page.

    Example: reversi serve --port 8400

    Then open http://127.0.0.1:8400 in a browser, or let programs play:
    [b]reversi connect[/b], or anything that speaks docs/server.md. Games are
    written as they are played, and go on after a restart.

    Ctrl-C ends the server; people who are playing find their games again.
    """
    from play.server.addresses import url_for_others
    from play.server.options import ServerOptions
    from play.server.precompiling import compiling
    from play.server.running import listen, server_for, url_of
    from play.thinker import prepared_thinker
    from reversi_env import ReversiError, Rules

    options = ServerOptions(**{"wthor": os.environ.get("REVERSI_DATA") or None} | given(context))
    options.trusted()  # an error here, if one of them is none
    listener = listen(options)
    try:
        server = server_for(options)  # before anybody is told where it is
    except ReversiError:
        listener.close()
        raise
    prepared_thinker(None, Rules())  # the first move in the browser does not wait for a compiler
    print(f"Reversi on {url_of(listener)}  (Ctrl-C ends)", flush=True)
    if address := url_for_others(*listener.getsockname()[:2]):
        print(f"other machines find it on {address}", flush=True)
    print(f"games are kept in {options.file()}", file=sys.stderr)
    if options.wthor is not None:
        print(f"the recorded games in {options.wthor} are counted in the background", file=sys.stderr)
    with compiling() if options.workers != 0 else nullcontext():
        server.run(sockets=[listener])  # until Ctrl-C or SIGTERM
