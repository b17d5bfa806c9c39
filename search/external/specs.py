"""External players by text: ``KIND[OPTIONS]:COMMAND LINE``.

* ``gtp:gtp-rhino -l 3 -b 0`` – everything behind the first colon is the command line, quoted as in a shell;
* ``gtp[time=0.1,limit=5]:…`` – options stand in brackets before the colon, where no command line can be mistaken for them.

Options: ``time`` (seconds a move that the program is told, where its protocol can say so), ``limit`` (seconds a move after
which it has lost the game; 60 if not given), ``depth`` (plies; ``nboard`` only, 8 if not given).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search.external.player import ExternalAgent

#: How an option's text is read; what `search.agents` gives for the options that its own agents share.
Readers = dict[str, Callable[[str], Any]]

#: The options of each kind.
KINDS: dict[str, tuple[str, ...]] = {"gtp": ("time", "limit"), "nboard": ("time", "limit", "depth")}
_SPEC = re.compile(r"(?P<kind>[a-z]+)(?:\[(?P<options>[^\]]*)\])?:(?P<command>.*)", re.DOTALL)
_BEGINNING = re.compile(rf"({'|'.join(KINDS)})(\[|:|$)")


def is_external(spec: str) -> bool:
    """Whether *spec* means to name another program."""
    return isinstance(spec, str) and _BEGINNING.match(spec) is not None


def agent_class(kind: str) -> type[ExternalAgent]:
    """The player of that kind; loaded here, since most games are between agents of our own."""
    if kind == "gtp":
        from search.external.gtp import GtpAgent

        return GtpAgent
    from search.external.nboard import NBoardAgent

    return NBoardAgent


def parse_external(spec: str) -> tuple[str, str, str]:
    """The kind, the text of the options and the command line of a spec; a `ValueError` that says what is missing."""
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise ValueError("expected KIND:COMMAND LINE or KIND[key=value,…]:COMMAND LINE, as in gtp:gtp-rhino -l 3 -b 0")
    try:
        words = shlex.split(found["command"])
    except ValueError as error:
        raise ValueError(f"its command line cannot be read ({error}): expected it quoted as in a shell") from None
    if not words:
        raise ValueError("expected a command line behind the colon, as in gtp:gtp-rhino -l 3 -b 0")
    return found["kind"], found["options"] or "", found["command"].strip()
