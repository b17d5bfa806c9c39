"""`reversi gtp` and `reversi nboard`: the project's agents for programs that speak these protocols."""

from play.cli.options import (
    AgentArgument,
    Level,
    Ponder,
    SearchThreads,
    SecondsPerMove,
    Size,
    VariantName,
    agent_of_level,
)


def gtp(
    agent: AgentArgument = None,
    /,
    *,
    level: Level = None,
    size: Size = 8,
    variant: VariantName = "normal",
    time: SecondsPerMove = 1.0,
    threads: SearchThreads = 1,
    ponder: Ponder = False,
) -> None:
    """Run a GTP engine on standard input and output, for Quarry, GRhino and other GTP controllers.

    Example: reversi gtp network:time=2

    GTP version 2, with squares as in Othello: a1 at the top left. Clocks
    set by the controller (time_settings, time_left) are obeyed. The private
    command reversi-set changes threads, table, level or depth.
    """
    from play.protocols.gtp import GtpEngine, serve
    from play.protocols.streams import protocol_streams
    from play.thinker import prepared_thinker
    from reversi_env import Rules, __version__

    rules = Rules(size, variant)
    thinker = prepared_thinker(agent_of_level(agent, level), rules, time, threads)
    engine = GtpEngine(thinker, rules, version=f"{__version__} {thinker.spec}", ponders=ponder)
    with protocol_streams() as (lines, send):
        serve(engine, lines, send)


def nboard(
    agent: AgentArgument = None,
    /,
    *,
    level: Level = None,
    time: SecondsPerMove = 1.0,
    threads: SearchThreads = 1,
    ponder: Ponder = False,
) -> None:
    """Run an NBoard engine on standard input and output.

    Example: reversi nboard network

    NBoard sets the search depth. A search to a fixed depth is not selective;
    with a spec such as network:probcut=1 it is. Limits in the spec hold as well.
    The game that NBoard sends tells the board size and the variant.
    """
    from play.protocols.nboard import NBoardEngine, serve
    from play.protocols.streams import protocol_streams
    from play.thinker import prepared_thinker
    from reversi_env import Rules

    thinker = prepared_thinker(agent_of_level(agent, level), Rules(), time, threads)
    with protocol_streams() as (lines, send):
        serve(NBoardEngine(thinker, lambda line: send(f"{line}\n"), ponders=ponder), lines)
