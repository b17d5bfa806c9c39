"""`reversi serve`: games for people and programs over HTTP and WebSocket, and the web page."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import typer

from play.commands.job_options import given, options_from


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
    from play.server.running import listen, url_of
    from play.server.running import serve as run
    from play.server.store import check
    from play.server.warming import compiling
    from play.thinker import prepared_thinker
    from reversi_env import ReversiError, Rules

    options = ServerOptions(**given(context))
    options.trusted()  # an error here, if one of them is none
    listener = listen(options)
    try:
        check(options.file())  # before anybody is told where the server is
    except ReversiError:
        listener.close()
        raise
    prepared_thinker(None, Rules())  # the first move in the browser does not wait for a compiler
    print(f"Reversi on {url_of(listener)}  (Ctrl-C ends)", flush=True)
    if address := url_for_others(*listener.getsockname()[:2]):
        print(f"other machines find it on {address}", flush=True)
    print(f"games are kept in {options.file()}", file=sys.stderr)
    with compiling() if options.workers != 0 else nullcontext():
        run(options, listener)
