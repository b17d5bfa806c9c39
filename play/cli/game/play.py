"""`reversi play`: a game in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from play.cli.options import Level, agent_of_level, flag, integer, number, text
from play.cli.positions import DEFAULT, PositionChoice, PositionText, read_start

if TYPE_CHECKING:
    from play.terminal.saved_games import Settings
    from reversi_env import Rules

Colours = Literal["black", "white", "both"]


def play(
    position: PositionText = "start",
    /,
    *,
    level: Level = None,
    agent: Annotated[
        str | None,
        text(
            "Agent (computer player) with its options, such as network:time=2 (default: human:level=1, which a beginner "
            "can beat; with --depth, --time or --watch the strongest).",
            "--agent",
            metavar="SPEC",
        ),
    ] = None,
    depth: Annotated[
        int | None, integer("How many moves (plies) the agent looks ahead.", "--depth", low=1, high=60)
    ] = None,
    time: Annotated[
        float | None, number("Seconds per move (default: 1 if no limit is given).", low=0.01, high=1e6)
    ] = None,
    colour: Annotated[Colours | None, Parameter(("--colour", "-c"), help="Your side (default: black).")] = None,
    watch: Annotated[bool, flag("Watch two agents play.")] = False,
    opponent: Annotated[
        str | None, text("With --watch: agent that plays white (default: the same as --agent).", metavar="SPEC")
    ] = None,
    pause: Annotated[float, number("With --watch: seconds to wait after a move.", low=0, high=60)] = 0.0,
    adviser: Annotated[
        str | None, text("Agent that gives hints and values (default: the strongest).", metavar="SPEC")
    ] = None,
    evaluation: Annotated[bool, flag("Show a bar of who is ahead from the start.", "--eval")] = False,
    where: PositionChoice = DEFAULT,
    resume: Annotated[bool, flag("Resume the last unfinished game.", "--resume", "-r")] = False,
    plain: Annotated[bool, flag("Show the board as plain letters, without colours.", "--plain", "--no-colour")] = False,
) -> int:
    """Play a game in the terminal against an agent or another person, or watch two agents.

    Examples: reversi play --level 2

              reversi play saved.ggf --agent six-factor --depth 6

              reversi play --watch --agent network --opponent six-factor:depth=6

    Type a square such as d3 to play there. Type help for all other words: hints,
    values of all moves, take-back, save and load. The game is saved after every
    move; --resume continues it.
    """
    from play.terminal import saved_games as storage
    from play.terminal.screen import Screen
    from play.terminal.session import EASIEST, Session
    from reversi_env import ReversiError

    if watch and colour is not None:
        raise ReversiError(f"--colour {colour} with --watch: expected one of them, agents play both sides")
    spec, path = agent_of_level(agent, level), None
    if resume:
        if position != "start":
            raise ReversiError(f"--resume with position {position!r}: expected one of them")
        others = {"size": where.size, "variant": where.variant, "colour": colour, "watch": watch or None}
        for name, value in (others | {"agent": agent, "opponent": opponent, "depth": depth}).items():
            if value is not None:
                raise ReversiError(f"--resume with --{name}: expected it without, since the saved game has its own")
        game, settings, path = storage.unfinished_game()
        if level is not None:
            settings.agents = {side: before and spec for side, before in settings.agents.items()}
    else:
        game = read_start(position, where)
        if spec is None and not watch and depth is None and time is None:
            spec = EASIEST
        settings = _settings(game.rules, _with_depth(spec, depth, game.rules), opponent, colour or "black", watch)
    settings.time = time or settings.time
    settings.adviser, settings.pause, settings.shows_bar = adviser or settings.adviser, pause, evaluation
    return Session(game, settings, Screen(False if plain else None), path).run()


def _with_depth(agent: str | None, depth: int | None, rules: Rules) -> str:
    from play.thinker import default_agent
    from search.agents.spec import AgentSpec

    spec = agent or default_agent(rules)
    return spec if depth is None else str(AgentSpec.parse(spec).with_(depth=depth))


def _settings(rules: Rules, spec: str, opponent: str | None, colour: Colours, watch: bool) -> Settings:
    from play.terminal.saved_games import Settings
    from reversi_env import BLACK, WHITE, ReversiError

    if opponent is not None and not watch:
        raise ReversiError("--opponent: expected --watch with it; to play against this agent yourself, use --agent")
    if watch:
        return Settings({BLACK: spec, WHITE: opponent or spec}, opponent=spec)
    people = {"black": {BLACK}, "white": {WHITE}, "both": {BLACK, WHITE}}[colour]
    return Settings({side: None if side in people else spec for side in (BLACK, WHITE)}, opponent=spec)
