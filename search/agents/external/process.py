"""A running external program: lines to its standard input, lines from its standard output, and guaranteed termination.

The program gets its own session, and so its own process group: Ctrl-C in the terminal does not reach it, and ending the group also
ends what it has started. It ends with `close`, with the object, and with the interpreter. If this process is killed, a guard ends
it: a shell that waits for the end of a pipe that only this process holds open, and then kills the group. (Linux can send a signal
at a parent's death, but only to the child itself, and already at the death of the thread that started it.)
"""

import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import weakref
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import IO, Literal

from reversi_env import ReversiError
from reversi_env.errors import quoted

#: Where Debian installs games; the path of a root shell or a service does not contain it.
GAME_FOLDERS = "/usr/games:/usr/local/games"
#: Maximum bytes of a line: progress text that overwrites itself may have no end of line for long.
MAX_LINE_BYTES = 65536
#: A program with more unread characters of output is ended.
MAX_UNREAD = 10_000_000
#: Seconds to wait for the end of a program after its quit command, and after it was killed.
QUIT_SECONDS, REAP_SECONDS = 0.5, 5.0
#: Seconds to wait for the end of its output after its death: a child in another session may hold it open.
OUTPUT_SECONDS = 1.0
#: The guard: it does nothing if it reads a line, and kills the whole group if the pipe ends without one.
WATCHDOG = 'read -r line || kill -9 "-$0"'


class Deadline:
    """The time limit, from now on, for the answer to a command."""

    def __init__(self, command: str, seconds: float) -> None:
        self.command, self.seconds = command, seconds
        self.deadline = monotonic() + seconds


class EngineProcess:
    """The running program of a command line. *merge_stderr*: its standard error is read like its standard output."""

    def __init__(self, command: str, *, merge_stderr: bool = False) -> None:
        self.command = command
        self._process = _started(command, merge_stderr)
        self._output = _Output(self._process)
        guard = _started_guard(self._process.pid)
        self._end = weakref.finalize(self, _end, self._process, guard, self._output.threads)

    @property
    def alive(self) -> bool:
        return self._end.alive and self._process.poll() is None

    @property
    def excess(self) -> str:
        """The reason, if the program was ended for too much output."""
        return self._output.excess

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # a broken or closed pipe
            raise EngineFailure("crash", self._ending(f"before {quoted(line)}")) from None

    def read_line(self, wait: Deadline) -> str:
        """Return the next line that the program writes, without its end."""
        try:
            line = self._next_line(wait)
        except queue.Empty:
            words = f"gave no answer to {quoted(wait.command)} within {wait.seconds:g} s"
            raise EngineFailure("timeout", f"{quoted(self.command)} {words}") from None
        if line is None:
            self._output.lines.put(None)  # for the next call
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
        """End the program and all processes that it has started, by the *quit_command* of its protocol or by a signal."""
        if quit_command is not None and self.alive:
            with suppress(EngineFailure, subprocess.TimeoutExpired):
                self.send(quit_command)
                self._process.wait(QUIT_SECONDS)
        self._end()

    def _ending(self, when: str) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_SECONDS)  # its output ends a moment before it does
        for thread in self._output.threads:
            thread.join(QUIT_SECONDS)  # its last line may be on the other output
        status = self._process.poll()
        how = self._output.excess or ("closed its output" if status is None else f"ended {_status_text(status)}")
        last = f"; its last output: {quoted(self._output.last[-1], 200)}" if self._output.last else ""
        return f"{quoted(self.command)} {how} {when}{last}"


class _Output:
    """The output of a program, read by threads: a queue of lines with None at the end, and the last line for an error message.

    Only its thread closes a stream: a child in another session may hold the stream open, and `close` would wait for the thread.
    There is no reference to the `EngineProcess`, so that it can be deleted, which ends the program, while the threads read.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.last: deque[str] = deque(maxlen=1)
        #: The reason, if the program was ended for too much output.
        self.excess = ""
        self._written, self._taken = 0, 0  # characters; each is counted by one thread only
        self._process = process
        streams = [(process.stdout, True), (process.stderr, False)]
        readers = [(stream, has_answers) for stream, has_answers in streams if stream is not None]
        self.threads = [threading.Thread(target=self._read, args=reader, daemon=True) for reader in readers]
        for thread in self.threads:
            thread.start()

    def next_line(self, timeout: float) -> str | None:
        """Return the next line, or None at the end; `queue.Empty` is raised if there is none in time."""
        line = self.lines.get(timeout=timeout)
        self._taken += len(line or "") + 1
        return line

    def _read(self, stream: IO[bytes], has_answers: bool) -> None:
        with stream:
            for data in iter(lambda: stream.readline(MAX_LINE_BYTES), b""):
                line = data.decode("utf-8", "replace").rstrip("\r\n")
                if line.strip():
                    self.last.append(line)
                if not has_answers:
                    continue
                self._written += len(line) + 1
                if self._written - self._taken > MAX_UNREAD:
                    self.excess = f"was ended for more than {MAX_UNREAD:,} characters of unread output"
                    _kill_group(self._process.pid)
                    break
                self.lines.put(line)
            if has_answers:
                self.lines.put(None)


def _started(command: str, merge_stderr: bool) -> subprocess.Popen[bytes]:
    try:
        arguments = shlex.split(command)
    except ValueError:
        arguments = []
    if not arguments:
        raise EngineFailure(
            "crash", f"program {quoted(command)} is not a command line: expected a program and its arguments"
        )
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
    arguments, null = ["/bin/sh", "-c", WATCHDOG, str(group)], subprocess.DEVNULL
    with suppress(OSError):  # no such shell, or too many processes
        return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True)
    return None


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended; on macOS PermissionError if all are dead
        if os.name == "posix":
            os.killpg(group, signal.SIGKILL)
        else:
            os.kill(group, signal.SIGTERM)


def _end(
    process: subprocess.Popen[bytes], guard: subprocess.Popen[bytes] | None, readers: list[threading.Thread]
) -> None:
    _kill_group(process.pid)  # before it is reaped: until then no other process can have its number
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


#: ``crash``: the program ended, or could not be started; ``timeout``: no answer in time; ``malformed``: an answer outside the
#: protocol; ``illegal``: an illegal move; ``refused``: a refused command; ``resigned``: it resigned.
FailureKind = Literal["crash", "timeout", "malformed", "illegal", "refused", "resigned"]


class EngineFailure(ReversiError):  # noqa: N818 - a failure of the program is a result of the game
    """The failure of an external program, which loses its game. `kind` is the reason, and the message explains it."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
