"""`reversi evaluate`: an evaluator's static values, no search."""

from __future__ import annotations

from typing import Annotated

import typer

from play.cli.options import Json, VariantName, complete_spec
from play.cli.output import print_json


def evaluate(
    file: Annotated[str, typer.Argument(help="OBF positions, one a line; - for standard input.")],
    agent: Annotated[
        str,
        typer.Option("--agent", "-a", help="Evaluator, for example [b]six-factor[/b].", autocompletion=complete_spec),
    ],
    variant: VariantName = "normal",
    as_json: Json = False,
) -> None:
    """Print the evaluator's value of every position in discs for the side to move, without any search.

    Example: reversi evaluate positions.obf --agent six-factor

    A finished game has its score. Lines that cannot be read are reported
    with their number, and the exit status is 1 then.
    """
    from play.cli.positions import problems
    from reversi_env.errors import ReversiError, quoted
    from search import evaluators
    from search.agents import AgentSpec, names
    from search.players import SearchAgent

    spec = AgentSpec.parse(agent)
    if spec.name not in names():
        evaluators.get_evaluator(spec.name)  # says which ones there are, and leaves out agents without a value
    for option in spec.options.keys() - {"weights"}:
        raise ReversiError(
            f"option {quoted(option)} of {quoted(agent)}: expected none but weights, nothing is searched here"
        )
    player = spec.make()
    if not isinstance(player, SearchAgent):
        known = ", ".join(evaluators.names())
        raise ReversiError(f"agent {quoted(agent)} has no evaluation: expected one of {known}")
    for line, problem in problems(file, variant, as_json):
        position = problem.position
        value = float(position.score()) if position.is_over() else player.evaluator.static_value(position)
        if as_json:
            print_json({"line": line, "value": value})
        else:
            print(f"line {line}: {value:+.2f}")
