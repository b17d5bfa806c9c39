"""Agent specs on the command line: the arguments that take them, and their completion in the shell."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Annotated

import typer

SPEC_HELP = "Agent spec, such as [b]network:time=2[/b] or [b]six-factor:level=3[/b]; by default the network, if the game has one."


#: Set when bash had torn the word at its colons: it then wants only the last piece completed.
_TORN = "_REVERSI_WORD_WAS_TORN"


def mend_words_torn_by_bash(environment: MutableMapping[str, str]) -> None:
    """Put ``network : time = 2`` together again: bash completes word by word, and breaks words at colons and equals signs."""
    words = re.split(r"[ \n]", environment.get("COMP_WORDS", ""))  # the completion script joins them by line ends
    current = int(environment.get("COMP_CWORD") or 0)
    if environment.get("_REVERSI_COMPLETE") != "complete_bash" or not {":", "="} & set(words[: current + 1]):
        return
    before = re.sub(r" ([:=]+)(?: |$)", r"\1", " ".join(words[: current + 1]))
    environment.update(COMP_WORDS=before, COMP_CWORD=str(before.count(" ")), **{_TORN: "1"})


def complete_spec(incomplete: str) -> list[str]:
    """The agents that begin so, and after the colon the options that the agent knows."""
    found = _completions(incomplete)
    if _TORN not in os.environ:
        return found
    known = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1
    return [spec[known:] for spec in found]


def _completions(incomplete: str) -> list[str]:
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


AgentArgument = Annotated[
    str | None, typer.Argument(metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False)
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", "-a", metavar="AGENT", help=SPEC_HELP, autocompletion=complete_spec, show_default=False),
]
Threads = Annotated[int, typer.Option("--threads", "-t", help="Threads that search together.", min=1, max=1024)]
