"""A command on a pseudo-terminal."""

import os
import pty
import re
import select
import time

from tests.oracles.jobs import PATIENCE, launch

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>][A-Z0-9]?|[\r\x07]")


class Terminal:
    """A process with a pseudo-terminal as some of its streams, by default all."""

    def __init__(self, *arguments, streams=("stdin", "stdout", "stderr"), environment=(), **options):
        self.controller, terminal = pty.openpty()
        self.raw, self._read = "", 0
        env = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **dict(environment)}
        self.process = launch(*arguments, env=env, **dict.fromkeys(streams, terminal), **options)
        os.close(terminal)

    @property
    def text(self):
        """All output without escape sequences."""
        return ESCAPES.sub("", self.raw)

    def until(self, pattern):
        """Wait for *pattern*; return the output up to it, since the last call."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.compile(pattern).search(self.text, self._read)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.text[self._read :]!r}"
            assert self.more(), f"ended without {pattern!r}: {self.text[self._read :]!r}"
        before, self._read = self.text[self._read : found.end()], found.end()
        return before

    def more(self, patience=PATIENCE):
        """Read output within *patience* seconds, so that the process does not block; return whether there was any."""
        if not select.select([self.controller], [], [], patience)[0]:
            return False
        try:
            data = os.read(self.controller, 65536)
        except OSError:  # the other end is closed
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def end(self):
        """Read the remaining output; return the exit status."""
        while self.more():
            pass
        return self.process.wait(PATIENCE)

    def close(self):
        self.process.kill()
        self.process.communicate()
        os.close(self.controller)
