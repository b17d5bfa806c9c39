"""`StopSwitch`: how a running search is told to end, from another thread or by a clock."""

from __future__ import annotations

import numpy as np


class StopSwitch:
    """The stop flags of the kernels' records, and whether anybody asked for them to be set.

    Kernels also set a flag by themselves, at a node limit, and one thread sets the others' when it is done. `release`
    takes such flags back. A request made in the meantime is never lost: it is noted before the flags are set, and
    looked for after they are taken back.
    """

    def __init__(self, thread_states: np.ndarray) -> None:
        self._flags = thread_states["stop"]
        self.requested = False

    def request(self) -> None:
        """Make the kernels return as soon as they can; callable from any thread at any moment."""
        self.requested = True
        self._flags[:] = 1

    def withdraw(self) -> None:
        """Forget an earlier request: a new search begins."""
        self.requested = False
        self.release()

    def release(self) -> None:
        """Let the kernels run on, unless they were requested to stop."""
        self._flags[:] = 0
        if self.requested:
            self._flags[:] = 1

    def halt(self) -> None:
        """Set the flags without a request, to be taken back by `release`."""
        self._flags[:] = 1
