"""`reversi nboard`: our agents for NBoard and other programs that speak its engine protocol."""

from __future__ import annotations

from play.cli.options import AgentArgument, Ponder, SearchThreads, SecondsAMove


def nboard(
    agent: AgentArgument = None,
    time: SecondsAMove = 1.0,
    threads: SearchThreads = 1,
    ponder: Ponder = False,
) -> None:
    """Be an engine on standard input and output for NBoard, a board for Othello players.

    Example: reversi nboard network

    NBoard sets the search depth; limits in the agent spec hold on top of it.
    Which game is played, 8x8 or smaller, most discs or fewest, is in the
    game that NBoard sends.
    """
    from play.protocols.nboard import NBoardEngine, serve
    from play.protocols.standard_streams import protocol_streams
    from play.thinker import prepared_thinker
    from reversi_env import Rules

    thinker = prepared_thinker(agent, Rules(), time, threads)
    with protocol_streams() as (lines, send):
        serve(NBoardEngine(thinker, lambda line: send(f"{line}\n"), ponders=ponder), lines)
