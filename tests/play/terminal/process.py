"""A command on a pseudo-terminal, as a person sees it."""

import os
import pty
import re
import select
import time

from tests.oracles.jobs import PATIENCE, launch

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>][A-Z0-9]?|[\r\x07]")


class Terminal:
    """A process some of whose streams are a pseudo-terminal: by default all of them."""

    def __init__(self, *arguments, streams=("stdin", "stdout", "stderr"), environment=(), **options):
        self.controller, terminal = pty.openpty()
        self.raw, self._read = "", 0
        env = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "", **dict(environment)}
        self.process = launch(*arguments, env=env, **dict.fromkeys(streams, terminal), **options)
        os.close(terminal)

    @property
    def text(self):
        """All that was shown, without the escape sequences."""
        return ESCAPES.sub("", self.raw)

    def until(self, pattern):
        """What is shown up to *pattern*, since the last call."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.compile(pattern).search(self.text, self._read)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.text[self._read :]!r}"
            assert self.more(), f"ended without {pattern!r}: {self.text[self._read :]!r}"
        before, self._read = self.text[self._read : found.end()], found.end()
        return before

    def more(self, patience=PATIENCE):
        """Whether something comes within so many seconds; it has to be read, or the process waits for us."""
        if not select.select([self.controller], [], [], patience)[0]:
            return False
        try:
            data = os.read(self.controller, 65536)
        except OSError:  # the other end is closed
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def end(self):
        """The exit status, when all has been read."""
        while self.more():
            pass
        return self.process.wait(PATIENCE)

    def close(self):
        self.process.kill()
        self.process.communicate()
        os.close(self.controller)
