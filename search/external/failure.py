"""What can go wrong with another program."""

from __future__ import annotations

from typing import Literal

from reversi_env import ReversiError

#: ``crash``: it ended, or could not be started; ``timeout``: no answer in time; ``malformed``: an answer that the protocol does
#: not know; ``illegal``: a move that the rules do not allow; ``refused``: it said no to a command; ``resigned``: it gave up.
FailureKind = Literal["crash", "timeout", "malformed", "illegal", "refused", "resigned"]


class EngineFailure(ReversiError):  # noqa: N818 - the program failed; for the game it is a result
    """An external program that cannot go on with its game. `kind` is the reason in a word, the message in a sentence."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
