"""`reversi play`: a game in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from play.cli.options import AgentOption, GameNumber, Size, VariantName, complete_spec

if TYPE_CHECKING:
    from play.game import Game
    from play.terminal.storage import Settings
    from reversi_env.rules import Variant

#: What options that name an agent have in common.
_SPEC: dict[str, Any] = {"metavar": "AGENT", "autocompletion": complete_spec}


def play(
    context: typer.Context,
    agent: AgentOption = None,
    level: Annotated[
        int | None, typer.Option("--level", "-l", help="Strength of the computer: the plies it searches.", min=1, max=4)
    ] = None,
    time: Annotated[
        float | None, typer.Option("--time", help="Seconds a move; 1 if no limit is given.", min=0.01, max=1e6)
    ] = None,
    size: Size = 8,
    variant: VariantName = "normal",
    colour: Annotated[Literal["black", "white", "both"], typer.Option("--colour", "-c", help="Your side.")] = "black",
    watch: Annotated[bool, typer.Option("--watch", help="Watch two agents play.")] = False,
    opponent: Annotated[
        str | None, typer.Option("--opponent", help="White in --watch; by default the same.", **_SPEC)
    ] = None,
    pause: Annotated[
        float, typer.Option("--pause", help="Seconds to wait after a move in --watch.", min=0, max=60)
    ] = 0.0,
    adviser: Annotated[str | None, typer.Option("--adviser", help="Who gives hints and values.", **_SPEC)] = None,
    evaluation: Annotated[bool, typer.Option("--eval", help="Show the evaluation bar from the start.")] = False,
    load: Annotated[
        Path | None, typer.Option("--load", metavar="FILE", help="Go on with a game from a GGF file or transcript.")
    ] = None,
    number: GameNumber = None,
    resume: Annotated[bool, typer.Option("--resume", "-r", help="Go on with the game that you left last.")] = False,
    plain: Annotated[bool, typer.Option("--plain", "--no-colour", help="No colours, nothing but ASCII.")] = False,
) -> None:
    """Play a game in the terminal: against the computer, another person, or two agents each other.

    Example: reversi play --level 2

    Example: reversi play --watch --agent network --opponent six-factor:depth=6

    Type a square such as d3 to play there, [b]help[/b] for everything else: hints,
    values of all moves, take-back, save and load. The game is kept on disk
    after every move, so that --resume can go on with it.
    """
    from play.terminal import storage
    from play.terminal.screen import Screen
    from play.terminal.session import Session
    from reversi_env import ReversiError

    if watch and _given(context, "colour"):
        raise ReversiError(f"--colour {colour} with --watch: expected one of them, agents play both sides")
    screen = Screen(False if plain else None)
    path = None
    if resume:
        if load is not None:
            raise ReversiError("--resume and --load together: expected one of them")
        game, settings, path = storage.unfinished_game()
        if time or level:  # a limit given now takes the place of both
            settings.level = settings.time = None
        _check_same_game(game, settings, agent, opponent, watch, _given(context, "size", "variant", "colour"))
    else:
        game, settings = _begun(agent, opponent, size, variant, colour, watch)
    settings.level, settings.time = level or settings.level, time or settings.time
    settings.adviser, settings.pause, settings.shows_bar = adviser or settings.adviser, pause, evaluation
    if load is not None:
        game, count = storage.load(str(load), number or 1, game)
        if number is None and count > 1:
            screen.show(f"The first of {count} games in {load}; --game N takes another.", "faint")
    elif number is not None:
        raise ReversiError(f"--game {number} without --load: expected a file with games")
    raise typer.Exit(Session(game, settings, screen, path).run())


def _begun(
    agent: str | None, opponent: str | None, size: int, variant: Variant, colour: str, watch: bool
) -> tuple[Game, Settings]:
    """A new game with its players."""
    from play.game import Game
    from play.terminal.storage import Settings
    from play.thinker import default_agent
    from reversi_env import BLACK, WHITE, ReversiError, Rules

    if opponent is not None and not watch:
        raise ReversiError("--opponent without --watch: expected --agent for the computer that you play against")
    rules = Rules(size, variant)
    spec = agent or default_agent(rules)
    if watch:
        return Game(rules), Settings({BLACK: spec, WHITE: opponent or spec}, opponent=spec)
    people = {"black": {BLACK}, "white": {WHITE}, "both": {BLACK, WHITE}}[colour]
    return Game(rules), Settings({side: None if side in people else spec for side in (BLACK, WHITE)}, opponent=spec)


def _given(context: typer.Context, *names: str) -> dict[str, object]:
    """Those of the options *names* that were on the command line, with their values."""
    given = (name for name in names if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE")
    return {name: context.params[name] for name in given}


def _check_same_game(
    game: Game, settings: Settings, agent: str | None, opponent: str | None, watch: bool, given: dict[str, object]
) -> None:
    """Raise a ReversiError if the options ask for another game than the one that was left."""
    from reversi_env import BLACK, WHITE, ReversiError

    black, white = settings.agents[BLACK], settings.agents[WHITE]
    sides = {(True, True): "both", (True, False): "black", (False, True): "white"}
    kept = {
        "size": game.rules.size,
        "variant": game.rules.variant,
        "colour": sides.get((black is None, white is None)),
        "agent": black or white,
        "opponent": white if black else None,
        "watch": True if black and white else None,
    }
    asked = given | {"agent": agent, "opponent": opponent, "watch": watch or None}
    for name, value in asked.items():
        if value is not None and value != kept[name]:
            shown = f"--{name}" if value is True else f"--{name} {value}"
            like = f"--{name} {kept[name]}" if kept[name] not in (None, True) else "no such option"
            raise ReversiError(f"--resume with {shown}: expected {like}, as in the game that you left")
