"""`reversi gtp`: our agents for any program that speaks GTP."""

from __future__ import annotations

from play.cli.options import AgentArgument, Ponder, SearchThreads, SecondsAMove, Size, VariantName


def gtp(
    agent: AgentArgument = None,
    size: Size = 8,
    variant: VariantName = "normal",
    time: SecondsAMove = 1.0,
    threads: SearchThreads = 1,
    ponder: Ponder = False,
) -> None:
    """Be a GTP engine on standard input and output, for Quarry, GRhino's tools and other GTP controllers.

    Example: reversi gtp network:time=2

    GTP version 2, with squares as in Othello: a1 at the top left. Clocks set
    by the controller (time_settings, time_left) are obeyed.
    """
    from importlib.metadata import version

    from play.protocols.gtp import GtpEngine, serve
    from play.protocols.standard_streams import protocol_streams
    from play.thinker import prepared_thinker
    from reversi_env import Rules

    rules = Rules(size, variant)
    thinker = prepared_thinker(agent, rules, time, threads)
    engine = GtpEngine(thinker, rules, version=f"{version('reversi-lab')} {thinker.spec}", ponders=ponder)
    with protocol_streams() as (lines, send):
        serve(engine, lines, send)
