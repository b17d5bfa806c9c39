"""Agent specs on the command line: the arguments that take them, and their completion in the shell."""

from __future__ import annotations

import re
from typing import Annotated

import typer

SPEC_HELP = "Agent spec, such as [b]network:time=2[/b] or [b]six-factor:level=3[/b]; by default the network, if the game has one."


def complete_spec(incomplete: str) -> list[str]:
    """The agents that begin so, and after the colon the options that the agent knows."""
    from search import agents

    name, colon, options = incomplete.partition(":")
    if not colon:
        return [agent for agent in agents.names() if agent.startswith(name)]
    done, _, begun = options.rpartition(",")
    before = f"{name}:{done}," if done else f"{name}:"
    taken = {item.partition("=")[0] for item in done.split(",")}
    try:
        known = agents.option_names(name)
    except agents.AgentSpecError:
        return []
    return [f"{before}{key}=" for key in known if key.startswith(begun) and key not in taken]


def spec_lines(spec: str, width: int) -> str:
    """The spec in lines of at most *width* characters, broken after a colon or a comma where it has any."""
    lines = [""]
    for part in re.findall(r"[^:,]*[:,]|[^:,]+", spec):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


AgentArgument = Annotated[
    str | None, typer.Argument(metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False)
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False),
]
Threads = Annotated[int, typer.Option("--threads", "-t", help="Threads that search together.", min=1, max=1024)]
SecondsAMove = Annotated[
    float, typer.Option("--time", help="Seconds a move, where neither agent nor controller set a limit.", min=0.001)
]
