"""A program that runs beside us: lines to its standard input, lines from its standard output, and a sure end.

The program gets a session, and so a process group, of its own: a Ctrl-C in the terminal does not reach it, and ending the
group ends what it has started as well. It ends with `close`, with the object, with the interpreter; and, should this process
be killed in a way that lets nothing run, by a guard: a shell that waits for the end of a pipe that only we hold open, and
kills the group when it comes. (Linux could send a signal at a parent's death, but only to the child itself, and it takes
the death of the thread that started it for that of the parent.)
"""

from __future__ import annotations

import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import IO, Literal

from reversi_env import ReversiError
from reversi_env.errors import quoted

#: Where Debian puts games; the path of a root shell or a service does not lead there.
GAME_FOLDERS = "/usr/games:/usr/local/games"
#: A line is cut after so many bytes: progress that is drawn anew in its place may have no end of a line for long. So many
#: characters that nobody has read are taken for a program that has run wild.
LONGEST_LINE, MAX_UNREAD = 65536, 10_000_000
#: Seconds that a program is waited for: one that was asked to end, and one that was killed.
QUIT_SECONDS, REAP_SECONDS = 0.5, 5.0
#: Seconds that the end of its output is waited for once it is dead: who still holds it open is another.
OUTPUT_SECONDS = 1.0
#: The guard: nothing to do if it reads a line, the whole group to kill if the pipe ends without one.
WATCHDOG = 'read -r line || kill -9 "-$0"'


class Deadline:
    """A wait of so many seconds, from now on, for the answer to a command."""

    def __init__(self, command: str, seconds: float) -> None:
        self.command, self.seconds = command, seconds
        self.deadline = monotonic() + seconds


class EngineProcess:
    """The program of a command line, running. *merge_stderr*: its standard error is read like its standard output."""

    def __init__(self, command: str, *, merge_stderr: bool = False) -> None:
        self.command = command
        self._process = _started(command, merge_stderr)
        self._output = _Output(self._process)
        guard = _started_guard(self._process.pid)
        self._end = weakref.finalize(self, _end, self._process, guard, self._output.threads)

    @property
    def pid(self) -> int:
        """The program's process, which is also its group."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs, as far as we know."""
        return self._end.alive and self._process.poll() is None

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # a broken pipe, or one that is closed already
            raise EngineFailure("crash", self._ending(f"before {quoted(line)}")) from None

    def read_line(self, wait: Deadline) -> str:
        """The next line that the program writes, without its end."""
        try:
            line = self._next_line(wait)
        except queue.Empty:
            words = f"gave no answer to {quoted(wait.command)} within {wait.seconds:g} s"
            raise EngineFailure("timeout", f"{quoted(self.command)} {words}") from None
        if line is None:
            self._output.lines.put(None)  # for whoever asks again
            raise EngineFailure("crash", self._ending(f"during {quoted(wait.command)}"))
        return line

    def _next_line(self, wait: Deadline) -> str | None:
        while True:
            ended, left = not self.alive, wait.deadline - monotonic()
            try:
                return self._output.next_line(max(0.0, min(left, OUTPUT_SECONDS)))
            except queue.Empty:
                if ended:
                    return None
                if left <= OUTPUT_SECONDS:
                    raise

    def close(self, quit_command: str | None = None) -> None:
        """End the program and all that it has started: by its protocol's *quit_command* if it keeps to it, else by force."""
        if quit_command is not None and self.alive:
            with suppress(EngineFailure, subprocess.TimeoutExpired):
                self.send(quit_command)
                self._process.wait(QUIT_SECONDS)
        self._end()

    def _ending(self, when: str) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_SECONDS)  # its output ends a moment before it does
        for thread in self._output.threads:
            thread.join(QUIT_SECONDS)  # its last words may be on the other output
        status = self._process.poll()
        how = self._output.excess or ("closed its output" if status is None else f"ended {_status_text(status)}")
        last = f"; its last words: {quoted(self._output.last[-1], 200)}" if self._output.last else ""
        return f"{quoted(self.command)} {how} {when}{last}"


class _Output:
    """What a program writes, read by threads: a queue of lines with None at the end, and the last words for a report.

    Each thread closes its stream at the end, and nobody else does: a child that the program has left behind in a session of its own
    holds the stream open, and closing it would wait for the thread, which waits for the child.

    It knows the process but not the `EngineProcess`, which can so be forgotten while the threads still read.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.last: deque[str] = deque(maxlen=1)
        #: What was too much, if the program was ended for it.
        self.excess = ""
        self._written, self._taken = 0, 0  # characters; each is counted by one thread alone
        self._process = process
        self.threads = [self._thread(process.stdout, self._read_answers)]
        if process.stderr is not None:
            self.threads.append(self._thread(process.stderr, self._read_errors))

    def next_line(self, timeout: float) -> str | None:
        """The next line, or None at the end; `queue.Empty` if there is none within so many seconds."""
        line = self.lines.get(timeout=timeout)
        self._taken += len(line or "") + 1
        return line

    def _thread(self, stream: IO[bytes] | None, read: Callable[[IO[bytes]], None]) -> threading.Thread:
        def read_to_end() -> None:
            assert stream is not None
            with stream:
                read(stream)

        thread = threading.Thread(target=read_to_end, daemon=True)
        thread.start()
        return thread

    def _read_answers(self, stream: IO[bytes]) -> None:
        for data in iter(lambda: stream.readline(LONGEST_LINE), b""):
            line = data.decode("utf-8", "replace").rstrip("\r\n")
            self._written += len(line) + 1
            if line.strip():
                self.last.append(line)
            if self._written - self._taken > MAX_UNREAD:
                self.excess = f"was ended for more than {MAX_UNREAD:,} characters that nobody had asked for"
                _kill_group(self._process.pid)
                break
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        for data in iter(lambda: stream.readline(LONGEST_LINE), b""):
            if line := data.decode("utf-8", "replace").strip():
                self.last.append(line)


def _started(command: str, merge_stderr: bool) -> subprocess.Popen[bytes]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise EngineFailure("crash", f"command line {quoted(command)} cannot be read: {error}") from None
    if not arguments:
        raise EngineFailure("crash", f"command line {quoted(command)} is empty: expected a program and its arguments")
    program = shutil.which(arguments[0]) or shutil.which(arguments[0], path=GAME_FOLDERS)
    if program is None:
        raise EngineFailure("crash", f"program {quoted(arguments[0])} was not found: expected one that can be run")
    errors = subprocess.STDOUT if merge_stderr else subprocess.PIPE
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    try:
        return subprocess.Popen([program, *arguments[1:]], start_new_session=True, **pipes)  # type: ignore[call-overload]
    except OSError as error:
        raise EngineFailure("crash", f"program {quoted(program)} cannot be started: {error.strerror}") from None


def _started_guard(group: int) -> subprocess.Popen[bytes] | None:
    if os.name != "posix":
        return None
    nowhere = subprocess.DEVNULL
    arguments = ["/bin/sh", "-c", WATCHDOG, str(group)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone already; macOS says so for a group of dead processes
        if os.name == "posix":
            os.killpg(group, signal.SIGKILL)
        else:
            os.kill(group, signal.SIGTERM)


def _end(
    process: subprocess.Popen[bytes], guard: subprocess.Popen[bytes] | None, readers: list[threading.Thread]
) -> None:
    _kill_group(process.pid)  # before it is reaped: until then nobody else can have its number
    with suppress(subprocess.TimeoutExpired):
        process.wait(REAP_SECONDS)
    if guard is not None:
        with suppress(subprocess.TimeoutExpired, OSError):
            guard.communicate(b"\n", timeout=REAP_SECONDS)
    ends = monotonic() + OUTPUT_SECONDS
    for reader in readers:
        reader.join(max(0.0, ends - monotonic()))
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()


def _status_text(status: int) -> str:
    if status >= 0:
        return f"with exit status {status}"
    with suppress(ValueError):
        return f"by {signal.Signals(-status).name}"
    return f"by signal {-status}"


# --- errors ----------------------------------------------------------------------------------------


#: ``crash``: it ended, or could not be started; ``timeout``: no answer in time; ``malformed``: an answer that the protocol does
#: not know; ``illegal``: a move that the rules do not allow; ``refused``: it said no to a command; ``resigned``: it gave up.
FailureKind = Literal["crash", "timeout", "malformed", "illegal", "refused", "resigned"]


class EngineFailure(ReversiError):  # noqa: N818 - the program failed; for the game it is a result
    """An external program that cannot go on with its game. `kind` is the reason in a word, the message in a sentence."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
